//! The outcomes of a batch's jobs.

use jiff::Timestamp;

use super::{Batch, LockedBatch};
use crate::error::Error;
use crate::handle::{Found, Queue, Read};
use crate::id::{BatchId, JobId};
use crate::item::{ItemChange, ItemChanged};
use crate::lock::ChangeTarget as _;
use crate::path::{BatchNode, Path};
use crate::record;
use crate::state::{BatchState, JobOutcome};
use crate::transaction::Transaction;

/// The outcomes of a batch's jobs, by their references; each list is sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchReport {
    /// Jobs that are not done.
    pub processing: Vec<JobId>,
    /// Jobs that failed.
    pub failed: Vec<JobId>,
    /// Jobs that were completed.
    pub completed: Vec<JobId>,
    /// Jobs that were deleted.
    pub deleted: Vec<JobId>,
}

impl BatchReport {
    /// The jobs of one outcome.
    #[must_use]
    pub fn of(&self, outcome: JobOutcome) -> &[JobId] {
        match outcome {
            JobOutcome::Processing => &self.processing,
            JobOutcome::Failed => &self.failed,
            JobOutcome::Completed => &self.completed,
            JobOutcome::Deleted => &self.deleted,
        }
    }

    /// How many jobs it lists.
    #[must_use]
    pub fn len(&self) -> usize {
        JobOutcome::ALL.iter().map(|outcome| self.of(*outcome).len()).sum()
    }

    /// Whether it lists none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The state that a batch takes with this report: Failed where a job failed, or where there is no job at all, else
    /// Completed.
    #[must_use]
    pub fn verdict(&self) -> BatchState {
        if self.is_empty() || !self.failed.is_empty() { BatchState::Failed } else { BatchState::Completed }
    }
}

/// What a batch's `status-report` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastReport {
    /// The number of the report, from 1.
    pub number: u32,
    /// Jobs that had failed; sorted.
    pub failed: Vec<JobId>,
    /// Jobs that were completed; sorted.
    pub completed: Vec<JobId>,
}

impl Queue {
    /// Lists the jobs of a batch by outcome. Names that are no job's are left out.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is no such batch, [`Error::Read`] where it cannot be read.
    pub async fn batch_report(&self, id: BatchId) -> Result<BatchReport, Error> {
        let folder = |outcome| Read::Children(Path::BatchOutcome(id, outcome));
        let [batch, processing, failed, completed, deleted] = self
            .read_each([
                Read::Data(Path::Batch(id)),
                folder(JobOutcome::Processing),
                folder(JobOutcome::Failed),
                folder(JobOutcome::Completed),
                folder(JobOutcome::Deleted),
            ])
            .await?;
        if !batch.exists() {
            return Err(Error::Missing(Path::Batch(id)));
        }
        let jobs = |found: Found| {
            let mut jobs: Vec<JobId> = found.children().iter().filter_map(|name| name.parse().ok()).collect();
            jobs.sort_unstable();
            jobs
        };
        Ok(BatchReport {
            processing: jobs(processing),
            failed: jobs(failed),
            completed: jobs(completed),
            deleted: jobs(deleted),
        })
    }

    /// Writes a batch's `status-report`, its state by the report's verdict, and releases the batch: one `multi`. After
    /// an error it is as with [`Queue::finish_job`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for a report with jobs that are not done, [`Error::Commit`] for one of more jobs than a
    /// request can name (about 50,000); else as [`Queue::change_batch`].
    pub async fn finish_report(
        &self,
        locked: &LockedBatch,
        report: &BatchReport,
        message: &str,
        now: Timestamp,
    ) -> Result<ItemChanged<BatchState>, Error> {
        if !report.processing.is_empty() {
            let reason = format!("{} of its jobs are not done", report.processing.len());
            return Err(Error::Invalid { path: Path::Batch(locked.batch.id), reason });
        }
        let change = ItemChange::to(report.verdict()).with_message(message);
        self.finish_item(locked, change, Some(report.clone()), now).await
    }

    /// Writes the `status-report` of a batch that we hold, and changes nothing else.
    ///
    /// # Errors
    /// As [`Queue::finish_report`].
    pub async fn write_report(&self, locked: &LockedBatch, report: &BatchReport, now: Timestamp) -> Result<(), Error> {
        let batch = self.load_batch(locked.batch.id).await?;
        let target = super::BatchTarget::from(locked);
        target.check(&batch)?;
        let mut transaction = Transaction::new();
        target.open(&mut transaction);
        transaction.check(Path::BatchNode(batch.id, BatchNode::Status), locked.version);
        batch.set_report(&mut transaction, report, now);
        self.commit(&transaction).await.map(|_| ())
    }
}

impl Batch {
    /// What its last report says; `None` where it was never reported. Names that are no job's are left out.
    #[must_use]
    pub fn last_report(&self) -> Option<LastReport> {
        let (data, stat) = self.report.as_ref()?;
        let (failed, completed) = record::reported(data);
        Some(LastReport { number: stat.version.unsigned_abs().saturating_add(1), failed, completed })
    }

    pub(super) fn set_report(&self, transaction: &mut Transaction, report: &BatchReport, now: Timestamp) {
        let path = Path::BatchNode(self.id, BatchNode::StatusReport);
        let old = self.report.as_ref().map(|(data, _)| data.as_slice()).unwrap_or_default();
        let data = record::status_report(old, &report.failed, &report.completed, now);
        match &self.report {
            Some((_, stat)) => transaction.set(path, data, stat.version),
            None => transaction.create(path, data),
        };
    }
}
