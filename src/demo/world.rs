//! What the simulated daemons share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::Options;
use super::pace::Pace;
use super::scenario::Submission;
use super::volume::Volume;
use queuekeeper_zookeeper::Config;

/// Everything outside the queue itself that a demo consists of.
#[derive(Debug)]
pub(super) struct World {
    /// How each daemon reaches ZooKeeper.
    pub(super) zookeeper: Config,
    /// What every choice follows from.
    pub(super) seed: u64,
    /// How many jobs the queue has at the start, and about how many it keeps.
    pub(super) jobs: usize,
    /// How fast everything goes.
    pub(super) pace: Pace,
    /// The daemons' working storage.
    pub(super) volume: Volume,
    /// The manifests of batches that are not yet acquired.
    pub(super) manifests: Manifests,
    /// Whether alerts are raised. A stall lasts long enough for one then, and people leave time for what it starts.
    pub(super) alerts: bool,
    /// The jobs that wait for space, each inside its daemon.
    pub(super) waiting: Arc<Waiting>,
}

impl World {
    /// The world at the beginning.
    pub(super) fn new(options: &Options, zookeeper: Config) -> Self {
        Self {
            zookeeper,
            seed: options.seed,
            jobs: options.jobs,
            pace: Pace::new(options.rate),
            volume: Volume::new(),
            manifests: Manifests::default(),
            alerts: options.with_prometheus,
            waiting: Arc::default(),
        }
    }
}

/// The manifests where their depositors left them, by the batch's UUID.
///
/// A batch's `submission` names its manifest and does not hold it: the daemon that acquires the batch fetches it.
#[derive(Debug, Default)]
pub(super) struct Manifests {
    left: Mutex<HashMap<String, Arc<Submission>>>,
}

impl Manifests {
    /// Leaves a manifest to be fetched.
    pub(super) fn leave(&self, submission: Submission) {
        self.left.lock().insert(submission.uuid.clone(), Arc::new(submission));
    }

    /// Fetches one; `None` for a batch that the demo did not submit.
    pub(super) fn fetch(&self, uuid: &str) -> Option<Arc<Submission>> {
        self.left.lock().get(uuid).cloned()
    }

    /// Removes one whose jobs exist.
    pub(super) fn remove(&self, uuid: &str) {
        self.left.lock().remove(uuid);
    }

    /// How many batches are not yet acquired.
    pub(super) fn len(&self) -> usize {
        self.left.lock().len()
    }
}

/// How many jobs wait for space, and the log's lines when they begin to fill the pool and cease to.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    jobs: AtomicUsize,
}

/// How many jobs a daemon of Provisioning can keep at once: as many as the real ones.
pub(super) const PROVISIONING_POOL: usize = 5;

impl Waiting {
    /// Counts a job that waits until what is returned is dropped.
    pub(super) fn begin(self: &Arc<Self>, used_ratio: f64) -> WaitingJob {
        if self.jobs.fetch_add(1, Ordering::Relaxed) + 1 == PROVISIONING_POOL {
            tracing::info!(
                used_percent = percent(used_ratio),
                "stall: {PROVISIONING_POOL} jobs in Provisioning wait for space, and no other is looked at",
            );
        }
        WaitingJob { waiting: Arc::clone(self) }
    }
}

/// A job that waits for space.
#[derive(Debug)]
pub(super) struct WaitingJob {
    waiting: Arc<Waiting>,
}

impl Drop for WaitingJob {
    fn drop(&mut self) {
        if self.waiting.jobs.fetch_sub(1, Ordering::Relaxed) == PROVISIONING_POOL {
            tracing::info!("the stall is over: space was freed, and jobs leave Provisioning again");
        }
    }
}

/// Whole percents, for the log.
fn percent(ratio: f64) -> u8 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of the volume is 0 to 1")]
    let percent = (ratio * 100.0).round() as u8;
    percent
}
