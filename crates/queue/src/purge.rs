//! Deleting and purging whole batches, however large.
//!
//! To delete is to set Deleted; to purge is to remove the znodes. Either is a frozen list of transactions, each of
//! whole jobs: after each of them no reference is without its job and no job without its reference, so the daemons' own
//! cleanup runs in parallel, and an interrupted one is planned again for what is left.

use std::ops::ControlFlow;

use super::error::Error;
use super::handle::Queue;
use super::id::{BatchId, JobId};
use super::state::{BatchState, JobState};
use super::transaction::{REQUEST_LIMIT_BYTES, Transaction};

mod broken;
mod census;
mod clean;
mod delete;
mod item;
mod remove;

pub use broken::Removal;
pub(crate) use census::Census;
pub use clean::{CleanUpProgress, CleanUpResult};
pub use item::Purge;

/// A job, and the state that it is in before; `None` where that is not known.
pub type PlannedJob = (JobId, Option<JobState>);

/// A frozen list of transactions about one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkPlan {
    /// The batch.
    pub batch: BatchId,
    /// The state that it is in.
    pub from: BatchState,
    /// The version of its status.
    pub version: i32,
    /// What is done, in order. The last is about the batch itself.
    pub chunks: Vec<Chunk>,
}

/// One transaction of a [`BulkPlan`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The jobs that it is about.
    pub jobs: Vec<PlannedJob>,
    /// What is done.
    pub transaction: Transaction,
}

/// How far a [`BulkPlan`] is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How many of its transactions are done.
    pub chunks: usize,
    /// How many it has.
    pub of_chunks: usize,
    /// How many jobs were done with them.
    pub jobs: usize,
    /// How many it has.
    pub of_jobs: usize,
}

impl BulkPlan {
    /// How many jobs it is about.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.jobs_until(self.chunks.len())
    }

    /// Those jobs.
    pub fn each_job(&self) -> impl Iterator<Item = &PlannedJob> {
        self.chunks.iter().flat_map(|chunk| &chunk.jobs)
    }

    /// How many jobs the first so many of its transactions are about.
    #[must_use]
    pub fn jobs_until(&self, chunks: usize) -> usize {
        self.chunks.iter().take(chunks).map(|chunk| chunk.jobs.len()).sum()
    }
}

impl Queue {
    /// Executes the plan, from the transaction of that index on. `progress` is called after each, and returns whether
    /// to continue. Returns how many transactions are done; fewer than planned only where it was cancelled.
    ///
    /// To go on after an interruption, plan again: what is done already is not in the new plan.
    ///
    /// # Errors
    /// The first transaction's that was not done, as [`Queue::commit`]; those before it are done.
    pub async fn execute(
        &self,
        plan: &BulkPlan,
        from: usize,
        mut progress: impl FnMut(Progress) -> ControlFlow<()> + Send,
    ) -> Result<usize, Error> {
        let of_jobs = plan.jobs();
        let mut jobs = 0;
        for (index, chunk) in plan.chunks.iter().enumerate() {
            jobs += chunk.jobs.len();
            if index < from {
                continue;
            }
            self.commit(&chunk.transaction).await?;
            let chunks = index + 1;
            if progress(Progress { chunks, of_chunks: plan.chunks.len(), jobs, of_jobs }).is_break() {
                return Ok(chunks);
            }
        }
        Ok(plan.chunks.len())
    }

    /// Puts each job's operations into as few transactions as are safe, each between `open` and `close`.
    pub(crate) fn chunks(
        &self,
        items: impl IntoIterator<Item = (Option<PlannedJob>, Transaction)>,
        open: &Transaction,
        close: &Transaction,
    ) -> Vec<Chunk> {
        let size = |transaction: &Transaction| {
            transaction.size_bytes() + transaction.operations().len() * self.operation_overhead()
        };
        let frame = size(open) + size(close);
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut bytes = 0;
        for (job, operations) in items {
            let added = size(&operations);
            let is_full = |chunk: &Chunk| {
                chunk.jobs.len() >= self.jobs_per_transaction() || frame + bytes + added > REQUEST_LIMIT_BYTES
            };
            if chunks.last().is_none_or(is_full) {
                chunks.push(Chunk { jobs: Vec::new(), transaction: open.clone() });
                bytes = 0;
            }
            let chunk = chunks.last_mut().expect("one was pushed if there was none");
            chunk.jobs.extend(job);
            chunk.transaction.append(operations);
            bytes += added;
        }
        for chunk in &mut chunks {
            chunk.transaction.append(close.clone());
        }
        chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_of_a_plan_are_counted_by_its_transactions() {
        let chunk = |jobs: &[u32]| {
            let jobs = jobs.iter().map(|job| (JobId::new(*job), Some(JobState::Failed))).collect();
            Chunk { jobs, transaction: Transaction::new() }
        };
        let chunks = vec![chunk(&[1, 2]), chunk(&[3]), chunk(&[])];
        let plan = BulkPlan { batch: BatchId::new(7), from: BatchState::Failed, version: 3, chunks };
        assert_eq!([0, 1, 2, 3].map(|chunks| plan.jobs_until(chunks)), [0, 2, 3, 3]);
        assert_eq!(plan.jobs(), 3);
        assert_eq!(plan.each_job().map(|(job, _)| job.number()).collect::<Vec<_>>(), [1, 2, 3]);
    }
}
