//! Learning the outcome of a transaction whose connection was lost.

use std::collections::BTreeMap;

use zookeeper_client::Stat;

use super::{CommitError, Committed, Operation, Transaction};
use crate::queue::error::Cause;
use crate::queue::handle::{Found, Queue, Read};
use crate::queue::path::Path;

/// What the tree says of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    NotDone,
    Unclear,
}

impl Queue {
    /// Learns whether a transaction was done whose commit ended in `cause`.
    ///
    /// A client sends its requests in order, and a server that takes a session back drops its old connection, so once
    /// a `sync` was answered the commit has happened or never will.
    pub(super) async fn resolve(&self, transaction: &Transaction, cause: Cause) -> Result<Committed, CommitError> {
        let operation = transaction.title();
        // An error that the server itself sent for the whole request leaves no doubt.
        if !leaves_doubt(&cause) {
            return Err(CommitError::NotDone { operation, cause });
        }
        if let Err(cause) = self.within(self.client().sync("/")).await {
            return Err(CommitError::Unknown { operation, cause });
        }
        let expected = expectations(transaction);
        let reads: Vec<_> = expected.keys().map(|path| Read::Data((*path).clone())).collect();
        let Ok(found) = self.read(&reads).await else {
            return Err(CommitError::Unknown { operation, cause });
        };
        let found: BTreeMap<&Path, Option<(Vec<u8>, Stat)>> =
            expected.keys().copied().zip(found.into_iter().map(Found::data)).collect();
        match verdict(&expected, &found, self.session().0) {
            Verdict::Done => {
                let stat = |operation: &Operation| match operation {
                    Operation::Create { path, .. } | Operation::Set { path, .. } => {
                        found.get(path)?.as_ref().map(|(_, stat)| *stat)
                    }
                    Operation::Check { .. } | Operation::Delete { .. } => None,
                };
                Ok(Committed { stats: transaction.operations.iter().map(stat).collect(), recovered: true })
            }
            Verdict::NotDone => Err(CommitError::NotDone { operation, cause }),
            Verdict::Unclear => Err(CommitError::Unknown { operation, cause: Cause::ChangedSince }),
        }
    }
}

/// Whether a commit that ended so may have been done.
fn leaves_doubt(cause: &Cause) -> bool {
    use zookeeper_client::Error as E;
    match cause {
        Cause::TimedOut(_) | Cause::ChangedSince => true,
        Cause::TooLarge { .. } => false,
        Cause::Client(error) => !matches!(
            error,
            E::NoAuth | E::InvalidAcl | E::BadArguments(_) | E::NotReadOnly | E::Unimplemented | E::Throttled
        ),
    }
}

/// How one znode should be found, had the transaction not been done and had it been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected<'a> {
    before: Node<'a>,
    after: Node<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node<'a> {
    Absent,
    Present {
        /// `None` for any.
        version: Option<i32>,
        /// `None` for any.
        data: Option<&'a [u8]>,
        ephemeral: bool,
    },
}

impl Node<'_> {
    fn fits(self, found: Option<&(Vec<u8>, Stat)>, session: i64) -> bool {
        match (self, found) {
            (Self::Absent, found) => found.is_none(),
            (Self::Present { .. }, None) => false,
            (Self::Present { version, data, ephemeral }, Some((found, stat))) => {
                version.is_none_or(|version| version == stat.version)
                    && data.is_none_or(|data| data == found)
                    && (!ephemeral || stat.ephemeral_owner == session)
            }
        }
    }
}

/// What to expect of each znode that a transaction changes. What it makes and removes again, such as the lock around a
/// change, or only checks, tells nothing and is left out.
pub(super) fn expectations(transaction: &Transaction) -> BTreeMap<&Path, Expected<'_>> {
    let mut expected: BTreeMap<&Path, Expected<'_>> = BTreeMap::new();
    for operation in &transaction.operations {
        let present = |version, data, ephemeral| Node::Present { version, data, ephemeral };
        let (path, before, after) = match operation {
            Operation::Create { path, data, ephemeral } => {
                (path, Node::Absent, present(Some(0), Some(data.as_slice()), *ephemeral))
            }
            Operation::Set { path, data, version } => {
                let after = present(Some(version.wrapping_add(1)), Some(data.as_slice()), false);
                (path, present(Some(*version), None, false), after)
            }
            Operation::Delete { path, version } => (path, present(*version, None, false), Node::Absent),
            Operation::Check { .. } => continue,
        };
        expected.entry(path).and_modify(|earlier| earlier.after = after).or_insert(Expected { before, after });
    }
    expected.retain(|_, expected| expected.before != expected.after);
    expected
}

/// Judges by what was found. One znode of a version that only this transaction could give it, or take from it, is
/// proof; otherwise all must agree.
pub(super) fn verdict(
    expected: &BTreeMap<&Path, Expected<'_>>,
    found: &BTreeMap<&Path, Option<(Vec<u8>, Stat)>>,
    session: i64,
) -> Verdict {
    let at = |path: &Path| found.get(path).and_then(Option::as_ref);
    let (mut all_before, mut all_after) = (true, true);
    for (path, expected) in expected {
        let before = expected.before.fits(at(path), session);
        let after = expected.after.fits(at(path), session);
        let is_proof = match (expected.before, expected.after) {
            // A change of data: versions only grow.
            (Node::Present { .. }, Node::Present { .. }) => true,
            // A lock of our session.
            (Node::Absent, Node::Present { ephemeral, .. }) => ephemeral && after,
            (_, Node::Absent) => false,
        };
        match (is_proof, before, after) {
            (true, true, false) => return Verdict::NotDone,
            (true, false, true) => return Verdict::Done,
            (_, _, _) => {}
        }
        all_before &= before;
        all_after &= after;
    }
    match (all_before, all_after) {
        (false, true) => Verdict::Done,
        (true, false) => Verdict::NotDone,
        (true, true) | (false, false) => Verdict::Unclear,
    }
}
