//! What an operator may request of one batch besides its deletion.

use jiff::Timestamp;

use super::{Batch, BatchTarget};
use crate::error::Error;
use crate::handle::Queue;
use crate::id::BatchId;
use crate::item::ItemChange;
use crate::lock::Pause;
use crate::path::Path;
use crate::state::{BatchState, JobOutcome};
use crate::time::moment;
use crate::transaction::Transaction;

/// A change of a batch that an operator requests, ready to be committed or to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchPlan {
    /// The batch.
    pub batch: BatchId,
    /// The state that it leaves.
    pub from: BatchState,
    /// The state that it enters.
    pub to: BatchState,
    /// The version of its status that the change applies to.
    pub version: i32,
    /// How many jobs each outcome's folder refers to, in the order of [`JobOutcome::ALL`]; `None` where there is no
    /// such folder. A report that is created again still lists the jobs that are Failed.
    pub references: [Option<u32>; 4],
    /// The hold on its collection, where it is released in spite of that.
    pub hold: Option<Pause>,
    /// What will be done.
    pub transaction: Transaction,
}

impl Queue {
    /// Plans to release a Held batch: it becomes Pending, and loses its `states` where that is empty, or no daemon
    /// would acquire it.
    ///
    /// # Errors
    /// [`Error::Invalid`] while its collection is held, unless `even_if_held`: its jobs would be made only to be Held;
    /// [`Error::Transition`] for a batch that is not Held; else as [`Queue::plan_batch_change`].
    pub async fn plan_release_batch(
        &self,
        target: impl Into<BatchTarget>,
        message: &str,
        even_if_held: bool,
        now: Timestamp,
    ) -> Result<BatchPlan, Error> {
        let change = ItemChange::to(BatchState::Pending).with_message(message).by_operator();
        let (batch, mut plan) = self.plan_action(&target.into(), &change, now).await?;
        if let Some(lock) = Path::hold(&batch.submitted().value.collection) {
            plan.hold = self.find_pause(lock).await?;
        }
        match &plan.hold {
            Some(hold) if !even_if_held => {
                let reason = format!("its collection is held by {} since {}", hold.lock.path, moment(hold.since));
                Err(Error::Invalid { path: Path::Batch(batch.id), reason })
            }
            Some(_) | None => Ok(plan),
        }
    }

    /// Plans to have a Failed batch reported again, once its jobs are done: it becomes `UpdateReporting`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a batch without jobs, of which there is nothing to report, and for one without
    /// `states/batch-processing`, by which the daemons see that it is due; [`Error::Transition`] for a batch that is
    /// not Failed; else as [`Queue::plan_batch_change`].
    pub async fn plan_report_again(
        &self,
        target: impl Into<BatchTarget>,
        message: &str,
        now: Timestamp,
    ) -> Result<BatchPlan, Error> {
        let change = ItemChange::to(BatchState::UpdateReporting).with_message(message).by_operator();
        let (batch, mut plan) = self.plan_action(&target.into(), &change, now).await?;
        if !batch.has_jobs() {
            let reason = "it has no jobs that could be reported; its submission has to be made again".to_owned();
            return Err(Error::Invalid { path: Path::Batch(batch.id), reason });
        }
        if batch.references(JobOutcome::Processing).is_none() {
            let reason =
                "it has no states/batch-processing, without which no daemon acquires it for a report".to_owned();
            return Err(Error::Invalid { path: Path::Batch(batch.id), reason });
        }
        plan.transaction.check_exists(Path::BatchOutcome(batch.id, JobOutcome::Processing));
        Ok(plan)
    }

    async fn plan_action(
        &self,
        target: &BatchTarget,
        change: &ItemChange<BatchState>,
        now: Timestamp,
    ) -> Result<(Batch, BatchPlan), Error> {
        let batch = self.load_batch(target.id).await?;
        let (transaction, changed) = batch.plan_change(target, change, now)?;
        let plan = BatchPlan {
            batch: batch.id,
            from: changed.from,
            to: changed.to,
            version: batch.version().unwrap_or_default(),
            references: batch.references,
            hold: None,
            transaction,
        };
        Ok((batch, plan))
    }
}
