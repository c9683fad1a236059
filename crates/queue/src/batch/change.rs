//! Changes of a batch's state, each one `multi`.

use jiff::Timestamp;

use super::{Batch, BatchReport, BatchTarget, LockedBatch};
use crate::error::Error;
use crate::handle::Queue;
use crate::lock::{ChangeAttempt, ChangeTarget, Lock, Unlocked};
use crate::path::{BatchNode, Path};
use crate::record;
use crate::state::{BatchState, State};
use crate::transaction::Transaction;

/// A change of a batch's or an access request's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemChange<S> {
    /// `None` for the next state on the success path.
    pub(crate) to: Option<S>,
    pub(crate) message: String,
    pub(crate) operator: bool,
}

impl<S: State> ItemChange<S> {
    /// To the next state on the success path.
    #[must_use]
    pub fn success() -> Self {
        Self { to: None, message: String::new(), operator: false }
    }

    /// To a named state.
    #[must_use]
    pub fn to(state: S) -> Self {
        Self { to: Some(state), message: String::new(), operator: false }
    }

    /// Says so in the status.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Allows what only an operator may request.
    #[must_use]
    pub fn by_operator(mut self) -> Self {
        self.operator = true;
        self
    }

    pub(crate) fn target(&self, item: &Path, from: S) -> Result<S, Error> {
        let to = self.to.or(from.success());
        let operator_may = to.is_some_and(|to| from.is_admin(to));
        match to {
            Some(to) if from.may_become(to) && (self.operator || !operator_may) => Ok(to),
            to => {
                let to = to.map_or_else(|| "the next state".to_owned(), |to| to.to_string());
                Err(Error::Transition { item: item.clone(), from: from.to_string(), to, operator_may })
            }
        }
    }
}

/// A change of a batch that is held, for comparison: the same change with another report is another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchUpdate {
    pub(super) change: ItemChange<BatchState>,
    pub(super) report: Option<BatchReport>,
}

/// A change of a batch's or an access request's state that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemChanged<S> {
    /// The state that it left.
    pub from: S,
    /// The state that it entered.
    pub to: S,
    /// The version of its status.
    pub version: i32,
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
        let changed = self.change_under_batch(locked, change, now, false).await?;
        locked.pending.clear();
        (locked.state, locked.version) = (changed.to, changed.version);
        Ok(changed)
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
        self.change_under_batch(locked, change, now, true).await
    }

    async fn change_under_batch(
        &self,
        locked: &LockedBatch,
        change: &ItemChange<BatchState>,
        now: Timestamp,
        releases: bool,
    ) -> Result<ItemChanged<BatchState>, Error> {
        let update = BatchUpdate { change: change.clone(), report: None };
        if let Some((changed, _)) = self.outcome_of(&locked.pending, &update, releases).await? {
            return Ok(changed);
        }
        let (transaction, changed) = self.plan_batch_change(locked, change, now).await?;
        self.commit_under_batch(locked, update, (&transaction, changed), releases).await
    }

    pub(super) async fn commit_under_batch(
        &self,
        locked: &LockedBatch,
        change: BatchUpdate,
        (transaction, done): (&Transaction, ItemChanged<BatchState>),
        releases: bool,
    ) -> Result<ItemChanged<BatchState>, Error> {
        let attempt = ChangeAttempt { change, releases, done };
        let status = Path::BatchNode(locked.batch.id, BatchNode::Status);
        self.commit_attempt((&locked.pending, &locked.lock), attempt, &status, transaction).await.map(|_| done)
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
    /// The transaction of a change of its state.
    pub(super) fn plan_change(
        &self,
        target: &BatchTarget,
        change: &ItemChange<BatchState>,
        now: Timestamp,
    ) -> Result<(Transaction, ItemChanged<BatchState>), Error> {
        target.check(self)?;
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
