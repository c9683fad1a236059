//! Taking an item: its lock, and the proof that the lock is ours.
//!
//! The server answers a creation without a stat, so the lock is set once in the `multi` that creates it: the answer to
//! that is the stat of this lock and no other, and its version distinguishes it from the locks of other programs, which
//! stay at version 0. For a job, batch or request the same `multi` creates a znode below `/queuekeeper/held`, which
//! keeps our other sessions off the item even after an operator has removed the lock.
//!
//! Each attempt leaves a mark of its own in what it creates. After a lost connection, or a caller who stopped waiting,
//! the mark shows whether it was done, also among several workers of one session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zookeeper_client::Stat;

use super::{Lock, holder};
use crate::error::{ConflictKind, Error, RequestFailure};
use crate::handle::{Found, Queue, Read};
use crate::path::Path;
use crate::pending_claims::PendingClaims;
use crate::transaction::{CommitError, Committed, Operation, Transaction};

/// The version of a lock of ours.
pub(crate) const OURS: i32 = 1;

/// What is to be locked, with all that its holder will need but the lock.
pub(crate) trait Claim: Send + Sized + 'static {
    /// The lock's path.
    fn lock(&self) -> Path;
}

/// Distinguishes an attempt from every other of this process, and so of our session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark(String);

impl Mark {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

/// The lock of an object or a local id rather than of an item. Its mark is the data of the lock itself.
#[derive(Debug)]
pub(super) struct NamedLock(pub(super) Path);

impl Claim for NamedLock {
    fn lock(&self) -> Path {
        self.0.clone()
    }
}

/// An attempt under way. Dropped before its outcome is known, it is put where the next poll finds it.
struct ClaimAttempt<T: Claim> {
    pending: Arc<PendingClaims>,
    under_way: Option<(T, Mark)>,
}

impl<T: Claim> ClaimAttempt<T> {
    /// Ends it, and gives what was to be locked.
    fn over(mut self) -> T {
        self.under_way.take().expect("an attempt is over but once").0
    }

    fn get(&self) -> &(T, Mark) {
        self.under_way.as_ref().expect("it is taken only as the attempt ends")
    }
}

impl<T: Claim> Drop for ClaimAttempt<T> {
    fn drop(&mut self) {
        if let Some(under_way) = self.under_way.take() {
            self.pending.put(under_way);
        }
    }
}

/// The outcome of a committed attempt.
#[derive(Debug)]
pub(crate) enum ClaimOutcome<T> {
    /// The item is locked, and the lock is ours.
    Ours(T, Lock),
    /// The lock was removed since, and the item is given up. Another may be at work on it.
    Lost(T),
}

impl Queue {
    /// Locks an item, where all that `transaction` checks and changes holds.
    ///
    /// # Errors
    /// As [`Queue::commit`]. After [`Error::Unknown`], and where this future is dropped, [`Self::recover_claim`] gives
    /// the item, if it was locked.
    pub(crate) async fn claim<T: Claim>(
        &self,
        mut transaction: Transaction,
        item: T,
    ) -> Result<ClaimOutcome<T>, Error> {
        let (path, mark) = (item.lock(), Mark::next());
        transaction.create_ephemeral(path.clone());
        let set_at = transaction.operations().len();
        match path.held() {
            Some(held) => {
                transaction.set(path.clone(), Vec::new(), 0);
                transaction.push(Operation::Create { path: held, data: mark.0.clone().into(), ephemeral: true });
            }
            None => {
                transaction.set(path.clone(), mark.0.clone(), 0);
            }
        }
        let attempt = ClaimAttempt { pending: Arc::clone(self.pending_claims()), under_way: Some((item, mark)) };
        match self.try_commit(&transaction).await {
            Ok(Committed { stats, recovered: false }) => {
                if let Some(stat) = stats[set_at] {
                    return Ok(ClaimOutcome::Ours(attempt.over(), Lock::from_stat(path, &stat)));
                }
            }
            // The stat would be that of what is there by now.
            Ok(Committed { recovered: true, .. })
            | Err(CommitError::Unknown { cause: RequestFailure::ChangedSince, .. }) => {}
            Err(error @ CommitError::Unknown { .. }) => return Err(self.explain(error).await),
            Err(error @ (CommitError::Refused { .. } | CommitError::NotDone { .. })) => {
                attempt.over();
                return Err(self.explain(error).await);
            }
        }
        self.resolve_claim(attempt).await?.ok_or(Error::conflict(path, ConflictKind::Moved))
    }

    /// An item that an earlier attempt locked without its caller learning of it; `None` where there is none.
    ///
    /// # Errors
    /// [`Error::Read`] where it cannot be learned yet.
    pub(crate) async fn recover_claim<T: Claim>(
        &self,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Result<Option<ClaimOutcome<T>>, Error> {
        loop {
            let found = self.pending_claims().take(|(item, _): &(T, Mark)| is_wanted(item));
            let Some(under_way) = found else { return Ok(None) };
            let attempt = ClaimAttempt { pending: Arc::clone(self.pending_claims()), under_way: Some(under_way) };
            if let Some(outcome) = self.resolve_claim(attempt).await? {
                return Ok(Some(outcome));
            }
        }
    }

    /// Determines the outcome of an attempt; `None` where it was not done. Requests are sent in order, so after a
    /// `sync` it was done or never will be.
    async fn resolve_claim<T: Claim>(&self, attempt: ClaimAttempt<T>) -> Result<Option<ClaimOutcome<T>>, Error> {
        let (item, mark) = attempt.get();
        let path = item.lock();
        self.sync(&path).await?;
        let reads: Vec<_> = [path.clone()].into_iter().chain(path.held()).map(Read::Data).collect();
        let found = self.read(&reads).await?;
        let marked = |found: &Found| match found {
            Found::Data(data, stat) if *data == mark.0.as_bytes() && holder(stat) == Some(self.session()) => {
                Some(*stat)
            }
            Found::Data(..) | Found::Children(_) | Found::Nothing => None,
        };
        let Some(marked) = found.last().and_then(marked) else {
            attempt.over();
            return Ok(None);
        };
        let is_same = |stat: &&Stat| stat.czxid == marked.czxid;
        if let Some(stat) = found.first().and_then(Found::stat).filter(is_same) {
            let lock = Lock::from_stat(path, stat);
            return Ok(Some(ClaimOutcome::Ours(attempt.over(), lock)));
        }
        if let Some(held) = path.held() {
            let mut transaction = Transaction::new();
            transaction.delete(held, None);
            match self.commit(&transaction).await {
                Ok(_) | Err(Error::Missing(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(ClaimOutcome::Lost(attempt.over())))
    }

    /// Has the server catch up with all that was written before.
    pub(crate) async fn sync(&self, about: &Path) -> Result<(), Error> {
        let failed = |cause| Error::Read { path: about.clone(), cause };
        self.within(self.client().sync("/")).await.map(drop).map_err(failed)
    }
}
