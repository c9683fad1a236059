//! The work of a daemon on one job.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;

use super::daemon::unless_lost;
use super::details::Details;
use super::duty::{Duty, NeededSpace, RequiredLock};
use super::fate;
use super::world::World;
use queuekeeper_queue::path::LockFolder;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Error, JobChange, Lock, LockedJob, Queue};

/// A job that a daemon has locked, and what it needs to work on it.
#[derive(Debug)]
pub(super) struct Shift {
    pub(super) world: Arc<World>,
    pub(super) duty: &'static Duty,
    pub(super) queue: Queue,
    pub(super) job: LockedJob,
    pub(super) details: Details,
    /// The duration of the work.
    pub(super) time: Duration,
}

impl Shift {
    /// Works on the job and moves it on, or fails it.
    ///
    /// # Errors
    /// When the session is lost, and with it the lock. Concurrent changes of the job by others are no error: the work
    /// is abandoned then.
    pub(super) async fn work(self) -> Result<(), Error> {
        let lock = self.lock_object().await?;
        self.work_through().await;
        let id = self.details.job;
        let failure = fate::failure(self.world.seed, self.details.subject());
        let failure = failure.filter(|failure| failure.state == self.job.state);
        let change = match failure {
            Some(failure) => JobChange::failure(failure.message),
            None if self.record_results().await? => JobChange::success(),
            None => JobChange::failure("[error] the job was changed while it was being worked on"),
        };
        let finished = self.queue.finish_job(&self.job, &change, Timestamp::now()).await;
        if let Some(lock) = lock {
            unless_lost("releasing an object", self.queue.unlock(&lock).await)?;
        }
        match unless_lost("moving a job on", finished)? {
            Some(changed) if changed.to == JobState::Completed => self.world.volume.free(id),
            Some(_) => {}
            None => {
                // Space that was reserved for a job that did not enter Downloading.
                if self.job.state == JobState::Provisioning {
                    self.world.volume.free(id);
                }
                unless_lost("releasing a job", self.queue.unlock_job(&self.job).await)?;
            }
        }
        Ok(())
    }

    /// Takes the exclusive lock that the state's work requires; waits while another has it.
    async fn lock_object(&self) -> Result<Option<Lock>, Error> {
        loop {
            let Details { ark, local_ids, owner, .. } = &self.details;
            let locked = match self.duty.lock {
                RequiredLock::LocalId => match local_ids.first() {
                    Some(local_id) => self.queue.lock_local_id(local_id, owner).await,
                    None => return Ok(None),
                },
                RequiredLock::Storage => self.queue.lock_object(LockFolder::Storage, ark).await,
                RequiredLock::Inventory => self.queue.lock_object(LockFolder::Inventory, ark).await,
                RequiredLock::No => return Ok(None),
            };
            match locked {
                Err(Error::Conflict(_)) => sleep(self.world.pace.time(1.0)).await,
                locked => return unless_lost("locking an object", locked),
            }
        }
    }

    /// Waits for the duration of the work, and takes space.
    async fn work_through(&self) {
        let (world, Details { job, bytes, .. }) = (&self.world, &self.details);
        match self.duty.space {
            NeededSpace::Waits => {
                sleep(self.time).await;
                if world.volume.try_take(*job, *bytes) {
                    return;
                }
                let _counted = world.waiting.begin(world.volume.used_ratio());
                // The real daemons check again every five minutes.
                while !world.volume.try_take(*job, *bytes) {
                    sleep(world.pace.time(3.0)).await;
                }
            }
            NeededSpace::Has => {
                // A user may have resumed the job in this state, past Provisioning.
                world.volume.take(*job, *bytes);
                sleep(self.time).await;
            }
            NeededSpace::No => sleep(self.time).await,
        }
    }

    /// Writes the results of the work; `false` if others changed the job in the meantime.
    async fn record_results(&self) -> Result<bool, Error> {
        let values = (self.duty.results)(&self.details.found());
        if values.is_empty() {
            return Ok(true);
        }
        let written = self.queue.update_job(&self.job, &values).await;
        Ok(unless_lost("writing results", written)?.is_some())
    }
}
