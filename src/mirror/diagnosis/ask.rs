//! Asking the image.

use jiff::Timestamp;

use super::batch::forecast;
use super::{Diagnosis, Volume, diagnose_batch, diagnose_job, diagnose_state};
use crate::mirror::forecast::Forecast;
use crate::mirror::past::PastEvent;
use crate::mirror::store::Store;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::state::JobState;

impl Store {
    /// Why a job is not moving; `None` where there is no such job. `now` is our own clock.
    #[must_use]
    pub fn diagnose_job(&self, id: JobId, volume: Option<Volume>, now: Timestamp) -> Option<Diagnosis> {
        let flow = self.flow();
        let space = volume.map(|volume| volume.left_bytes);
        let situation = self.ask(now, space, |image, asked| image.job_situation(id, &flow, asked)).flatten()?;
        Some(diagnose_job(&situation, volume.as_ref(), now))
    }

    /// Why nothing leaves a state, or that it flows; `None` before the first walk.
    #[must_use]
    pub fn diagnose_state(&self, state: JobState, volume: Option<Volume>, now: Timestamp) -> Option<Diagnosis> {
        let flow = self.flow();
        let space = volume.map(|volume| volume.left_bytes);
        let situation = self.ask(now, space, |image, asked| image.state_situation(state, &flow, asked))?;
        Some(diagnose_state(&situation, volume.as_ref(), now))
    }

    /// Why a batch is not moving, and when it ends; `None` where there is no such batch.
    #[must_use]
    pub fn diagnose_batch(&self, id: BatchId, volume: Option<Volume>, now: Timestamp) -> Option<(Diagnosis, Forecast)> {
        let (rates, flow) = (self.batch_rates(id), self.flow());
        let space = volume.map(|volume| volume.left_bytes);
        let situation =
            self.ask(now, space, |image, asked| image.batch_situation(id, rates, &flow, asked)).flatten()?;
        let forecast = forecast(&situation, volume.as_ref(), now);
        Some((diagnose_batch(&situation, volume.as_ref(), now), forecast))
    }

    /// When the lock on a job was created, by our own clock; `None` where it is not locked.
    #[must_use]
    pub fn lock_created(&self, id: JobId) -> Option<Timestamp> {
        self.read(|image, offset| image.lock_created(id, offset)).flatten()
    }

    /// What was seen of a job, oldest first, at most eight events; empty where nothing was.
    #[must_use]
    pub fn past(&self, id: JobId) -> Vec<PastEvent> {
        self.read(|image, offset| image.past(id, offset)).unwrap_or_default()
    }
}
