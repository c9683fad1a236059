//! The lock of a batch that is being withdrawn, found again after its withdrawal did not come to its end.

use crate::acquire::BatchClaim;
use crate::batch::{Batch, LockedBatch};
use crate::error::{ConflictKind, Error};
use crate::handle::Queue;
use crate::id::BatchId;
use crate::lock::ClaimOutcome;
use crate::path::{BatchNode, Path};
use crate::transaction::Transaction;

/// A lock of ours that a withdrawal left when its future was dropped, or its connection was lost.
struct LeftLock(LockedBatch);

/// The lock of a withdrawal under way, put where the next attempt finds it if it does not come to its end.
pub(super) struct Guard<'a> {
    pub(super) queue: &'a Queue,
    pub(super) locked: Option<LockedBatch>,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if let Some(locked) = self.locked.take() {
            self.queue.pending_claims().put(LeftLock(locked));
        }
    }
}

impl Queue {
    /// Locks a batch as it was read.
    pub(super) async fn lock_to_withdraw(&self, batch: Batch) -> Result<LockedBatch, Error> {
        let (path, state) = (Path::BatchNode(batch.id, BatchNode::Lock), batch.state_to_change()?);
        let mut transaction = Transaction::new();
        transaction.check(Path::BatchNode(batch.id, BatchNode::Status), batch.version().unwrap_or_default());
        match self.claim(transaction, BatchClaim::withdrawal(batch, state)).await? {
            ClaimOutcome::Ours(claim, lock) => Ok(claim.locked(lock)),
            ClaimOutcome::Lost(_) => Err(Error::conflict(path, ConflictKind::LockLost { now: None })),
        }
    }

    /// The lock that an earlier attempt of this session left, if it is still ours.
    pub(super) async fn left_lock(&self, id: BatchId) -> Result<Option<LockedBatch>, Error> {
        while let Some(outcome) = self.recover_claim(|claim: &BatchClaim| claim.is_withdrawal_of(id)).await? {
            if let ClaimOutcome::Ours(claim, lock) = outcome {
                return Ok(Some(claim.locked(lock)));
            }
        }
        while let Some(LeftLock(locked)) = self.pending_claims().take(|left: &LeftLock| left.0.batch.id == id) {
            let mut guard = Guard { queue: self, locked: Some(locked.clone()) };
            let found = self.find_lock(&locked.lock.path).await?;
            let batch = if found.as_ref() == Some(&locked.lock) { Some(self.load_batch(id).await?) } else { None };
            guard.locked = None;
            match batch {
                Some(batch) if batch.version() == Some(locked.version) => return Ok(Some(locked)),
                // Broken, or of a batch that another has changed: it is given up.
                Some(_) | None => drop(self.unlock_batch(&locked).await?),
            }
        }
        Ok(None)
    }
}
