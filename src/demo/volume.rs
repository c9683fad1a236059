//! The simulated working storage: space is taken when a job enters Downloading, and freed after Notify.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::catalogue::{GIB, TIB};
use crate::metrics::storage::{Space, Storage};
use queuekeeper_queue::id::JobId;

/// The volume's size.
const SIZE_BYTES: u64 = 4 * TIB;

/// The space used by other data.
const OTHER_BYTES: u64 = 900 * GIB;

/// The used part above which jobs are held back, as in the daemons' default.
pub(super) const THRESHOLD: f64 = 0.8;

/// The volume of the simulated daemons; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Volume {
    taken: Arc<Mutex<HashMap<JobId, u64>>>,
    measured: Storage,
}

impl Volume {
    /// An empty one.
    pub(super) fn new() -> Self {
        let volume = Self { taken: Arc::default(), measured: Storage::reported(THRESHOLD) };
        volume.measure(&volume.taken.lock());
        volume
    }

    /// The measurement for `/metrics`.
    pub(super) fn measured(&self) -> &Storage {
        &self.measured
    }

    /// Takes space for a job if the daemons' rule allows it; `false` if it must wait.
    pub(super) fn try_take(&self, job: JobId, bytes: u64) -> bool {
        let mut taken = self.taken.lock();
        let left = space(&taken).left_below(THRESHOLD);
        let fits = taken.contains_key(&job) || i64::try_from(bytes).is_ok_and(|bytes| bytes <= left);
        if fits {
            taken.insert(job, bytes);
            self.measure(&taken);
        }
        fits
    }

    /// Takes space for a job that is past Provisioning, in whatever way.
    pub(super) fn take(&self, job: JobId, bytes: u64) {
        let mut taken = self.taken.lock();
        taken.insert(job, bytes);
        self.measure(&taken);
    }

    /// Frees a job's space.
    pub(super) fn free(&self, job: JobId) {
        let mut taken = self.taken.lock();
        if taken.remove(&job).is_some() {
            self.measure(&taken);
        }
    }

    /// The jobs that use space.
    pub(super) fn holders(&self) -> Vec<JobId> {
        self.taken.lock().keys().copied().collect()
    }

    /// The part of the volume that is in use, 0 to 1.
    pub(super) fn used_ratio(&self) -> f64 {
        let space = space(&self.taken.lock());
        1.0 - space.free_bytes as f64 / space.size_bytes as f64
    }

    fn measure(&self, taken: &HashMap<JobId, u64>) {
        self.measured.tell(space(taken));
    }
}

fn space(taken: &HashMap<JobId, u64>) -> Space {
    let used = taken.values().fold(OTHER_BYTES, |sum, bytes| sum.saturating_add(*bytes));
    Space { size_bytes: SIZE_BYTES, free_bytes: SIZE_BYTES.saturating_sub(used) }
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
    }

    #[test]
    fn the_use_of_a_volume_is_limited_to_its_size() {
        let volume = Volume::new();
        volume.take(JobId::new(1), 9 * TIB);
        assert_eq!(volume.measured().space().unwrap().free_bytes, 0);
        assert!((volume.used_ratio() - 1.0).abs() < 1e-9);
    }
}
