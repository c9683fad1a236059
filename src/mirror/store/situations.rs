//! What a diagnosis is made from, as the mirror has it at one moment.

use jiff::Timestamp;

use super::MirrorStore;
use crate::mirror::image::{Batch, FaultQuery, Image};
use crate::mirror::past::{BatchEvent, PastEvent};
use crate::mirror::situation::{BatchSituation, JobSituation, StateSituation};
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::record::{BatchWait, JobProgress, Retry};
use queuekeeper_queue::state::JobState;

impl MirrorStore {
    /// What is known of a job; `None` where there is no such job. `space` is how many bytes a job may need and not be
    /// kept back, where working storage is measured; `now` is our own clock.
    #[must_use]
    pub fn job_situation(&self, id: JobId, space: Option<i64>, now: Timestamp) -> Option<JobSituation> {
        let flow = self.flow();
        let mut job = self.ask(now, space, |image, query| image.job_situation(id, &flow, query)).flatten()?;
        if let Some(lock) = &mut job.lock {
            lock.address = self.address(lock.session);
        }
        Some(job)
    }

    /// What is known of a state of jobs; `None` before the first walk.
    #[must_use]
    pub fn state_situation(&self, state: JobState, space: Option<i64>, now: Timestamp) -> Option<StateSituation> {
        let flow = self.flow();
        let mut state = self.ask(now, space, |image, query| image.state_situation(state, &flow, query))?;
        for pool in &mut state.pools {
            pool.address = self.address(pool.session);
        }
        Some(state)
    }

    /// What is known of a batch; `None` where there is no such batch.
    #[must_use]
    pub fn batch_situation(&self, id: BatchId, space: Option<i64>, now: Timestamp) -> Option<BatchSituation> {
        let (rates, flow) = (self.batch_rates(id), self.flow());
        let known = |image: &Image, query: FaultQuery<'_>| {
            let batch = image.batch_situation(id, rates, &image.worked_on(&flow, query), query)?;
            Some(BatchSituation { holds: image.holds_on(id, query.offset), ..batch })
        };
        let mut batch = self.ask(now, space, known).flatten()?;
        if let Some(lock) = &mut batch.lock {
            lock.address = self.address(lock.session);
        }
        Some(batch)
    }

    /// What is known of some batches, but for what holds their Held jobs, and from where their locks are held.
    #[must_use]
    pub fn batch_situations(&self, ids: &[BatchId], space: Option<i64>, now: Timestamp) -> Vec<BatchSituation> {
        let flow = self.flow();
        let rates: Vec<_> = ids.iter().map(|id| self.batch_rates(*id)).collect();
        let known = |image: &Image, query: FaultQuery<'_>| {
            let states = image.worked_on(&flow, query);
            let batches = ids.iter().zip(rates);
            batches.filter_map(|(id, rates)| image.batch_situation(*id, rates, &states, query)).collect()
        };
        self.ask(now, space, known).unwrap_or_default()
    }

    /// When the lock on a job was created, by our own clock; `None` where it is not locked.
    #[must_use]
    pub fn lock_created(&self, id: JobId) -> Option<Timestamp> {
        self.read(|image, offset| image.lock_created(id, offset)).flatten()
    }

    /// The Failed batches without jobs: how many there are, and the one that has been so for longest.
    #[must_use]
    pub fn failed_without_jobs(&self) -> (u64, Option<Batch>) {
        self.read(Image::failed_without_jobs).unwrap_or_default()
    }

    /// Why a job waits for another attempt, where a daemon of ours gave it back.
    #[must_use]
    pub fn job_retry(&self, id: JobId) -> Option<Retry> {
        self.read(|image, _| image.job_retry(id)).flatten()
    }

    /// Why a daemon of ours gave a batch back before all its jobs existed.
    #[must_use]
    pub fn batch_wait(&self, id: BatchId) -> Option<BatchWait> {
        self.read(|image, _| image.batch_wait(id)).flatten()
    }

    /// How far the download of a job is; `None` where none is under way, or the daemon is none of ours.
    #[must_use]
    pub fn progress(&self, id: JobId) -> Option<JobProgress> {
        self.read(|image, _| image.progress(id)).flatten()
    }

    /// What was seen of a job, oldest first, at most eight events; empty where nothing was.
    #[must_use]
    pub fn past(&self, id: JobId) -> Vec<PastEvent> {
        self.read(|image, offset| image.past(id, offset)).unwrap_or_default()
    }

    /// The changes of a batch that were seen, oldest first, at most eight; empty where none was.
    #[must_use]
    pub fn batch_past(&self, id: BatchId) -> Vec<BatchEvent> {
        self.read(|image, offset| image.batch_past(id, offset)).unwrap_or_default()
    }
}
