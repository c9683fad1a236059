//! The simulated working storage: space is taken when a job enters Downloading, and freed after Notify.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::catalogue::{GIB, TIB};
use crate::metrics::storage::{Space, Storage};
use queuekeeper_queue::id::JobId;

/// The volume's size.
const SIZE_BYTES: u64 = 4 * TIB;

/// What an operator adds where a deposit fills it: enough for all of a large one.
const ADDED_BYTES: u64 = 4 * TIB;

/// The space used by other data.
const OTHER_BYTES: u64 = 900 * GIB;

/// The used part above which jobs are held back, as in the daemons' default.
pub(super) const THRESHOLD: f64 = 0.8;

/// The volume of the simulated daemons; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Volume {
    used: Arc<Mutex<Used>>,
    measured: Storage,
}

#[derive(Debug, Default)]
struct Used {
    taken: HashMap<JobId, u64>,
    /// What an operator has added to its size.
    added_bytes: u64,
}

impl Volume {
    /// An empty one.
    pub(super) fn new() -> Self {
        let volume = Self { used: Arc::default(), measured: Storage::reported(THRESHOLD) };
        volume.measure(&volume.used.lock());
        volume
    }

    /// The measurement for `/metrics`.
    pub(super) fn measured(&self) -> &Storage {
        &self.measured
    }

    /// Takes space for a job if the daemons' rule allows it; `false` if it must wait.
    pub(super) fn try_take(&self, job: JobId, bytes: u64) -> bool {
        let mut used = self.used.lock();
        let left = used.space().left_below(THRESHOLD);
        let fits = used.taken.contains_key(&job) || i64::try_from(bytes).is_ok_and(|bytes| bytes <= left);
        if fits {
            used.taken.insert(job, bytes);
            self.measure(&used);
        }
        fits
    }

    /// Takes space for a job that is past Provisioning, in whatever way.
    pub(super) fn take(&self, job: JobId, bytes: u64) {
        let mut used = self.used.lock();
        used.taken.insert(job, bytes);
        self.measure(&used);
    }

    /// Frees a job's space.
    pub(super) fn free(&self, job: JobId) {
        let mut used = self.used.lock();
        if used.taken.remove(&job).is_some() {
            self.measure(&used);
        }
    }

    /// Makes it larger.
    pub(super) fn enlarge(&self) {
        let mut used = self.used.lock();
        used.added_bytes = ADDED_BYTES;
        self.measure(&used);
    }

    /// Gives it its usual size again, if what is on it then leaves room for jobs; `false` if not.
    pub(super) fn shrink(&self) -> bool {
        let mut used = self.used.lock();
        let added_bytes = std::mem::take(&mut used.added_bytes);
        let has_room = used.space().left_below(THRESHOLD) > 0;
        if !has_room {
            used.added_bytes = added_bytes;
        }
        self.measure(&used);
        has_room
    }

    /// The jobs that use space.
    pub(super) fn holders(&self) -> Vec<JobId> {
        self.used.lock().taken.keys().copied().collect()
    }

    /// The part of the volume that is in use, 0 to 1.
    pub(super) fn used_ratio(&self) -> f64 {
        let space = self.used.lock().space();
        1.0 - space.free_bytes as f64 / space.size_bytes as f64
    }

    fn measure(&self, used: &Used) {
        self.measured.report(used.space());
    }
}

impl Used {
    fn space(&self) -> Space {
        let used = self.taken.values().fold(OTHER_BYTES, |sum, bytes| sum.saturating_add(*bytes));
        let size_bytes = SIZE_BYTES + self.added_bytes;
        Space { size_bytes, free_bytes: size_bytes.saturating_sub(used) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_waits_while_it_would_exceed_the_threshold_and_continues_when_space_is_freed() {
        let volume = Volume::new();
        let large = 1_200 * GIB;
        assert!(volume.try_take(JobId::new(1), large));
        assert!(!volume.try_take(JobId::new(2), large), "2,100 of 4,096 GiB are used and 1,200 more exceed 80 %");
        assert!(volume.try_take(JobId::new(3), GIB), "a small one still fits");
        assert!(volume.try_take(JobId::new(1), large), "the space of a job is not counted twice");
        let space = volume.measured().space().unwrap();
        assert_eq!(space.size_bytes - space.free_bytes, OTHER_BYTES + large + GIB);
        volume.free(JobId::new(1));
        assert!(volume.try_take(JobId::new(2), large));
        assert_eq!(volume.holders().len(), 2);

        assert!(!volume.try_take(JobId::new(4), 2 * large));
        volume.enlarge();
        assert!(volume.try_take(JobId::new(4), 2 * large));
        assert!(!volume.shrink(), "what is on it would not leave room for any job");
        assert!(volume.try_take(JobId::new(5), GIB));
        volume.free(JobId::new(4));
        assert!(volume.shrink());
        assert_eq!(volume.measured().space().unwrap().size_bytes, 4 * TIB);
    }

    #[test]
    fn the_use_of_a_volume_is_limited_to_its_size() {
        let volume = Volume::new();
        volume.take(JobId::new(1), 9 * TIB);
        assert_eq!(volume.measured().space().unwrap().free_bytes, 0);
        assert!((volume.used_ratio() - 1.0).abs() < 1e-9);
    }
}
