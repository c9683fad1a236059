//! Occasional faults, as in production: one at a time, repaired after a while.

use std::convert::Infallible;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::sleep;

use super::daemon::{Daemon, unless_lost};
use super::details::Details;
use super::world::World;
use queuekeeper_queue::path::{LockFolder, Path};
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Error, Job, JobChange, LockedJob, Queue, Transaction};

/// A daemon that crashes at bad moments.
#[derive(Debug)]
pub(super) struct FaultyDaemon {
    world: Arc<World>,
    count: usize,
    /// The fault that it created and has not repaired yet, in case its session is lost in between.
    open: Option<Mishap>,
}

/// A fault that was created.
#[derive(Debug)]
enum Mishap {
    /// A znode that a crash left behind.
    Left(Path),
    /// A failed job that stays locked. It ends with the session.
    KeptLocked(Box<LockedJob>),
}

impl FaultyDaemon {
    pub(super) fn new(world: &Arc<World>) -> Self {
        Self { world: Arc::clone(world), count: 0, open: None }
    }

    async fn blunder(&mut self, queue: &Queue) -> Result<(), Error> {
        self.count += 1;
        self.open = match self.count % 3 {
            1 => self.forget_entry(queue).await?,
            2 => self.forget_storage_lock(queue).await?,
            _ => self.keep_lock(queue).await?,
        };
        Ok(())
    }

    /// The daemons of production change a job in several writes; after a crash between them the old entry remains.
    async fn forget_entry(&self, queue: &Queue) -> Result<Option<Mishap>, Error> {
        let Some(job) = Self::finished(queue).await? else { return Ok(None) };
        let Ok(priority) = job.priority() else { return Ok(None) };
        let path = Path::entry(JobState::Recording, priority, job.id);
        Self::leave(queue, path, "a daemon crashed and left an orphan entry behind").await
    }

    /// Production's storage locks are persistent: they survive a crash.
    async fn forget_storage_lock(&self, queue: &Queue) -> Result<Option<Mishap>, Error> {
        let Some(job) = Self::finished(queue).await? else { return Ok(None) };
        let path = Path::object_lock(LockFolder::Storage, &Details::of(self.world.seed, &job).ark);
        Self::leave(queue, path, "a daemon crashed and left a storage lock behind").await
    }

    /// A daemon that throws an exception at a bad moment fails its job and never unlocks it.
    async fn keep_lock(&self, queue: &Queue) -> Result<Option<Mishap>, Error> {
        let (Some(mut job), _) = queue.acquire_job(JobState::Estimating, Timestamp::now()).await? else {
            return Ok(None);
        };
        let message = "[error] EstimateHandler: java.lang.NullPointerException: Cannot invoke \"String.length()\"";
        let failed = queue.step_job(&mut job, &JobChange::failure(message), Timestamp::now()).await;
        if unless_lost("a mishap", failed)?.is_none() {
            unless_lost("releasing a job", queue.unlock_job(&job).await)?;
            return Ok(None);
        }
        tracing::info!(path = %job.lock.path, "a daemon failed a job and forgot to unlock it");
        Ok(Some(Mishap::KeptLocked(Box::new(job))))
    }

    async fn finished(queue: &Queue) -> Result<Option<Job>, Error> {
        // The newest is purged last.
        let entries = queue.entries(JobState::Completed).await?.entries;
        let Some(newest) = entries.iter().max_by_key(|entry| entry.job) else { return Ok(None) };
        unless_lost("reading a job", queue.load_job(newest.job).await)
    }

    async fn leave(queue: &Queue, path: Path, what: &'static str) -> Result<Option<Mishap>, Error> {
        let mut transaction = Transaction::new();
        transaction.create(path.clone(), Vec::new());
        if unless_lost("a mishap", queue.commit(&transaction).await)?.is_none() {
            return Ok(None);
        }
        tracing::info!(%path, "{what}");
        Ok(Some(Mishap::Left(path)))
    }

    async fn repair(&mut self, queue: &Queue) -> Result<(), Error> {
        match &self.open {
            Some(Mishap::Left(path)) => {
                let mut transaction = Transaction::new();
                transaction.delete(path.clone(), None);
                unless_lost("repairing a mishap", queue.commit(&transaction).await)?;
            }
            Some(Mishap::KeptLocked(job)) => {
                unless_lost("repairing a mishap", queue.unlock_job(job).await)?;
            }
            None => return Ok(()),
        }
        self.open = None;
        Ok(())
    }
}

impl Daemon for FaultyDaemon {
    fn name(&self) -> &'static str {
        "clumsy"
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
