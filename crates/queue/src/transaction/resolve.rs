//! Learning the outcome of a transaction whose connection was lost.

use std::collections::BTreeMap;

use zookeeper_client::Stat;

use super::{CommitError, Committed, Operation, Transaction};
use crate::error::{Error, RequestFailure};
use crate::handle::{Found, Queue, Read};
use crate::path::Path;

/// What the tree shows about a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitOutcome {
    Done,
    NotDone,
    Unclear,
}

impl Queue {
    /// Learns whether a transaction was done whose commit ended in `cause`.
    ///
    /// A client sends its requests in order, and a server that takes a session back drops its old connection, so once
    /// a `sync` was answered the commit has happened or never will.
    pub(super) async fn resolve(
        &self,
        transaction: &Transaction,
        cause: RequestFailure,
    ) -> Result<Committed, CommitError> {
        let operation = transaction.title();
        // An error that the server itself sent for the whole request leaves no doubt.
        if !leaves_doubt(&cause) {
            return Err(CommitError::NotDone { operation, cause });
        }
        let expected = expectations(transaction);
        let (found, outcome) = match self.inspect(&expected).await {
            Ok(looked) => looked,
            Err(InspectError::Sync(cause)) => return Err(CommitError::Unknown { operation, cause }),
            Err(InspectError::Read(_)) => return Err(CommitError::Unknown { operation, cause }),
        };
        match outcome {
            CommitOutcome::Done => {
                let stat = |operation: &Operation| match operation {
                    Operation::Create { path, .. } | Operation::Set { path, .. } => {
                        found.get(path)?.as_ref().map(|(_, stat)| *stat)
                    }
                    Operation::Check { .. } | Operation::Delete { .. } => None,
                };
                Ok(Committed { stats: transaction.operations.iter().map(stat).collect(), recovered: true })
            }
            CommitOutcome::NotDone => Err(CommitError::NotDone { operation, cause }),
            CommitOutcome::Unclear => Err(CommitError::Unknown { operation, cause: RequestFailure::ChangedSince }),
        }
    }

    /// Checks again whether a transaction was done whose outcome was unknown when its connection was lost. Returns
    /// `None` where others have changed its znodes since. Of another session than the one that sent it, only that it
    /// was done is certain: that session may not have ended yet.
    ///
    /// # Errors
    /// When the tree cannot be read, as while the connection is lost.
    pub async fn recheck(&self, transaction: &Transaction) -> Result<Option<bool>, Error> {
        let failed = |cause| Error::Read { path: Path::Root, cause };
        match self.inspect(&expectations(transaction)).await {
            Ok((_, CommitOutcome::Done)) => Ok(Some(true)),
            Ok((_, CommitOutcome::NotDone)) => Ok(Some(false)),
            Ok((_, CommitOutcome::Unclear)) => Ok(None),
            Err(InspectError::Sync(cause)) => Err(failed(cause)),
            Err(InspectError::Read(error)) => Err(error),
        }
    }

    /// Reads what a transaction would have changed, not behind anything that was sent before.
    async fn inspect<'a>(
        &self,
        expected: &BTreeMap<&'a Path, Expected<'_>>,
    ) -> Result<(Nodes<'a>, CommitOutcome), InspectError> {
        self.within(self.client().sync("/")).await.map_err(InspectError::Sync)?;
        let reads: Vec<_> = expected.keys().map(|path| Read::Data((*path).clone())).collect();
        let found = self.read(&reads).await.map_err(InspectError::Read)?;
        let found = expected.keys().copied().zip(found.into_iter().map(Found::data)).collect();
        let outcome = evaluate(expected, &found, self.session().0);
        Ok((found, outcome))
    }
}

/// Znodes as they were found.
type Nodes<'a> = BTreeMap<&'a Path, Option<(Vec<u8>, Stat)>>;

/// Why the znodes could not be read.
enum InspectError {
    Sync(RequestFailure),
    Read(Error),
}

/// Whether a commit that ended so may have been done.
fn leaves_doubt(cause: &RequestFailure) -> bool {
    use zookeeper_client::Error as E;
    match cause {
        RequestFailure::TimedOut(_) | RequestFailure::ChangedSince => true,
        RequestFailure::TooLarge { .. } => false,
        RequestFailure::Client(error) => !matches!(
            error,
            E::NoAuth | E::InvalidAcl | E::BadArguments(_) | E::NotReadOnly | E::Unimplemented | E::Throttled
        ),
    }
}

/// How one znode should be found, had the transaction not been done and had it been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected<'a> {
    before: NodeState<'a>,
    after: NodeState<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeState<'a> {
    Absent,
    Present {
        /// `None` for any.
        version: Option<i32>,
        /// `None` for any.
        data: Option<&'a [u8]>,
        ephemeral: bool,
    },
}

impl NodeState<'_> {
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
/// change, or only checks, proves nothing and is left out.
pub(super) fn expectations(transaction: &Transaction) -> BTreeMap<&Path, Expected<'_>> {
    let mut expected: BTreeMap<&Path, Expected<'_>> = BTreeMap::new();
    for operation in &transaction.operations {
        let present = |version, data, ephemeral| NodeState::Present { version, data, ephemeral };
        let is_made_ephemeral = |path: &Path| {
            let made = expected.get(path).map(|expected: &Expected<'_>| expected.after);
            matches!(made, Some(NodeState::Present { ephemeral: true, .. }))
        };
        let (path, before, after) = match operation {
            Operation::Create { path, data, ephemeral } => {
                (path, NodeState::Absent, present(Some(0), Some(data.as_slice()), *ephemeral))
            }
            Operation::Set { path, data, version } => {
                let next = Some(version.wrapping_add(1));
                let after = present(next, Some(data.as_slice()), is_made_ephemeral(path));
                (path, present(Some(*version), None, false), after)
            }
            Operation::Delete { path, version } => (path, present(*version, None, false), NodeState::Absent),
            Operation::Check { .. } => continue,
        };
        expected.entry(path).and_modify(|earlier| earlier.after = after).or_insert(Expected { before, after });
    }
    expected.retain(|_, expected| expected.before != expected.after);
    expected
}

/// Evaluates what was found. One znode of a version that only this transaction could give it, or take from it, is
/// proof; otherwise all must agree.
pub(super) fn evaluate(
    expected: &BTreeMap<&Path, Expected<'_>>,
    found: &BTreeMap<&Path, Option<(Vec<u8>, Stat)>>,
    session: i64,
) -> CommitOutcome {
    let at = |path: &Path| found.get(path).and_then(Option::as_ref);
    let (mut all_before, mut all_after) = (true, true);
    for (path, expected) in expected {
        let before = expected.before.fits(at(path), session);
        let after = expected.after.fits(at(path), session);
        let is_proof = match (expected.before, expected.after) {
            // A change of data: versions only grow.
            (NodeState::Present { .. }, NodeState::Present { .. }) => true,
            // A znode of our session, with a mark that no other attempt of the session leaves.
            (NodeState::Absent, NodeState::Present { ephemeral, data, .. }) => {
                ephemeral && data.is_some_and(|data| !data.is_empty()) && after
            }
            (_, NodeState::Absent) => false,
        };
        match (is_proof, before, after) {
            (true, true, false) => return CommitOutcome::NotDone,
            (true, false, true) => return CommitOutcome::Done,
            (_, _, _) => {}
        }
        all_before &= before;
        all_after &= after;
    }
    match (all_before, all_after) {
        (false, true) => CommitOutcome::Done,
        (true, false) => CommitOutcome::NotDone,
        (true, true) | (false, false) => CommitOutcome::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::JobId;
    use crate::path::JobNode;

    const SESSION: i64 = 0x1_2345;

    type Model = BTreeMap<Path, (Vec<u8>, Stat)>;

    fn stat(version: i32, ephemeral_owner: i64) -> Stat {
        Stat { version, ephemeral_owner, ..crate::testing::stat() }
    }

    /// What the server makes of a transaction that fits the tree.
    fn apply(model: &mut Model, transaction: &Transaction) {
        for operation in transaction.operations() {
            match operation {
                Operation::Create { path, data, ephemeral } => {
                    let owner = if *ephemeral { SESSION } else { 0 };
                    assert!(model.insert(path.clone(), (data.clone(), stat(0, owner))).is_none());
                }
                Operation::Set { path, data, version } => {
                    let old = model[path].1;
                    assert_eq!(old.version, *version);
                    model.insert(path.clone(), (data.clone(), stat(version + 1, old.ephemeral_owner)));
                }
                Operation::Delete { path, .. } => assert!(model.remove(path).is_some()),
                Operation::Check { path, .. } => assert!(model.contains_key(path)),
            }
        }
    }

    fn outcome(model: &Model, transaction: &Transaction) -> CommitOutcome {
        let expected = expectations(transaction);
        let found = expected.keys().map(|path| (*path, model.get(*path).cloned())).collect();
        evaluate(&expected, &found, SESSION)
    }

    fn node(job: usize, node: JobNode) -> Path {
        Path::JobNode(JobId::new(u32::try_from(job).unwrap()), node)
    }

    fn claim<'a>(transaction: &'a mut Transaction, lock: &Path, mark: &str) -> &'a mut Transaction {
        let held = Operation::Create { path: lock.held().unwrap(), data: mark.into(), ephemeral: true };
        transaction.create_ephemeral(lock.clone()).set(lock.clone(), "", 0).push(held)
    }

    proptest! {
        #[test]
        fn a_transaction_is_found_done_after_it_and_not_done_before_it(
            kinds in proptest::collection::vec(0..6u8, 1..8), versions in proptest::collection::vec(0..9i32, 8),
        ) {
            let (mut model, mut transaction) = (Model::new(), Transaction::new());
            for (job, kind) in kinds.iter().enumerate() {
                let (status, lock) = (node(job, JobNode::Status), node(job, JobNode::Lock));
                if *kind != 0 {
                    model.insert(status.clone(), (b"old".to_vec(), stat(versions[job], 0)));
                }
                match kind {
                    0 => transaction.create(status, "new"),
                    1 => transaction.set(status, "new", versions[job]),
                    2 => transaction.delete(status, Some(versions[job])),
                    3 => transaction.check(status, versions[job]).create_ephemeral(lock),
                    4 => claim(transaction.check(status, versions[job]), &lock, "7"),
                    _ => transaction.create_ephemeral(lock.clone()).set(status, "new", versions[job]).delete(lock, None),
                };
            }
            prop_assert_eq!(outcome(&model, &transaction), CommitOutcome::NotDone);
            apply(&mut model, &transaction);
            prop_assert_eq!(outcome(&model, &transaction), CommitOutcome::Done);
        }
    }

    #[test]
    fn only_a_refusal_of_the_whole_request_leaves_no_doubt() {
        use zookeeper_client::Error as E;
        for (cause, expected) in [
            (RequestFailure::TimedOut(std::time::Duration::from_secs(1)), true),
            (RequestFailure::ChangedSince, true),
            (RequestFailure::Client(E::ConnectionLoss), true),
            (RequestFailure::Client(E::SessionExpired), true),
            (RequestFailure::Client(E::NoAuth), false),
            (RequestFailure::Client(E::BadArguments(&"path")), false),
            (RequestFailure::TooLarge { bytes: 2, limit: 1 }, false),
        ] {
            assert_eq!(leaves_doubt(&cause), expected, "{cause}");
        }
    }

    #[test]
    fn what_was_changed_again_is_not_claimed_to_be_known() {
        let status = node(1, JobNode::Status);
        let mut transaction = Transaction::new();
        transaction.set(status.clone(), "new", 3);
        let at = |version, data: &str| Model::from([(status.clone(), (data.as_bytes().to_vec(), stat(version, 0)))]);
        assert_eq!(outcome(&at(4, "new"), &transaction), CommitOutcome::Done);
        assert_eq!(outcome(&at(4, "another's"), &transaction), CommitOutcome::Unclear);
        assert_eq!(outcome(&at(5, "new"), &transaction), CommitOutcome::Unclear);
        assert_eq!(outcome(&Model::new(), &transaction), CommitOutcome::Unclear);
        let mut lock = Transaction::new();
        lock.create_ephemeral(node(1, JobNode::Lock));
        let theirs = Model::from([(node(1, JobNode::Lock), (Vec::new(), stat(0, SESSION + 1)))]);
        assert_eq!(outcome(&theirs, &lock), CommitOutcome::Unclear);
        let (mut first, mut second, mut model) = (Transaction::new(), Transaction::new(), Model::new());
        claim(&mut first, &node(1, JobNode::Lock), "1");
        claim(&mut second, &node(1, JobNode::Lock), "2");
        apply(&mut model, &first);
        assert_eq!(outcome(&model, &first), CommitOutcome::Done);
        assert_eq!(outcome(&model, &second), CommitOutcome::Unclear, "another worker of this session has it");
    }
}
