//! Paused queues and held collections: locks that an operator makes and that stay until one releases them.

use jiff::Timestamp;
use zookeeper_client::Stat;

use super::{Lock, named};
use crate::error::{ConflictKind, Error};
use crate::handle::{Queue, Read, instant};
use crate::path::{self, LockFolder, Path};
use crate::record::PauseNote;
use crate::transaction::Transaction;

/// A paused queue or a held collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Who requested it; empty where that is missing.
    pub who: String,
    /// Why; empty where that is missing.
    pub why: String,
    /// Since when: by the note, else by the server's clock.
    pub since: Timestamp,
    /// Its lock, which [`Queue::unlock`] releases.
    pub lock: Lock,
}

impl Pause {
    pub(crate) fn from_found(path: Path, data: &[u8], stat: &Stat) -> Self {
        let note = PauseNote::decode(data).value;
        let lock = Lock::from_stat(path, stat);
        let since = note.since.unwrap_or(lock.since);
        Self { who: note.who.into_owned(), why: note.why.into_owned(), since, lock }
    }
}

impl Queue {
    /// Pauses a queue. Pausing `ingest` stops every daemon but the inventory's.
    ///
    /// # Errors
    /// [`ConflictKind::Exists`] where it is paused already; else as [`Queue::commit`].
    pub async fn pause(&self, queue: path::QueueName, who: &str, why: &str, now: Timestamp) -> Result<Pause, Error> {
        self.make_pause(Path::QueueLock(queue), who, why, now).await
    }

    /// Plans to pause a queue without doing it.
    ///
    /// # Errors
    /// [`ConflictKind::Exists`] where it is paused already, [`Error::Read`].
    pub async fn plan_pause(
        &self,
        queue: path::QueueName,
        who: &str,
        why: &str,
        now: Timestamp,
    ) -> Result<Transaction, Error> {
        self.plan_make(Path::QueueLock(queue), who, why, now).await
    }

    /// Plans to unpause a queue: exactly the pause that the operator saw, where that is given.
    ///
    /// # Errors
    /// [`Error::Missing`] where it is not paused, [`ConflictKind::LockLost`] where it was paused again since it was
    /// seen, [`Error::Read`].
    pub async fn plan_unpause(&self, queue: path::QueueName, seen: Option<&Lock>) -> Result<Transaction, Error> {
        self.plan_end(Path::QueueLock(queue), seen).await
    }

    /// Whether a queue is paused, by whom and since when.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn paused(&self, queue: path::QueueName) -> Result<Option<Pause>, Error> {
        self.find_pause(Path::QueueLock(queue)).await
    }

    /// Holds a collection: its Pending jobs become Held as the daemons poll them.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a mnemonic that no znode can be named by, [`ConflictKind::Exists`] where it is held
    /// already; else as [`Queue::commit`].
    pub async fn hold_collection(&self, mnemonic: &str, who: &str, why: &str, now: Timestamp) -> Result<Pause, Error> {
        self.make_pause(collection(mnemonic)?, who, why, now).await
    }

    /// Plans to hold a collection without doing it. The daemons only check whether the lock exists; who, why and since
    /// when stand in it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a mnemonic that no znode can be named by, [`ConflictKind::Exists`] where it is held
    /// already, [`Error::Read`].
    pub async fn plan_hold_collection(
        &self,
        mnemonic: &str,
        who: &str,
        why: &str,
        now: Timestamp,
    ) -> Result<Transaction, Error> {
        self.plan_make(collection(mnemonic)?, who, why, now).await
    }

    /// Plans to release a held collection: exactly the hold that the operator saw, where that is given. Its Held jobs
    /// stay Held.
    ///
    /// # Errors
    /// [`Error::Missing`] where it is not held, [`ConflictKind::LockLost`] where it was held again since it was seen,
    /// [`Error::Invalid`] for a mnemonic that no znode can be named by, [`Error::Read`].
    pub async fn plan_release_collection(&self, mnemonic: &str, seen: Option<&Lock>) -> Result<Transaction, Error> {
        self.plan_end(collection(mnemonic)?, seen).await
    }

    /// The hold on a collection, if it is held; [`Queue::unlock`] releases its lock.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a mnemonic that no znode can be named by, [`Error::Read`].
    pub async fn held_collection(&self, mnemonic: &str) -> Result<Option<Pause>, Error> {
        self.find_pause(collection(mnemonic)?).await
    }

    /// Plans to hold a store without doing it: daemons of ours begin no more to store in it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that no znode can have, [`ConflictKind::Exists`] where it is held already,
    /// [`Error::Read`].
    pub async fn plan_hold_store(
        &self,
        store: &str,
        who: &str,
        why: &str,
        now: Timestamp,
    ) -> Result<Transaction, Error> {
        self.plan_make(store_hold(store)?, who, why, now).await
    }

    /// Plans to release a held store: exactly the hold that the operator saw, where that is given.
    ///
    /// # Errors
    /// [`Error::Missing`] where it is not held, [`ConflictKind::LockLost`] where it was held again since it was seen,
    /// [`Error::Invalid`] for a name that no znode can have, [`Error::Read`].
    pub async fn plan_release_store(&self, store: &str, seen: Option<&Lock>) -> Result<Transaction, Error> {
        self.plan_end(store_hold(store)?, seen).await
    }

    /// The hold on a store, if it is held.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that no znode can have, [`Error::Read`].
    pub async fn held_store(&self, store: &str) -> Result<Option<Pause>, Error> {
        self.find_pause(store_hold(store)?).await
    }

    /// The holds on all held stores, by their names.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn held_stores(&self) -> Result<Vec<(String, Pause)>, Error> {
        let [found] = self.read_each([Read::Children(Path::stores())]).await?;
        let mut names = found.children();
        names.sort_unstable();
        let mut held = Vec::new();
        for name in names {
            // It may have been released since it was listed.
            if let Some(pause) = self.held_store(&name).await? {
                held.push((name, pause));
            }
        }
        Ok(held)
    }

    /// The mnemonics of all held collections, sorted.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn held_collections(&self) -> Result<Vec<String>, Error> {
        let [found] = self.read_each([Read::Children(Path::LockFolder(LockFolder::Collections))]).await?;
        let mut names = found.children();
        names.sort_unstable();
        Ok(names)
    }

    /// The pause or hold at a path, if there is one.
    pub(crate) async fn find_pause(&self, path: Path) -> Result<Option<Pause>, Error> {
        let found = self.read_data(path.clone()).await?.data();
        Ok(found.map(|(data, stat)| Pause::from_found(path, &data, &stat)))
    }

    async fn make_pause(&self, path: Path, who: &str, why: &str, now: Timestamp) -> Result<Pause, Error> {
        let mut transaction = making(path.clone(), who, why, now);
        // The answer to a creation has no stat, and by the time of a read another client may have set the pause again.
        let set_at = transaction.operations().len();
        transaction.set(path.clone(), PauseNote::encode(who, why, now), 0);
        let committed = self.commit(&transaction).await?;
        let Some(stat) = committed.stats[set_at] else {
            return Err(Error::conflict(path, ConflictKind::LockLost { now: None }));
        };
        let lock = Lock::from_stat(path, &stat);
        Ok(Pause { who: who.to_owned(), why: why.to_owned(), since: now, lock })
    }

    async fn plan_make(&self, path: Path, who: &str, why: &str, now: Timestamp) -> Result<Transaction, Error> {
        match self.read_data(path.clone()).await?.stat() {
            Some(stat) => Err(Error::conflict(path, ConflictKind::Exists { since: instant(stat.ctime) })),
            None => Ok(making(path, who, why, now)),
        }
    }

    async fn plan_end(&self, path: Path, seen: Option<&Lock>) -> Result<Transaction, Error> {
        let found = self.read_data(path.clone()).await?;
        let Some(stat) = found.stat() else { return Err(Error::Missing(path)) };
        seen.map_or(Ok(()), |seen| seen.confirm(Some(stat)))?;
        let mut transaction = Transaction::new();
        transaction.delete(path, None);
        Ok(transaction)
    }
}

fn making(path: Path, who: &str, why: &str, now: Timestamp) -> Transaction {
    let mut transaction = Transaction::new();
    transaction.create(path, PauseNote::encode(who, why, now));
    transaction
}

fn collection(mnemonic: &str) -> Result<Path, Error> {
    named(Path::NamedLock(LockFolder::Collections, mnemonic.into()))
}

fn store_hold(store: &str) -> Result<Path, Error> {
    let invalid = || Error::Invalid { path: Path::stores(), reason: "no store has such a name".to_owned() };
    Path::store_hold(store).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stat;

    #[test]
    fn a_pause_is_what_its_note_says_and_since_when_its_lock_does_otherwise() {
        let path = || Path::QueueLock(path::QueueName::Ingest);
        let since = instant(500_000);
        let transaction = making(path(), "alice", "disks", since);
        let [crate::transaction::Operation::Create { data, ephemeral: false, .. }] = transaction.operations() else {
            panic!("{transaction}")
        };
        let lock = Lock::from_stat(path(), &stat());
        let noted = Pause { who: "alice".into(), why: "disks".into(), since, lock: lock.clone() };
        assert_eq!(Pause::from_found(path(), data, &stat()), noted);
        let bare = Pause { who: String::new(), why: String::new(), since: instant(1_000), lock };
        assert_eq!(Pause::from_found(path(), b"", &stat()), bare);
        assert_eq!(collection("ucb_demo"), Ok(Path::parse("/locks/collections/ucb_demo")));
        assert!(collection("a/b").is_err());
    }
}
