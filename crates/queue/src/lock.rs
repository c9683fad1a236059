//! Locks: paused queues, held collections, objects and local ids being worked on.
//!
//! Two locks of one path differ in the transaction that made them (`czxid`) and the session that owns them. A
//! transaction can check neither, but it can check a version: locks of ours have version 1, those of all other programs
//! version 0 (see [`claim`]).

use jiff::Timestamp;
use zookeeper_client::{SessionId, Stat};

use super::error::{ConflictKind, Error};
use super::handle::{Found, Queue, Read, instant};
use super::path::{LockFolder, Path};
use super::transaction::Transaction;

mod broken;
mod claim;
mod pause;
mod pending;
mod target;

use claim::NamedLock;

pub(super) use claim::{Claim, ClaimOutcome, OURS};
pub use pause::Pause;
pub(super) use pending::{ChangeAttempt, PendingChange};
pub(super) use target::ChangeTarget;

/// How often a lock is read and its deletion tried: it may end, or its outcome be lost, in between.
const ATTEMPTS: usize = 3;

/// One lock, as it was made or seen: by which its holder proves ownership, and which an operator breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Where it is.
    pub path: Path,
    /// The transaction that made it.
    pub czxid: i64,
    /// Whose session it ends with; `None` for one that is not ephemeral.
    pub session: Option<SessionId>,
    /// Since when it is held, by the server's clock.
    pub since: Timestamp,
}

impl Lock {
    pub(super) fn from_stat(path: Path, stat: &Stat) -> Self {
        Self { path, czxid: stat.czxid, session: holder(stat), since: instant(stat.ctime) }
    }

    /// Whether a stat of its path is of this lock and not of a later one.
    pub(super) fn is(&self, stat: &Stat) -> bool {
        stat.czxid == self.czxid && holder(stat) == self.session
    }

    /// Adds to a transaction under this lock of ours the check that it was not broken and made by another program.
    pub(super) fn hold(&self, transaction: &mut Transaction) {
        transaction.check(self.path.clone(), OURS);
    }

    /// Adds to a transaction under this lock of ours its end.
    pub(super) fn release(&self, transaction: &mut Transaction) {
        transaction.delete(self.path.clone(), Some(OURS));
        if let Some(held) = self.path.held() {
            transaction.delete(held, None);
        }
    }

    /// Confirms that it is still there, by a stat read just now.
    pub(super) fn confirm(&self, found: Option<&Stat>) -> Result<(), Error> {
        match found {
            Some(stat) if self.is(stat) => Ok(()),
            found => {
                let now = found.map(|stat| (holder(stat), instant(stat.ctime)));
                Err(Error::conflict(self.path.clone(), ConflictKind::LockLost { now }))
            }
        }
    }
}

/// The session that an ephemeral znode belongs to.
pub(super) fn holder(stat: &Stat) -> Option<SessionId> {
    (stat.ephemeral_owner != 0).then_some(SessionId(stat.ephemeral_owner))
}

/// The outcome of releasing a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlocked {
    /// It is released.
    Released,
    /// It was gone already, or another holds its place by now; nothing was done.
    AlreadyGone,
}

impl Queue {
    /// Locks an object for storing or recording, by its ARK, as long as our session lasts.
    ///
    /// Java daemons make persistent storage locks, which a crash leaks; readers only check whether one exists.
    ///
    /// After [`Error::Unknown`], or where the call was cancelled before it returned, the same call gives the lock, if
    /// it was made.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty identifier, [`ConflictKind::Locked`] where another holds it; else as
    /// [`Queue::commit`].
    pub async fn lock_object(&self, folder: LockFolder, identifier: &str) -> Result<Lock, Error> {
        self.make_lock(named(Path::object_lock(folder, identifier))?).await
    }

    /// The lock at a path, if there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn find_lock(&self, path: &Path) -> Result<Option<Lock>, Error> {
        let found = self.read_data(path.clone()).await?;
        Ok(found.stat().map(|stat| Lock::from_stat(path.clone(), stat)))
    }

    /// Releases exactly this lock: ours, or one that was left behind; [`Queue::plan_break_lock`] is for those of
    /// others.
    ///
    /// The lock is compared just before it is deleted, by the version that it has then. A lock of a job, batch or
    /// request that is ours cannot be mistaken for another: other programs' locks have another version, and our other
    /// sessions are kept off. Of the other locks one race remains: should the lock end, and another *with the same
    /// version* be made in its place, in the round trip between the read and the deletion, the other is deleted, since
    /// ZooKeeper has no deletion by `czxid`.
    ///
    /// Where our lock of an item was broken, this gives the item up: our other workers may take it again. An item whose
    /// finish ended in [`Error::Unknown`] is given up by [`Queue::unlock_job`] and the like: they record that the end
    /// of the lock does not prove the finish any more.
    ///
    /// # Errors
    /// As [`Queue::commit`].
    pub async fn unlock(&self, lock: &Lock) -> Result<Unlocked, Error> {
        let held = lock.path.held().filter(|_| lock.session == Some(self.session()));
        let reads: Vec<_> = [lock.path.clone()].into_iter().chain(held.clone()).map(Read::Data).collect();
        let (mut is_doubtful, mut last) = (false, Error::conflict(lock.path.clone(), ConflictKind::Moved));
        for _ in 0..ATTEMPTS {
            let found = self.read(&reads).await?;
            let own = |at: usize| found.get(at).and_then(Found::stat).filter(|stat| lock.is(stat));
            let mut transaction = Transaction::new();
            if let Some(stat) = own(0) {
                transaction.delete(lock.path.clone(), Some(stat.version));
            }
            // It was made in the same transaction by the same session.
            if let Some(held) = held.clone().filter(|_| own(1).is_some()) {
                transaction.delete(held, None);
            }
            let outcome = if own(0).is_some() || is_doubtful { Unlocked::Released } else { Unlocked::AlreadyGone };
            if transaction.is_empty() {
                return Ok(outcome);
            }
            match self.commit(&transaction).await {
                Ok(_) => return Ok(outcome),
                // One of the two went, or was created by another client, since the read.
                Err(error @ (Error::Conflict(_) | Error::Missing(_))) => last = error,
                Err(error @ (Error::Unknown { .. } | Error::Commit { .. })) => {
                    is_doubtful |= own(0).is_some();
                    last = error;
                }
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    async fn make_lock(&self, path: Path) -> Result<Lock, Error> {
        let outcome = match self.recover_claim(|named: &NamedLock| named.0 == path).await? {
            Some(outcome) => outcome,
            None => self.claim(Transaction::new(), NamedLock(path)).await?,
        };
        match outcome {
            ClaimOutcome::Ours(_, lock) => Ok(lock),
            ClaimOutcome::Lost(NamedLock(path)) => Err(Error::conflict(path, ConflictKind::LockLost { now: None })),
        }
    }
}

/// Refuses a name that would be another path, or none.
fn named(path: Path) -> Result<Path, Error> {
    if path.is_nameable() {
        return Ok(path);
    }
    Err(Error::Invalid { path, reason: "this name is not valid for a lock".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stat;

    fn lock(path: &str) -> Lock {
        Lock::from_stat(Path::parse(path), &Stat { ephemeral_owner: 0x2a, ..stat() })
    }

    #[test]
    fn a_lock_is_known_by_its_transaction_and_its_session() {
        let lock = lock("/jobs/jid0000000001/lock");
        assert_eq!((lock.czxid, lock.session, lock.since), (10, Some(SessionId(0x2a)), instant(1_000)));
        let same = Stat { ephemeral_owner: 0x2a, version: 9, mtime: 9_000, ..stat() };
        assert_eq!(lock.confirm(Some(&same)), Ok(()));
        let lost = |now| Err(Error::conflict(lock.path.clone(), ConflictKind::LockLost { now }));
        assert_eq!(lock.confirm(None), lost(None));
        for (other, session) in
            [(Stat { czxid: 11, ..same }, Some(SessionId(0x2a))), (Stat { ephemeral_owner: 0, ..same }, None)]
        {
            assert_eq!(lock.confirm(Some(&other)), lost(Some((session, instant(1_000)))));
        }
    }

    #[test]
    fn a_lock_of_ours_is_proved_and_released_by_its_version() {
        for (path, held) in
            [("/jobs/jid0000000001/lock", Some("/queuekeeper/held/jid0000000001")), ("/locks/storage/ark_1_2", None)]
        {
            let (mut proof, mut end) = (Transaction::new(), Transaction::new());
            lock(path).hold(&mut proof);
            lock(path).release(&mut end);
            assert_eq!(proof.to_string(), format!("check {path} at version 1\n"));
            let mark = held.map(|held| format!("delete {held}\n")).unwrap_or_default();
            assert_eq!(end.to_string(), format!("delete {path} at version 1\n{mark}"));
        }
    }

    #[test]
    fn a_target_is_under_the_lock_that_is_held_or_one_of_its_own() {
        struct Target(Option<Lock>);
        impl ChangeTarget for Target {
            fn lock_path(&self) -> Path {
                Path::parse("/jobs/jid0000000001/lock")
            }

            fn held(&self) -> Option<&Lock> {
                self.0.as_ref()
            }
        }
        let around = |target: Target| {
            let (mut kept, mut released) = (Transaction::new(), Transaction::new());
            target.open(&mut kept);
            target.close(&mut kept);
            target.release(&mut released);
            format!("{kept}{released}")
        };
        let path = "/jobs/jid0000000001/lock";
        let own = format!("create {path} (ephemeral)\ndelete {path}\ndelete {path}\n");
        assert_eq!(around(Target(None)), own);
        let mark = "delete /queuekeeper/held/jid0000000001\n";
        let ours = format!("check {path} at version 1\ndelete {path} at version 1\n{mark}");
        assert_eq!(around(Target(Some(lock(path)))), ours);
    }

    #[test]
    fn a_lock_has_a_name_that_a_znode_can_have() {
        let object = Path::object_lock(LockFolder::Storage, "ark:/1/2");
        assert_eq!(named(object.clone()), Ok(object));
        for identifier in ["", ".", "a\nb"] {
            assert!(named(Path::object_lock(LockFolder::Storage, identifier)).is_err(), "{identifier:?}");
        }
    }
}
