//! Breaking a lock that another left behind.

use super::Lock;
use crate::error::Error;
use crate::handle::{Found, Queue, Read};
use crate::path::{BatchNode, JobNode, Path, RequestNode};
use crate::transaction::Transaction;

impl Queue {
    /// Plans to break exactly the lock that its operator saw, whether it is ephemeral or not.
    ///
    /// The lock is compared by the transaction that made it and the session that owns it, which ZooKeeper cannot do as
    /// it deletes; that deletes by version only, by which locks of ours differ from those of other programs. Should the
    /// lock end, and another of the same kind be made in its place, in the round trip between this look and the commit,
    /// the other would be deleted. For the lock of a job, batch or request the transaction also checks the version of
    /// the status read with it, so the other's holder loses it only before the state was changed under it, and is then
    /// refused, as any holder of a lost lock is. For the lock of an object or a local id nothing else narrows that
    /// race.
    ///
    /// Only the lock is deleted. A worker of ours whose lock is broken may still be at work, so the znode below
    /// `/queuekeeper/held` stays: our other sessions do not take the item before that worker gives it up, or its
    /// session ends. Daemons of other programs do not know of it, and may take the item at once.
    ///
    /// # Errors
    /// [`ConflictKind::LockLost`](crate::ConflictKind::LockLost) where the lock is gone, or another's by now;
    /// [`Error::Invalid`] for a path that is not a lock, or a pause or hold, which is released and not broken;
    /// [`Error::Read`].
    pub async fn plan_break_lock(&self, lock: &Lock) -> Result<Transaction, Error> {
        let path = lock.path.clone();
        let invalid = |reason: &str| Err(Error::Invalid { path: path.clone(), reason: reason.to_owned() });
        if !path.is_lock() {
            return invalid("it is not a lock");
        }
        if path.is_pause() {
            return invalid("it is a pause or hold by an operator: unpause or release it instead");
        }
        let status = match &path {
            Path::JobNode(job, _) => Some(Path::JobNode(*job, JobNode::Status)),
            Path::BatchNode(batch, _) => Some(Path::BatchNode(*batch, BatchNode::Status)),
            Path::RequestNode(queue, request, _) => Some(Path::RequestNode(*queue, *request, RequestNode::Status)),
            // Of the rest only the locks of objects and local ids are locks.
            _ => None,
        };
        let reads: Vec<_> = [path.clone()].into_iter().chain(status.clone()).map(Read::Data).collect();
        let found = self.read(&reads).await?;
        let stat = found.first().and_then(Found::stat);
        lock.confirm(stat)?;
        let version = stat.map(|stat| stat.version);
        let mut transaction = Transaction::new();
        // An item that has no status, such as one whose creation was not finished, has no version to check either.
        if let Some((status, stat)) = status.zip(found.get(1).and_then(Found::stat)) {
            transaction.check(status, stat.version);
        }
        transaction.delete(path, version);
        Ok(transaction)
    }
}
