//! One job in one daemon's hands.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;

use super::daemon::unless_lost;
use super::details::Details;
use super::fate;
use super::world::World;
use queuekeeper_queue::path::LockFolder;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Error, JobChange, JobValue, Lock, LockedJob, Queue};

/// A job that a daemon holds, and what it needs to work on it.
#[derive(Debug)]
pub(super) struct Shift {
    pub(super) world: Arc<World>,
    pub(super) queue: Queue,
    pub(super) job: LockedJob,
    pub(super) details: Details,
    /// How long it takes.
    pub(super) time: Duration,
}

impl Shift {
    /// Works on the job and hands it on, or fails it.
    ///
    /// # Errors
    /// When the session is lost, and the job's lock with it. What others did to the job meanwhile is no error: the job
    /// is theirs then.
    pub(super) async fn work(self) -> Result<(), Error> {
        let lock = self.lock_object().await?;
        self.work_through().await;
        let id = self.details.job;
        let failure = fate::failure(self.world.seed, self.details.subject());
        let failure = failure.filter(|failure| failure.state == self.job.state);
        let change = match failure {
            Some(failure) => JobChange::failure(failure.message),
            None if self.record_results().await? => JobChange::success(),
            None => JobChange::failure("[error] the job was changed while it was worked on"),
        };
        let finished = self.queue.finish_job(&self.job, &change, Timestamp::now()).await;
        if let Some(lock) = lock {
            unless_lost("releasing an object", self.queue.unlock(&lock).await)?;
        }
        match unless_lost("handing on a job", finished)? {
            Some(changed) if changed.to == JobState::Completed => self.world.volume.free(id),
            Some(_) => {}
            None => {
                // Space taken ahead for a job that did not go to Downloading after all.
                if self.job.state == JobState::Provisioning {
                    self.world.volume.free(id);
                }
                unless_lost("releasing a job", self.queue.unlock_job(&self.job).await)?;
            }
        }
        Ok(())
    }

    /// Locks what the state's work needs for itself alone; waits while another has it.
    async fn lock_object(&self) -> Result<Option<Lock>, Error> {
        loop {
            let Details { ark, local_ids, owner, .. } = &self.details;
            let locked = match self.job.state {
                JobState::Processing => match local_ids.first() {
                    Some(local_id) => self.queue.lock_local_id(local_id, owner).await,
                    None => return Ok(None),
                },
                JobState::Storing => self.queue.lock_object(LockFolder::Storage, ark).await,
                JobState::Recording => self.queue.lock_object(LockFolder::Inventory, ark).await,
                JobState::Pending
                | JobState::Estimating
                | JobState::Provisioning
                | JobState::Downloading
                | JobState::Notify
                | JobState::Completed
                | JobState::Failed
                | JobState::Held
                | JobState::Deleted => return Ok(None),
            };
            match locked {
                Err(Error::Conflict(_)) => sleep(self.world.pace.time(1.0)).await,
                locked => return unless_lost("locking an object", locked),
            }
        }
    }

    /// Lets the time pass that the work takes, and space be taken.
    async fn work_through(&self) {
        let (world, Details { job, bytes, .. }) = (&self.world, &self.details);
        match self.job.state {
            JobState::Provisioning => {
                sleep(self.time).await;
                if world.volume.try_take(*job, *bytes) {
                    return;
                }
                let _counted = world.waiting.begin(world.volume.used_ratio());
                // The real daemons look again every five minutes.
                while !world.volume.try_take(*job, *bytes) {
                    sleep(world.pace.time(3.0)).await;
                }
            }
            JobState::Downloading
            | JobState::Processing
            | JobState::Storing
            | JobState::Recording
            | JobState::Notify => {
                // Someone may have resumed the job here, past Provisioning.
                world.volume.take(*job, *bytes);
                sleep(self.time).await;
            }
            JobState::Pending
            | JobState::Estimating
            | JobState::Completed
            | JobState::Failed
            | JobState::Held
            | JobState::Deleted => sleep(self.time).await,
        }
    }

    /// Writes what the work found out; `false` where others changed the job meanwhile.
    async fn record_results(&self) -> Result<bool, Error> {
        let values = results(self.job.state, &self.details.found());
        if values.is_empty() {
            return Ok(true);
        }
        let written = self.queue.update_job(&self.job, &values).await;
        Ok(unless_lost("writing results", written)?.is_some())
    }
}

/// What the work on an object finds out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Findings<'a> {
    pub(super) bytes: u64,
    pub(super) ark: &'a str,
    pub(super) local_ids: &'a [String],
    pub(super) title: &'a str,
    pub(super) creator: &'a str,
}

/// What a job's znodes say once it has left a state with success.
pub(super) fn results(state: JobState, found: &Findings<'_>) -> Vec<JobValue> {
    let Findings { bytes, ark, local_ids, title, creator } = *found;
    let manifest_url = format!("https://store.example.org/manifest/9501/{}", ark.replace(":/", "%3A%2F"));
    match state {
        JobState::Estimating => vec![JobValue::SpaceNeeded((bytes > 0).then_some(bytes))],
        JobState::Processing => vec![
            JobValue::Identifiers { ark: ark.to_owned(), local_ids: local_ids.to_vec() },
            JobValue::Metadata {
                who: creator.to_owned(),
                what: title.to_owned(),
                when: "(:unas)".to_owned(),
                location: ark.to_owned(),
            },
        ],
        JobState::Storing => vec![
            JobValue::Store { manifest_url: manifest_url.clone(), mode: format!("add/9501/{ark}"), delete: None },
            JobValue::Inventory { manifest_url, mode: format!("add/9501/{ark}") },
        ],
        JobState::Pending
        | JobState::Provisioning
        | JobState::Downloading
        | JobState::Recording
        | JobState::Notify
        | JobState::Completed
        | JobState::Failed
        | JobState::Held
        | JobState::Deleted => Vec::new(),
    }
}
