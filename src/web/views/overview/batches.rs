//! The batches in work.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::Recent;
use crate::mirror::{Batch, Pace, Summary, state_label};
use crate::queue::path::Queue;
use crate::queue::state::Outcome;
use crate::web::show::visible;

/// For how long nothing may end before that is worth a word.
const PATIENCE: Duration = Duration::from_mins(10);

/// A batch that somebody works on, and how far it is.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct BatchInWork {
    /// Its id.
    #[schema(example = "bid0000000042")]
    pub(crate) batch: String,
    /// Its state.
    pub(crate) state: &'static str,
    /// When it entered that.
    pub(crate) entered: Option<Timestamp>,
    /// The manifest's name.
    pub(crate) filename: String,
    /// The title.
    pub(crate) title: String,
    /// The mnemonic of its collection.
    pub(crate) collection: String,
    /// Who deposited it.
    pub(crate) submitter: String,
    /// Its jobs in all.
    pub(crate) jobs: u64,
    /// Of these, neither completed nor failed nor deleted.
    pub(crate) open: u64,
    /// Completed.
    pub(crate) completed: u64,
    /// Failed.
    pub(crate) failed: u64,
    /// Deleted.
    pub(crate) deleted: u64,
    /// Jobs of it that end an hour, well or not, at the present pace; null where too little was seen.
    pub(crate) ended_per_hour: Option<f64>,
    /// When its last job ends at that pace; null where nothing moves or nothing is left to do.
    pub(crate) ends: Option<Timestamp>,
    /// What it waits for where there is no forecast: a phrase.
    pub(crate) waits: Option<&'static str>,
}

/// The batches in work that are longest in their state.
pub(super) fn in_work(summary: &Summary, recent: &Recent, now: Timestamp) -> Vec<BatchInWork> {
    let is_paused = summary.paused(Queue::Ingest).is_some();
    recent.batches.iter().map(|(batch, pace)| BatchInWork::new(batch, *pace, is_paused, now)).collect()
}

impl BatchInWork {
    fn new(batch: &Batch, pace: Option<Pace>, is_paused: bool, now: Timestamp) -> Self {
        let jobs = |outcome: Outcome| u64::from(batch.references[outcome as usize].unwrap_or(0));
        let open = jobs(Outcome::Processing);
        let pace = pace.unwrap_or_default();
        let takes = pace.time_for(open).filter(|_| open > 0 && !is_paused);
        let ends = takes.and_then(|takes| now.checked_add(SignedDuration::try_from(takes).ok()?).ok());
        let waits = match (open, ends) {
            (_, Some(_)) => None,
            (0, None) if !batch.is_acquired || Outcome::ALL.into_iter().all(|outcome| jobs(outcome) == 0) => {
                Some("its jobs are being made")
            }
            (0, None) => Some("report due"),
            (_, None) if is_paused => Some("not before the pause ends"),
            (_, None) if pace.over < PATIENCE => Some("not known yet"),
            (_, None) => Some("no job has ended lately"),
        };
        Self {
            batch: batch.id.to_string(),
            state: state_label(batch.state),
            entered: batch.entered,
            filename: visible(&batch.filename),
            title: visible(&batch.title),
            collection: visible(&batch.collection),
            submitter: visible(&batch.submitter),
            jobs: Outcome::ALL.into_iter().map(jobs).sum(),
            open,
            completed: jobs(Outcome::Completed),
            failed: jobs(Outcome::Failed),
            deleted: jobs(Outcome::Deleted),
            ended_per_hour: pace.per_hour(),
            ends,
            waits,
        }
    }
}
