//! Changes of a batch's state, each one `multi`.

use jiff::Timestamp;
use zookeeper_client::Stat;

use super::{Batch, BatchReport, BatchTarget, LockedBatch};
use crate::error::Error;
use crate::handle::Queue;
use crate::item::{ItemChange, ItemChanged, ItemUpdate, LockedItem, PendingUpdate};
use crate::lock::{ChangeTarget, Lock, Unlocked};
use crate::path::{BatchNode, Path};
use crate::record;
use crate::state::BatchState;
use crate::transaction::Transaction;

impl LockedItem for LockedBatch {
    type State = BatchState;
    type Written = BatchReport;

    fn pending(&self) -> &PendingUpdate<BatchState, BatchReport> {
        &self.pending
    }

    fn lock(&self) -> &Lock {
        &self.lock
    }

    fn status(&self) -> Path {
        Path::BatchNode(self.batch.id, BatchNode::Status)
    }

    async fn plan(
        &self,
        queue: &Queue,
        update: &ItemUpdate<BatchState, BatchReport>,
        now: Timestamp,
    ) -> Result<(Transaction, ItemChanged<BatchState>), Error> {
        let (mut transaction, changed) = queue.plan_batch_change(self, &update.change, now).await?;
        if let Some(report) = &update.written {
            self.batch.set_report(&mut transaction, report, now);
        } else if may_have_expansion(changed) {
            queue.plan_end_of_expansion(self.batch.id, &mut transaction).await?;
        }
        Ok((transaction, changed))
    }

    fn plan_unseen(
        &self,
        update: &ItemUpdate<BatchState, BatchReport>,
        now: Timestamp,
    ) -> Option<(Transaction, ItemChanged<BatchState>)> {
        let (_, stat) = self.batch.status_found()?;
        let status = Some((self.status.clone()?, Stat { version: self.version, ..*stat }));
        let batch = Batch { status, ..self.batch.clone() };
        let (mut transaction, changed) = batch.transaction_of(&self.into(), &update.change, now).ok()?;
        match &update.written {
            Some(report) => batch.set_report(&mut transaction, report, now),
            None if may_have_expansion(changed) => return None,
            None => {}
        }
        Some((transaction, changed))
    }

    fn entered(&mut self, changed: ItemChanged<BatchState>, status: Option<Vec<u8>>) {
        (self.state, self.version, self.status) = (changed.to, changed.version, status);
    }
}

/// Whether the jobs of a batch may not all have been created before a change: one that is reported has no expansion.
fn may_have_expansion(changed: ItemChanged<BatchState>) -> bool {
    (changed.from, changed.to) == (BatchState::Processing, BatchState::Failed)
}

impl Queue {
    /// Plans a change of a batch's state without doing it.
    ///
    /// Holding a batch makes an empty `states`, so that no daemon acquires it; releasing it removes that again, or none
    /// ever would. Deleting a batch means its jobs too: see [`Queue::plan_delete`].
    ///
    /// # Errors
    /// As [`Queue::change_batch`].
    pub async fn plan_batch_change(
        &self,
        target: impl Into<BatchTarget>,
        change: &ItemChange<BatchState>,
        now: Timestamp,
    ) -> Result<(Transaction, ItemChanged<BatchState>), Error> {
        let target = target.into();
        self.load_batch(target.id).await?.plan_change(&target, change, now)
    }

    /// Changes a batch's state, in one `multi`. A lock that we hold is kept.
    ///
    /// # Errors
    /// [`Error::Transition`] where the states forbid it, [`Error::Conflict`] where another holds the batch or changed
    /// it, or where our own lock is gone, [`Error::Missing`] and [`Error::Decode`] for a batch without a status that
    /// can be read, [`Error::Invalid`] for Deleted; else as [`Queue::commit`].
    pub async fn change_batch(
        &self,
        target: impl Into<BatchTarget>,
        change: &ItemChange<BatchState>,
        now: Timestamp,
    ) -> Result<ItemChanged<BatchState>, Error> {
        let (transaction, changed) = self.plan_batch_change(target, change, now).await?;
        self.commit(&transaction).await.map(|_| changed)
    }

    /// Changes the state of a batch that we hold, and keeps the lock.
    ///
    /// After [`Error::Unknown`], or where the call was cancelled before it returned, the same call returns the outcome
    /// of the first, or makes the change.
    ///
    /// # Errors
    /// As [`Queue::change_batch`].
    pub async fn step_batch(
        &self,
        locked: &mut LockedBatch,
        change: &ItemChange<BatchState>,
        now: Timestamp,
    ) -> Result<ItemChanged<BatchState>, Error> {
        self.step_item(locked, change, now).await
    }

    /// Changes the state of a batch that we hold and releases it, in the same `multi`. What an error leaves, and what
    /// the same call does after one, is as with [`Queue::finish_job`].
    ///
    /// # Errors
    /// As [`Queue::change_batch`].
    pub async fn finish_batch(
        &self,
        locked: &LockedBatch,
        change: &ItemChange<BatchState>,
        now: Timestamp,
    ) -> Result<ItemChanged<BatchState>, Error> {
        self.finish_item(locked, change.clone(), None, now).await
    }

    /// Releases a batch that we hold, unchanged, as [`Queue::unlock_job`] does a job.
    ///
    /// # Errors
    /// As [`Queue::commit`].
    pub async fn unlock_batch(&self, locked: &LockedBatch) -> Result<Unlocked, Error> {
        self.give_up(&locked.pending, &locked.lock).await
    }
}

impl Batch {
    /// The transaction of a change of its state, after a look at whether the target is still what its caller saw.
    pub(super) fn plan_change(
        &self,
        target: &BatchTarget,
        change: &ItemChange<BatchState>,
        now: Timestamp,
    ) -> Result<(Transaction, ItemChanged<BatchState>), Error> {
        target.check(self)?;
        self.transaction_of(target, change, now)
    }

    fn transaction_of(
        &self,
        target: &BatchTarget,
        change: &ItemChange<BatchState>,
        now: Timestamp,
    ) -> Result<(Transaction, ItemChanged<BatchState>), Error> {
        let from = self.state_to_change()?;
        let to = change.target(&Path::Batch(self.id), from)?;
        if to == BatchState::Deleted {
            let reason = "a batch is deleted together with its jobs".to_owned();
            return Err(Error::Invalid { path: Path::Batch(self.id), reason });
        }
        let mut transaction = Transaction::new();
        target.open(&mut transaction);
        let version = self.set_status(&mut transaction, to, &change.message, now);
        let states = Path::BatchNode(self.id, BatchNode::States);
        match (from, to, &self.states) {
            (BatchState::Pending, BatchState::Held | BatchState::Processing, None) => {
                transaction.create(states, Vec::new());
            }
            (BatchState::Held, BatchState::Pending, Some(stat)) if stat.num_children == 0 => {
                transaction.delete(states, None);
            }
            (_, _, _) => {}
        }
        target.close(&mut transaction);
        Ok((transaction, ItemChanged { from, to, version }))
    }

    /// Adds the change of its status, and gives the version that this will have.
    pub(crate) fn set_status(
        &self,
        transaction: &mut Transaction,
        to: BatchState,
        message: &str,
        now: Timestamp,
    ) -> i32 {
        let (old, version) = self.status.as_ref().map_or((&[][..], 0), |(data, stat)| (data, stat.version));
        let data = record::item_status(old, to, message, now);
        transaction.set(Path::BatchNode(self.id, BatchNode::Status), data, version);
        version.wrapping_add(1)
    }
}

impl ChangeTarget for BatchTarget {
    fn lock_path(&self) -> Path {
        Path::BatchNode(self.id, BatchNode::Lock)
    }

    fn held(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }
}
