//! Jobs whose files lie on another volume than ours: they are left to the processes that see that volume.
//!
//! The grant says on which volume the files of a job lie. It is written with the change to Downloading, so that it is
//! found by the process that has found the job in that state or a later one. While there is no volume but ours, nothing
//! is read for this.

use std::sync::atomic::Ordering;

use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Error, Job};
use zookeeper_client::{AddWatchMode, Client};

use super::arrivals;
use super::session::Session;
use super::volume_grants::AllGrants;
use crate::spec::JobSpec;

impl Session {
    /// The grants on all volumes, for those who have found jobs in a state.
    pub(super) async fn grants_everywhere(&self) -> Result<AllGrants<'_>, Error> {
        self.volumes.look(&self.queue).await
    }

    /// Whether the files of a job in a state lie on another volume, even one that no watch has reported yet.
    pub(super) async fn is_elsewhere(&self, state: JobState, job: JobId) -> Result<bool, Error> {
        if !state.has_content() {
            return Ok(false);
        }
        self.volumes.is_stale.store(true, Ordering::Relaxed);
        Ok(self.grants_everywhere().await?.is_elsewhere(job))
    }

    /// Whether it is to be remembered of a job that fails that its files are on our volume: where there are others, it
    /// would be taken by anyone when it is resumed.
    pub(super) fn keeps_volume(&self, job: &Job) -> bool {
        self.volumes.has_others.load(Ordering::Relaxed)
            && JobSpec::of(job).is_ok_and(|spec| self.services.working.job(&spec).path().exists())
    }

    /// Takes note when volumes come, or go, until it is dropped.
    pub(super) async fn watch_volumes(&self, client: &Client) {
        let folder = Path::spaces().to_string();
        loop {
            let mut watcher = arrivals::set(client, &folder, AddWatchMode::Persistent).await;
            loop {
                self.volumes.is_stale.store(true, Ordering::Relaxed);
                if arrivals::next(&mut watcher).await.is_none() {
                    break;
                }
            }
        }
    }
}
