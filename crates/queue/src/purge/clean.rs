//! What the nightly task does: purging all batches that are done with.

use std::ops::ControlFlow;

use super::Progress;
use super::census::Census;
use crate::batch::{Batch, BatchTarget};
use crate::error::Error;
use crate::handle::Queue;
use crate::id::BatchId;
use crate::state::State;

/// How many batches are read at once, so that not all submissions are in memory.
const READ_AT_ONCE: usize = 1_000;

/// The result of a cleanup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanUpResult {
    /// The batches that were purged.
    pub purged: Vec<BatchId>,
    /// Those that are done with, but could not be purged, and why.
    pub kept: Vec<(BatchId, Error)>,
    /// How many were not started or not finished, because it was cancelled.
    pub left: usize,
}

/// The progress of a cleanup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanUpProgress {
    /// How many batches are behind it.
    pub batches: usize,
    /// How many there are.
    pub of_batches: usize,
    /// The batch that it is at.
    pub batch: BatchId,
    /// How far that is purged.
    pub purge: Progress,
}

impl Queue {
    /// Reads the batches that a cleanup purges, oldest first: those that are Completed or Deleted, also the ones
    /// without `states/batch-processing`, which the daemons' own cleanup leaves behind.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn finished_batches(&self) -> Result<Vec<Batch>, Error> {
        let ids = self.batches().await?;
        let mut done = Vec::new();
        for ids in ids.chunks(READ_AT_ONCE) {
            let reads: Vec<_> = ids.iter().flat_map(|id| Batch::reads(*id)).collect();
            let mut found = self.read(&reads).await?.into_iter();
            for id in ids {
                let batch = Batch::from_found(*id, found.by_ref().take(Batch::READS).collect::<Vec<_>>());
                done.extend(batch.filter(|batch| batch.state().is_some_and(State::is_final)));
            }
        }
        Ok(done)
    }

    /// Purges every Completed or Deleted batch, also those without `states/batch-processing`, which the daemons' own
    /// cleanup leaves behind. One that cannot be purged keeps no other.
    ///
    /// `progress` is called after each transaction, and returns whether to continue.
    ///
    /// # Errors
    /// When the connection fails; [`Error::Read`] for the lists at its start. What was purged until then is purged.
    pub async fn clean_up(
        &self,
        progress: impl FnMut(CleanUpProgress) -> ControlFlow<()> + Send,
    ) -> Result<CleanUpResult, Error> {
        self.clean_up_some(|_| true, progress).await
    }

    /// The same for those of the batches that are wanted.
    ///
    /// # Errors
    /// As [`Queue::clean_up`].
    pub async fn clean_up_some(
        &self,
        is_wanted: impl Fn(&Batch) -> bool + Send,
        mut progress: impl FnMut(CleanUpProgress) -> ControlFlow<()> + Send,
    ) -> Result<CleanUpResult, Error> {
        let mut done = self.finished_batches().await?;
        done.retain(is_wanted);
        let mut result = CleanUpResult::default();
        let mut census = Census::default();
        let of_batches = done.len();
        for (batches, target) in done.iter().map(BatchTarget::from).enumerate() {
            let mut is_cancelled = false;
            let outcome = async {
                let plan = self.plan_purge_with(&target, &mut census).await?;
                let report = |purge| {
                    let flow = progress(CleanUpProgress { batches, of_batches, batch: target.id, purge });
                    is_cancelled = flow.is_break();
                    flow
                };
                Ok::<_, Error>(self.execute(&plan, 0, report).await? == plan.chunks.len())
            };
            match outcome.await {
                Ok(true) => result.purged.push(target.id),
                Ok(false) => {}
                Err(error) if error.is_connection() => return Err(error),
                Err(error) => result.kept.push((target.id, error)),
            }
            if is_cancelled {
                result.left = of_batches - result.purged.len() - result.kept.len();
                break;
            }
        }
        Ok(result)
    }
}
