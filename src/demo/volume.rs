//! The simulated working storage: space is taken when a job goes to Downloading, and freed after Notify.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::catalogue::{GIB, TIB};
use crate::metrics::storage::{Space, Storage};
use queuekeeper_queue::id::JobId;

/// The volume's size.
const SIZE_BYTES: u64 = 4 * TIB;

/// What lies on it and is none of the queue's.
const OTHER_BYTES: u64 = 900 * GIB;

/// The part of the volume above which jobs are kept back, as the daemons have it by default.
pub(super) const THRESHOLD: f64 = 0.8;

/// The volume that the simulated daemons work on; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Volume {
    taken: Arc<Mutex<HashMap<JobId, u64>>>,
    told: Storage,
}

impl Volume {
    /// An empty one.
    pub(super) fn new() -> Self {
        let volume = Self { taken: Arc::default(), told: Storage::told(THRESHOLD) };
        volume.tell(&volume.taken.lock());
        volume
    }

    /// What `/metrics` is told of it.
    pub(super) fn told(&self) -> &Storage {
        &self.told
    }

    /// Takes space for a job where the daemons' rule lets it through; `false` where it must wait.
    pub(super) fn try_take(&self, job: JobId, bytes: u64) -> bool {
        let mut taken = self.taken.lock();
        let left = space(&taken).left_below(THRESHOLD);
        let fits = taken.contains_key(&job) || i64::try_from(bytes).is_ok_and(|bytes| bytes <= left);
        if fits {
            taken.insert(job, bytes);
            self.tell(&taken);
        }
        fits
    }

    /// Takes space for a job that is past Provisioning, however it came there.
    pub(super) fn take(&self, job: JobId, bytes: u64) {
        let mut taken = self.taken.lock();
        taken.insert(job, bytes);
        self.tell(&taken);
    }

    /// Frees a job's space.
    pub(super) fn free(&self, job: JobId) {
        let mut taken = self.taken.lock();
        if taken.remove(&job).is_some() {
            self.tell(&taken);
        }
    }

    /// The jobs that space is taken for.
    pub(super) fn holders(&self) -> Vec<JobId> {
        self.taken.lock().keys().copied().collect()
    }

    /// The part of the volume that is in use, 0 to 1.
    pub(super) fn used_ratio(&self) -> f64 {
        let space = space(&self.taken.lock());
        1.0 - space.free_bytes as f64 / space.size_bytes as f64
    }

    fn tell(&self, taken: &HashMap<JobId, u64>) {
        self.told.tell(space(taken));
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
    fn a_job_waits_while_it_would_exceed_the_threshold_and_goes_on_when_space_is_freed() {
        let volume = Volume::new();
        let large = 1_200 * GIB;
        assert!(volume.try_take(JobId::new(1), large));
        assert!(!volume.try_take(JobId::new(2), large), "2,100 of 4,096 GiB are used and 1,200 more exceed 80 %");
        assert!(volume.try_take(JobId::new(3), GIB), "a small one still fits");
        assert!(volume.try_take(JobId::new(1), large), "what is taken is not taken twice");
        let space = volume.told().space().unwrap();
        assert_eq!(space.size_bytes - space.free_bytes, OTHER_BYTES + large + GIB);
        volume.free(JobId::new(1));
        assert!(volume.try_take(JobId::new(2), large));
        assert_eq!(volume.holders().len(), 2);
    }

    #[test]
    fn a_volume_cannot_be_fuller_than_full() {
        let volume = Volume::new();
        volume.take(JobId::new(1), 9 * TIB);
        assert_eq!(volume.told().space().unwrap().free_bytes, 0);
        assert!((volume.used_ratio() - 1.0).abs() < 1e-9);
    }
}
