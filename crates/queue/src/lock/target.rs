//! The lock under which an item is changed.

use zookeeper_client::Stat;

use super::Lock;
use crate::error::{ConflictKind, Error};
use crate::path::Path;
use crate::transaction::Transaction;

/// An item to be changed: under the lock that its caller holds, or under one for the time of the transaction.
pub(crate) trait ChangeTarget {
    /// Where its lock is.
    fn lock_path(&self) -> Path;

    /// The lock that the caller holds; `None` for one that is taken for the time of the transaction.
    fn held(&self) -> Option<&Lock>;

    /// Confirms that it is still ours where we hold it, and locked by no other where we do not.
    fn check_lock(&self, found: Option<&Stat>) -> Result<(), Error> {
        match (self.held(), found) {
            (Some(lock), found) => lock.confirm(found),
            (None, Some(stat)) => {
                let lock = Lock::from_stat(self.lock_path(), stat);
                let kind = ConflictKind::Locked { session: lock.session, since: lock.since };
                Err(Error::conflict(lock.path, kind))
            }
            (None, None) => Ok(()),
        }
    }

    /// Takes the lock for the time of the transaction, or proves that it is still held.
    fn open(&self, transaction: &mut Transaction) {
        match self.held() {
            Some(lock) => lock.hold(transaction),
            None => {
                transaction.create_ephemeral(self.lock_path());
            }
        }
    }

    /// Ends a lock for the time of the transaction.
    fn close(&self, transaction: &mut Transaction) {
        if self.held().is_none() {
            transaction.delete(self.lock_path(), None);
        }
    }

    /// Ends the lock, the one that is held as well as one for the time of the transaction.
    fn release(&self, transaction: &mut Transaction) {
        self.close(transaction);
        if let Some(lock) = self.held() {
            lock.release(transaction);
        }
    }
}
