//! The state shared by the simulated daemons.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Options;
use super::pace::Pace;
use super::scenario::Submission;
use super::volume::Volume;
use queuekeeper_zookeeper::Config;

/// The environment of a demo, besides the queue.
#[derive(Debug)]
pub(super) struct World {
    /// The daemons' connection to ZooKeeper.
    pub(super) zookeeper: Config,
    /// The seed of all choices.
    pub(super) seed: u64,
    /// The number of jobs in the queue at the start, which is kept approximately.
    pub(super) jobs: usize,
    /// The speed.
    pub(super) pace: Pace,
    /// The daemons' working storage.
    pub(super) volume: Volume,
    /// The manifests of batches that are not acquired yet.
    pub(super) manifests: Manifests,
    /// Whether alerts are enabled. A stall then lasts long enough for one, and people leave time for the rules.
    pub(super) alerts: bool,
    /// The jobs that wait for space, each in its daemon.
    pub(super) waiting: Arc<Waiting>,
}

impl World {
    /// The initial state.
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

/// The manifests, by the batch's UUID.
///
/// A batch's `submission` has the address of its manifest: the daemon that acquires the batch fetches it.
#[derive(Debug, Default)]
pub(super) struct Manifests {
    left: Mutex<HashMap<String, Arc<Submission>>>,
}

impl Manifests {
    /// Adds a manifest.
    pub(super) fn leave(&self, submission: Submission) {
        self.left.lock().insert(submission.uuid.clone(), Arc::new(submission));
    }

    /// Fetches one; `None` for a batch that the demo did not submit.
    pub(super) fn fetch(&self, uuid: &str) -> Option<Arc<Submission>> {
        self.left.lock().get(uuid).cloned()
    }

    /// Removes a manifest whose jobs exist.
    pub(super) fn remove(&self, uuid: &str) {
        self.left.lock().remove(uuid);
    }

    /// How many batches are not acquired yet.
    pub(super) fn len(&self) -> usize {
        self.left.lock().len()
    }
}

/// Counts the jobs that wait for space, and logs when they fill the pool and when they no longer do.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    jobs: AtomicUsize,
    /// Since when they fill the pool.
    full_since: Mutex<Option<Instant>>,
}

/// How many jobs a daemon of Provisioning can keep at once, as in production.
pub(super) const PROVISIONING_POOL: usize = 5;

impl Waiting {
    /// Counts a job as waiting until the returned guard is dropped.
    pub(super) fn begin(self: &Arc<Self>, used_ratio: f64) -> WaitingJob {
        if self.jobs.fetch_add(1, Ordering::Relaxed) + 1 == PROVISIONING_POOL {
            *self.full_since.lock() = Some(Instant::now());
            tracing::info!(
                used_percent = percent(used_ratio),
                "stall: {PROVISIONING_POOL} jobs in Provisioning wait for space, and no other job is taken",
            );
        }
        WaitingJob { waiting: Arc::clone(self) }
    }

    /// For how long they have filled the pool; `None` while they do not.
    pub(super) fn stalled_for(&self) -> Option<Duration> {
        self.full_since.lock().map(|since| since.elapsed())
    }

    /// Whether no job waits.
    pub(super) fn is_over(&self) -> bool {
        self.jobs.load(Ordering::Relaxed) == 0
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
            *self.waiting.full_since.lock() = None;
            tracing::info!("the stall has ended: space was freed, and jobs leave Provisioning again");
        }
    }
}

/// Percent, rounded, for the log.
fn percent(ratio: f64) -> u8 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of the volume is 0 to 1")]
    let percent = (ratio * 100.0).round() as u8;
    percent
}
