//! Diagnoses of what a mirror holds.

use jiff::Timestamp;

use super::batch::forecast;
use super::{Diagnosis, Forecast, diagnose_batch, diagnose_job, diagnose_state};
use crate::mirror::{BatchSituation, MirrorStore, Volume};
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::state::JobState;

/// Why a job is not moving; `None` where there is no such job. `now` is our own clock.
#[must_use]
pub fn why_job(store: &MirrorStore, id: JobId, volume: Option<Volume>, now: Timestamp) -> Option<Diagnosis> {
    let situation = store.job_situation(id, space(volume), now)?;
    Some(diagnose_job(&situation, volume.as_ref(), now))
}

/// Why nothing leaves a state, or that it flows; `None` before the first walk.
#[must_use]
pub fn why_state(store: &MirrorStore, state: JobState, volume: Option<Volume>, now: Timestamp) -> Option<Diagnosis> {
    let situation = store.state_situation(state, space(volume), now)?;
    Some(diagnose_state(&situation, volume.as_ref(), now))
}

/// Why a batch is not moving, and when it ends; `None` where there is no such batch.
#[must_use]
pub fn why_batch(
    store: &MirrorStore,
    id: BatchId,
    volume: Option<Volume>,
    now: Timestamp,
) -> Option<(Diagnosis, Forecast)> {
    let is_stale = is_stale(store);
    let situation = store.batch_situation(id, space(volume), now)?;
    // What was fast before the connection was lost promises nothing now.
    let situation = BatchSituation { rates: situation.rates.filter(|_| !is_stale), ..situation };
    let forecast = promised(&situation, volume, is_stale, now);
    Some((diagnose_batch(&situation, volume.as_ref(), now), forecast))
}

/// When each of some batches ends; those that are there.
#[must_use]
pub fn forecasts(
    store: &MirrorStore,
    ids: &[BatchId],
    volume: Option<Volume>,
    now: Timestamp,
) -> Vec<(BatchId, Forecast)> {
    let is_stale = is_stale(store);
    let situations = store.batch_situations(ids, space(volume), now);
    situations.iter().map(|batch| (batch.id, promised(batch, volume, is_stale, now))).collect()
}

/// When a batch ends, but for a promise from figures that are not current.
pub(super) fn promised(batch: &BatchSituation, volume: Option<Volume>, is_stale: bool, now: Timestamp) -> Forecast {
    match forecast(batch, volume.as_ref(), now) {
        Forecast::Ends(..) | Forecast::Still | Forecast::Unknown if is_stale => Forecast::Stale,
        forecast => forecast,
    }
}

fn is_stale(store: &MirrorStore) -> bool {
    store.freshness().stale_since.is_some()
}

/// How many bytes a job may need and not be kept back.
fn space(volume: Option<Volume>) -> Option<i64> {
    volume.map(|volume| volume.left_bytes)
}
