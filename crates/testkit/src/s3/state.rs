//! What the server holds, and what its parts share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use s3s::{S3Result, s3_error};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Settings;
use super::archive::Restores;
use super::blob::Blobs;
use super::bucket::Bucket;
use super::fault::Faults;
use super::log::Log;
use super::policy::Policy;

/// All buckets by name.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) buckets: BTreeMap<String, Bucket>,
    /// The number of the last upload.
    pub(super) uploads: u64,
}

impl State {
    pub(super) fn bucket(&self, name: &str) -> S3Result<&Bucket> {
        self.buckets.get(name).ok_or_else(|| s3_error!(NoSuchBucket, "The specified bucket does not exist"))
    }

    pub(super) fn bucket_mut(&mut self, name: &str) -> S3Result<&mut Bucket> {
        self.buckets.get_mut(name).ok_or_else(|| s3_error!(NoSuchBucket, "The specified bucket does not exist"))
    }
}

/// The server's clock, which may be wrong on purpose.
#[derive(Debug, Default)]
pub(super) struct Clock {
    skew_ms: AtomicI64,
}

impl Clock {
    pub(super) fn now(&self) -> SystemTime {
        let skew = self.skew_ms.load(Ordering::Relaxed);
        let by = Duration::from_millis(skew.unsigned_abs());
        if skew < 0 { SystemTime::now() - by } else { SystemTime::now() + by }
    }

    pub(super) fn is_right(&self) -> bool {
        self.skew_ms.load(Ordering::Relaxed) == 0
    }

    pub(super) fn set(&self, skew_ms: i64) {
        self.skew_ms.store(skew_ms, Ordering::Relaxed);
    }
}

/// What the parts of the server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) state: Mutex<State>,
    pub(super) blobs: Blobs,
    pub(super) faults: Faults,
    pub(super) log: Log,
    pub(super) restores: Restores,
    pub(super) clock: Clock,
    pub(super) policy: Policy,
    /// The tasks of connections and of writes that land late.
    pub(super) tasks: TaskTracker,
    /// Ends them.
    pub(super) end: CancellationToken,
}
