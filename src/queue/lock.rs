//! Locks: paused queues, held collections, objects and local ids being worked on.
//!
//! A lock's data never changes, so its version is always 0 and says nothing. What tells two locks of one path apart is
//! the transaction that made them (`czxid`) and the session that owns them.

use jiff::Timestamp;
use zookeeper_client::{SessionId, Stat};

use super::error::{ConflictKind, Error};
use super::handle::{Queue, instant};
use super::path::{LockFolder, Path};
use super::transaction::Transaction;

mod broken;
mod pause;

pub use pause::Pause;

/// One lock, as it was made or seen: what its holder proves his hold by, and what an operator breaks.
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

/// What came of releasing a lock.
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
    /// Java daemons make persistent storage locks, which a crash leaks; readers only ask whether one exists.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty identifier, [`ConflictKind::Locked`] where another holds it; else as
    /// [`Queue::commit`].
    pub async fn lock_object(&self, folder: LockFolder, identifier: &str) -> Result<Lock, Error> {
        self.make_lock(named(Path::object_lock(folder, identifier))?).await
    }

    /// Locks a local id of an owner while its ARK is minted, as long as our session lasts.
    ///
    /// # Errors
    /// [`ConflictKind::Locked`] where another holds it; else as [`Queue::commit`].
    pub async fn lock_local_id(&self, local_id: &str, owner: &str) -> Result<Lock, Error> {
        self.make_lock(named(Path::local_id_lock(local_id, owner))?).await
    }

    /// The lock at a path, if there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn find_lock(&self, path: &Path) -> Result<Option<Lock>, Error> {
        let found = self.read_data(path.clone()).await?;
        Ok(found.stat().map(|stat| Lock::from_stat(path.clone(), stat)))
    }

    /// Releases exactly this lock: ours, or one that was left behind; [`Queue::plan_break_lock`] is for those of others.
    ///
    /// The lock is compared just before it is deleted. Should it end, and another be made in its place, in the round
    /// trip between the two, the other is deleted: ZooKeeper has no deletion by `czxid`. The locks of jobs, batches and
    /// requests are safer released through [`Queue::unlock_job`] and its like, which check the status too.
    ///
    /// # Errors
    /// As [`Queue::commit`].
    pub async fn unlock(&self, lock: &Lock) -> Result<Unlocked, Error> {
        self.unlock_checked(lock, None).await
    }

    /// Releases a lock in a transaction that checks the version of a status, too.
    pub(super) async fn unlock_checked(&self, lock: &Lock, status: Option<(Path, i32)>) -> Result<Unlocked, Error> {
        let mut attempted = None;
        // The second look is for a first deletion whose outcome the connection took along.
        for _ in 0..2 {
            if !self.read_data(lock.path.clone()).await?.stat().is_some_and(|stat| lock.is(stat)) {
                let released = attempted.is_some();
                return Ok(if released { Unlocked::Released } else { Unlocked::AlreadyGone });
            }
            let mut transaction = Transaction::new();
            if let Some((path, version)) = &status {
                transaction.check(path.clone(), *version);
            }
            transaction.delete(lock.path.clone(), None);
            match self.commit(&transaction).await {
                Ok(_) => return Ok(Unlocked::Released),
                Err(Error::Conflict(conflict)) if conflict.kind == (ConflictKind::LockLost { now: None }) => {
                    return Ok(Unlocked::AlreadyGone);
                }
                Err(error @ (Error::Unknown { .. } | Error::Commit { .. })) => attempted = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(attempted.expect("the loop ends here only after an attempt"))
    }

    async fn make_lock(&self, path: Path) -> Result<Lock, Error> {
        let mut transaction = Transaction::new();
        transaction.create_ephemeral(path.clone());
        let committed = self.commit(&transaction).await?;
        self.made_lock(path, committed.stats[0]).await
    }

    /// The lock that a transaction of ours made; its stat is read where the server did not give it.
    pub(super) async fn made_lock(&self, path: Path, stat: Option<Stat>) -> Result<Lock, Error> {
        let stat = match stat {
            Some(stat) => Some(stat),
            None => self.read_data(path.clone()).await?.data().map(|(_, stat)| stat),
        };
        match stat {
            Some(stat) => Ok(Lock::from_stat(path, &stat)),
            None => Err(Error::conflict(path, ConflictKind::LockLost { now: None })),
        }
    }
}

/// Refuses a name that would be another path, or none.
fn named(path: Path) -> Result<Path, Error> {
    if path.is_nameable() {
        return Ok(path);
    }
    Err(Error::Invalid { path, reason: "no lock can have this name".to_owned() })
}
