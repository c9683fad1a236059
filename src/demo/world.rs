//! What the made-up people of a demo share.

use parking_lot::Mutex;

use super::Options;
use super::origin::Origins;
use super::pace::Pace;
use queuekeeper_ingest::working::SizeLimit;
use queuekeeper_queue::id::BatchId;
use queuekeeper_zookeeper::Config;

/// The environment of a demo, besides the queue.
pub(super) struct World {
    /// The connection to ZooKeeper.
    pub(super) zookeeper: Config,
    /// The seed of all choices.
    pub(super) seed: u64,
    /// The number of jobs in the queue at the start, which is kept approximately.
    pub(super) jobs: usize,
    /// The speed.
    pub(super) pace: Pace,
    /// The size of the working storage.
    pub(super) storage: SizeLimit,
    /// The servers that deposits are fetched from.
    pub(super) origins: Origins,
    /// The last large deposit.
    pub(super) large: Mutex<Option<BatchId>>,
    /// Whether alerts are enabled. A stall then lasts long enough for one, and people leave time for the rules.
    pub(super) alerts: bool,
}

impl World {
    /// The initial state.
    pub(super) fn new(options: &Options, zookeeper: Config, storage: SizeLimit, origins: Origins) -> Self {
        let (seed, jobs, pace) = (options.seed, options.jobs, Pace::new(options.rate));
        Self { zookeeper, seed, jobs, pace, storage, origins, large: Mutex::default(), alerts: options.with_prometheus }
    }
}
