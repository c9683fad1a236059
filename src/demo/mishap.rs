//! Occasional faults, as in production: one at a time, repaired after a while. They come from programs that are not
//! ours: a daemon in Java that crashes at a bad moment, an admin's tool, a depositor's server.

use std::convert::Infallible;
use std::sync::Arc;

use tokio::time::sleep;

use super::person::{Person, unless_lost};
use super::world::World;
use queuekeeper_queue::path::{JobNode, LockFolder, Path};
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Error, Job, Queue, Transaction};

/// The collection whose depositor's server is away at times.
const AWAY: &str = "merritt_demo_content";

/// For how many seconds it is away, at the natural rate: less than a job is tried again.
const AWAY_SECONDS: f64 = 40.0;

/// Programs that fail at bad moments.
pub(super) struct FaultyPrograms {
    world: Arc<World>,
    count: usize,
    /// The znode that one of them left behind and that was not removed yet, in case its session is lost in between.
    left: Option<Path>,
}

impl FaultyPrograms {
    pub(super) fn new(world: &Arc<World>) -> Self {
        Self { world: Arc::clone(world), count: 0, left: None }
    }

    async fn blunder(&mut self, queue: &Queue) -> Result<(), Error> {
        self.count += 1;
        self.left = match self.count % 4 {
            1 => Self::forget_entry(queue).await?,
            2 => Self::forget_storage_lock(queue).await?,
            3 => Self::keep_lock(queue).await?,
            _ => {
                self.world.origins.go_away(AWAY, self.world.pace.time(AWAY_SECONDS));
                tracing::info!(collection = AWAY, "the server of a depositor is busy, and its jobs are retried later");
                None
            }
        };
        Ok(())
    }

    /// The daemons in Java change a job in several writes; after a crash between them the old entry remains.
    async fn forget_entry(queue: &Queue) -> Result<Option<Path>, Error> {
        let Some(job) = newest(queue, JobState::Completed).await? else { return Ok(None) };
        let Ok(priority) = job.priority() else { return Ok(None) };
        let path = Path::entry(JobState::Recording, priority, job.id);
        let mut transaction = Transaction::new();
        transaction.create(path.clone(), Vec::new());
        leave(queue, path, &transaction, "a daemon crashed and left an orphan entry behind").await
    }

    /// Their storage locks are persistent: they survive a crash.
    async fn forget_storage_lock(queue: &Queue) -> Result<Option<Path>, Error> {
        let Some(job) = newest(queue, JobState::Completed).await? else { return Ok(None) };
        let ark = job.identifiers().value.ark.into_owned();
        if ark.is_empty() {
            return Ok(None);
        }
        let path = Path::object_lock(LockFolder::Storage, &ark);
        let mut transaction = Transaction::new();
        transaction.create(path.clone(), Vec::new());
        leave(queue, path, &transaction, "a daemon crashed and left a storage lock behind").await
    }

    /// A program that throws an exception at a bad moment never unlocks its job.
    async fn keep_lock(queue: &Queue) -> Result<Option<Path>, Error> {
        let Some(job) = newest(queue, JobState::Failed).await? else { return Ok(None) };
        let path = Path::JobNode(job.id, JobNode::Lock);
        let mut transaction = Transaction::new();
        transaction.create_ephemeral(path.clone());
        leave(queue, path, &transaction, "a program locked a failed job and forgot to unlock it").await
    }

    async fn repair(&mut self, queue: &Queue) -> Result<(), Error> {
        if let Some(path) = &self.left {
            let mut transaction = Transaction::new();
            transaction.delete(path.clone(), None);
            unless_lost("repairing a mishap", queue.commit(&transaction).await)?;
            self.left = None;
        }
        Ok(())
    }
}

/// The newest job of a state, which is purged last.
async fn newest(queue: &Queue, state: JobState) -> Result<Option<Job>, Error> {
    let entries = queue.entries(state).await?.entries;
    let Some(newest) = entries.iter().max_by_key(|entry| entry.job) else { return Ok(None) };
    unless_lost("reading a job", queue.load_job(newest.job).await)
}

async fn leave(
    queue: &Queue,
    path: Path,
    transaction: &Transaction,
    what: &'static str,
) -> Result<Option<Path>, Error> {
    if unless_lost("a mishap", queue.commit(transaction).await)?.is_none() {
        return Ok(None);
    }
    tracing::info!(%path, "{what}");
    Ok(Some(path))
}

impl Person for FaultyPrograms {
    fn name(&self) -> &'static str {
        "faulty programs"
    }

    async fn work(&mut self, queue: Queue) -> Result<Infallible, Error> {
        loop {
            self.repair(&queue).await?;
            sleep(self.world.pace.time(110.0)).await;
            self.blunder(&queue).await?;
            sleep(self.world.pace.time(70.0)).await;
        }
    }
}
