//! The daemons of batches: one creates the jobs of new ones, one reports finished ones.

use std::convert::Infallible;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::sleep;

use super::daemon::{Daemon, unless_lost};
use super::world::World;
use crate::mirror::words::counted;
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::{Due, Error, ItemChange, LockedBatch, Queue};

/// Acquires new batches and creates their jobs.
#[derive(Debug)]
pub(super) struct Acquirer {
    pub(super) world: Arc<World>,
}

/// Reports batches whose jobs have finished.
#[derive(Debug)]
pub(super) struct Reporter {
    pub(super) world: Arc<World>,
}

impl Daemon for Acquirer {
    fn name(&self) -> &'static str {
        "batch"
    }

    async fn work(&mut self, queue: Queue) -> Result<Infallible, Error> {
        loop {
            let mut list = queue.poll_batches(Due::Jobs).await?;
            while let Some(batch) = list.next(Timestamp::now()).await? {
                self.make_jobs(&queue, &batch).await?;
            }
            sleep(self.world.pace.time(0.5)).await;
        }
    }
}

impl Acquirer {
    async fn make_jobs(&self, queue: &Queue, batch: &LockedBatch) -> Result<(), Error> {
        // Fetching the manifest takes a while.
        sleep(self.world.pace.time(0.4)).await;
        let uuid = batch.batch.submitted().value.uuid.into_owned();
        let now = Timestamp::now();
        let change = match self.world.manifests.fetch(&uuid) {
            Some(submission) => {
                let made = queue.create_jobs(batch.batch.id, &submission.jobs(now), now).await;
                match unless_lost("creating the jobs of a batch", made)? {
                    Some(_) => ItemChange::success(),
                    None => ItemChange::to(BatchState::Failed).with_message("[error] its jobs could not be created"),
                }
            }
            None => ItemChange::to(BatchState::Failed).with_message("[error] the manifest cannot be fetched: HTTP 404"),
        };
        let finished = queue.finish_batch(batch, &change, Timestamp::now()).await;
        if unless_lost("acquiring a batch", finished)?.is_none() {
            unless_lost("releasing a batch", queue.unlock_batch(batch).await)?;
        }
        self.world.manifests.remove(&uuid);
        Ok(())
    }
}

impl Daemon for Reporter {
    fn name(&self) -> &'static str {
        "report"
    }

    async fn work(&mut self, queue: Queue) -> Result<Infallible, Error> {
        loop {
            for due in [Due::Report, Due::UpdatedReport] {
                let mut list = queue.poll_batches(due).await?;
                while let Some(batch) = list.next(Timestamp::now()).await? {
                    report(&queue, &batch).await?;
                }
            }
            sleep(self.world.pace.time(1.0)).await;
        }
    }
}

async fn report(queue: &Queue, batch: &LockedBatch) -> Result<(), Error> {
    let report = queue.batch_report(batch.batch.id).await?;
    let message = match report.failed.len() {
        0 => String::new(),
        failed => format!("{failed} of {} failed", counted(report.len() as u64, "job", "jobs")),
    };
    let reported = queue.finish_report(batch, &report, &message, Timestamp::now()).await;
    if unless_lost("reporting a batch", reported)?.is_none() {
        unless_lost("releasing a batch", queue.unlock_batch(batch).await)?;
    }
    Ok(())
}
