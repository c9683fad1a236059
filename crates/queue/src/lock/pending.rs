//! Changes under a lock whose outcome is not known, so that the same call may be repeated and returns the outcome of
//! the first.
//!
//! The status that a change writes proves it, as long as no one writes it again. After that the end of the lock does: a
//! change that ends our lock takes our mark below `/queuekeeper/held` away in the same `multi`, and while our session
//! lasts nothing else does but giving the item up. Breaking a lock leaves the mark. Only where a user removes by hand
//! both the lock and the mark of an item that is being finished, and it is changed twice before we can read it, a
//! change that was not made is mistaken for made.

use std::sync::Arc;

use parking_lot::Mutex;
use zookeeper_client::Stat;

use super::{Lock, OURS, Unlocked};
use crate::error::{ConflictKind, Error, RequestFailure};
use crate::handle::{Found, Queue, Read};
use crate::path::Path;
use crate::transaction::{Committed, Transaction};

/// The last change under a lock, as long as its outcome is not known; shared by all clones of what holds the lock.
#[derive(Clone, Debug)]
pub(crate) struct PendingChange<C, D>(Arc<Mutex<Option<UnconfirmedChange<C, D>>>>);

/// An attempt to make a change.
#[derive(Clone, Debug)]
pub(crate) struct ChangeAttempt<C, D> {
    /// What was requested.
    pub(crate) change: C,
    /// Whether the lock ends with it.
    pub(crate) releases: bool,
    /// What is returned when it is done.
    pub(crate) done: D,
}

#[derive(Clone, Debug)]
struct UnconfirmedChange<C, D> {
    attempt: ChangeAttempt<C, D>,
    written: WrittenStatus,
    /// The lock that ends with it, where its mark goes in the same transaction and in no other way.
    ended: Option<Lock>,
}

/// The status that it writes, by which it is recognized.
#[derive(Clone, Debug)]
struct WrittenStatus {
    path: Path,
    data: Vec<u8>,
    version: i32,
}

/// The outcome of a change.
enum ChangeOutcome {
    /// It was done; with the stat of the status that it wrote, unless that was written again since.
    Done(Option<Stat>),
    /// It was not done, for this reason.
    NotDone(Error),
    /// The status was written again since, and there is no other evidence.
    Unknown,
}

impl<C, D> Default for PendingChange<C, D> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<C, D> PendingChange<C, D> {
    /// Forgets the attempt: its outcome is known.
    pub(crate) fn clear(&self) {
        *self.0.lock() = None;
    }

    /// Whether there is an attempt whose outcome is not known.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Takes note that the end of lock and mark proves nothing.
    fn forget_end(&self) {
        if let Some(unconfirmed) = self.0.lock().as_mut() {
            unconfirmed.ended = None;
        }
    }
}

impl WrittenStatus {
    fn by(transaction: &Transaction, status: &Path) -> Option<Self> {
        let (data, version) = transaction.set_of(status)?;
        Some(Self { path: status.clone(), data: data.to_vec(), version: version.wrapping_add(1) })
    }
}

impl Queue {
    /// What the same call did before, if its outcome was not learned then and it was done; with the stat of the status
    /// that it wrote, unless that was written again since.
    ///
    /// # Errors
    /// [`Error::Read`] where that cannot be learned yet.
    pub(crate) async fn outcome_of<C: Clone + PartialEq, D: Clone>(
        &self,
        pending: &PendingChange<C, D>,
        change: &C,
        releases: bool,
    ) -> Result<Option<(D, Option<Stat>)>, Error> {
        let same = |unconfirmed: &UnconfirmedChange<C, D>| {
            unconfirmed.attempt.change == *change && unconfirmed.attempt.releases == releases
        };
        let Some(unconfirmed) = pending.0.lock().clone().filter(same) else { return Ok(None) };
        match self.resolve_change(&unconfirmed.written, unconfirmed.ended.as_ref()).await? {
            ChangeOutcome::Done(stat) => Ok(Some((unconfirmed.attempt.done, stat))),
            ChangeOutcome::NotDone(_) | ChangeOutcome::Unknown => {
                pending.clear();
                Ok(None)
            }
        }
    }

    /// Determines the outcome of a change. Requests are sent in order, so after a `sync` it was done or never will be.
    async fn resolve_change(&self, written: &WrittenStatus, ended: Option<&Lock>) -> Result<ChangeOutcome, Error> {
        self.sync(&written.path).await?;
        let mark = |lock: &Lock| lock.path.held().filter(|_| lock.session == Some(self.session()));
        let ended = ended.and_then(|lock| Some((lock, mark(lock)?)));
        let under = ended.iter().flat_map(|(lock, mark)| [lock.path.clone(), mark.clone()]);
        let reads: Vec<_> = [written.path.clone()].into_iter().chain(under).map(Read::Data).collect();
        let found = self.read(&reads).await?;
        let stat = found.first().and_then(Found::stat);
        match (&found[0], stat) {
            (Found::Data(data, stat), _) if stat.version == written.version && *data == written.data => {
                return Ok(ChangeOutcome::Done(Some(*stat)));
            }
            // Versions only grow: it would have this one.
            (_, Some(stat)) if stat.version <= written.version => {
                return Ok(ChangeOutcome::NotDone(Error::conflict(written.path.clone(), ConflictKind::Moved)));
            }
            (_, _) => {}
        }
        let Some((lock, _)) = ended else { return Ok(ChangeOutcome::Unknown) };
        let [lock_found, mark_found] = [1, 2].map(|at| found.get(at).and_then(Found::stat));
        if let Err(lost) = lock.confirm(lock_found) {
            // Lock and mark were made by one transaction.
            let is_marked = mark_found.is_some_and(|stat| stat.czxid == lock.czxid);
            return Ok(if is_marked { ChangeOutcome::NotDone(lost) } else { ChangeOutcome::Done(None) });
        }
        Ok(ChangeOutcome::NotDone(Error::conflict(written.path.clone(), ConflictKind::Moved)))
    }

    /// Commits a change under a lock of ours that writes `status`, and where it releases the lock, its end with it.
    /// Keeps it in mind until its outcome is known, also where this future is dropped.
    ///
    /// # Errors
    /// As [`Queue::commit`].
    pub(crate) async fn commit_attempt<C, D>(
        &self,
        (pending, lock): (&PendingChange<C, D>, &Lock),
        attempt: ChangeAttempt<C, D>,
        status: &Path,
        transaction: &Transaction,
    ) -> Result<Committed, Error> {
        let releases = attempt.releases;
        let (written, ended) = (WrittenStatus::by(transaction, status), releases.then(|| lock.clone()));
        *pending.0.lock() = written.clone().map(|written| UnconfirmedChange { attempt, written, ended: ended.clone() });
        let mut result = if releases {
            self.commit_and_release(transaction, lock, || pending.forget_end()).await
        } else {
            self.commit(transaction).await
        };
        // Another client changed it. Whether that was after our change, the end of the lock may show.
        let is_overtaken = matches!(result, Err(Error::Unknown { cause: RequestFailure::ChangedSince, .. }));
        let ended = pending.0.lock().as_ref().and_then(|unconfirmed| unconfirmed.ended.clone());
        if let Some((written, ended)) = written.zip(ended).filter(|_| is_overtaken) {
            match self.resolve_change(&written, Some(&ended)).await? {
                ChangeOutcome::Done(_) => {
                    result = Ok(Committed { stats: vec![None; transaction.operations().len()], recovered: true });
                }
                ChangeOutcome::NotDone(why) => result = Err(why),
                ChangeOutcome::Unknown => {}
            }
        }
        if !matches!(result, Err(Error::Unknown { .. })) {
            pending.clear();
        }
        result
    }

    /// Commits a transaction under a lock of ours, and the end of the lock with it. `unmarked` is called before it is
    /// tried without the mark of the lock.
    async fn commit_and_release(
        &self,
        transaction: &Transaction,
        lock: &Lock,
        unmarked: impl FnOnce(),
    ) -> Result<Committed, Error> {
        let mut whole = transaction.clone();
        lock.release(&mut whole);
        match self.commit(&whole).await {
            // Nothing was done. What keeps our other sessions off was removed by hand, and the lock is ours all the
            // same.
            Err(Error::Missing(path)) if lock.path.held().is_some_and(|held| held == path) => {
                unmarked();
                let mut rest = transaction.clone();
                rest.delete(lock.path.clone(), Some(OURS));
                self.commit(&rest).await
            }
            committed => committed,
        }
    }

    /// Releases the lock of an item whatever the outcome of a change under it. From then on the end of the lock does
    /// not prove that the change was made.
    ///
    /// # Errors
    /// As [`Queue::commit`].
    pub(crate) async fn give_up<C, D>(&self, pending: &PendingChange<C, D>, lock: &Lock) -> Result<Unlocked, Error> {
        pending.forget_end();
        self.unlock(lock).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_that_a_change_writes_is_the_one_that_it_sets() {
        let status = Path::parse("/jobs/jid0000000001/status");
        let mut transaction = Transaction::new();
        transaction.check(status.clone(), 3).set(Path::parse("/jobs/jid0000000001/priority"), "5", 9);
        assert!(WrittenStatus::by(&transaction, &status).is_none());
        transaction.set(status.clone(), "new", 3);
        let written = WrittenStatus::by(&transaction, &status).unwrap();
        assert_eq!((written.path, written.data.as_slice(), written.version), (status, &b"new"[..], 4));
    }

    #[test]
    fn an_attempt_is_kept_until_its_outcome_is_known() {
        let lock = Lock::from_stat(Path::parse("/jobs/jid0000000001/lock"), &crate::testing::stat());
        let written = WrittenStatus { path: Path::Jobs, data: Vec::new(), version: 1 };
        let attempt = ChangeAttempt { change: 1, releases: true, done: 2 };
        let pending = PendingChange::default();
        pending.forget_end();
        *pending.0.lock() = Some(UnconfirmedChange { attempt, written, ended: Some(lock) });
        let ended = |pending: &PendingChange<i32, i32>| pending.0.lock().as_ref().map(|change| change.ended.is_some());
        assert_eq!(ended(&pending.clone()), Some(true));
        pending.forget_end();
        assert_eq!(ended(&pending), Some(false));
        pending.clear();
        assert_eq!(ended(&pending), None);
    }
}
