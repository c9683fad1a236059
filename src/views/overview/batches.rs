//! The batches in progress.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::Recent;
use crate::insight::Forecast;
use crate::mirror::lists::BatchDetail;
use crate::mirror::{Batch, Rates, state_label};
use crate::views::batches::Outlook;
use crate::views::show::visible;
use queuekeeper_queue::state::JobOutcome;

/// A batch in progress.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct BatchInProgress {
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
    /// The depositor.
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
    /// When it ends, or what is due next if no job is left.
    #[serde(flatten)]
    pub(crate) outlook: Outlook,
}

/// The batches in progress that have been in their state longest.
pub(super) fn in_progress(recent: &Recent, now: Timestamp) -> Vec<BatchInProgress> {
    let new = |(batch, rates, forecast): &(BatchDetail, Option<Rates>, Forecast)| {
        BatchInProgress::new(&batch.batch, Outlook::new(*forecast, *rates, now))
    };
    recent.batches.iter().map(new).collect()
}

impl BatchInProgress {
    fn new(batch: &Batch, outlook: Outlook) -> Self {
        let jobs = |outcome: JobOutcome| u64::from(batch.references[outcome as usize].unwrap_or(0));
        let open = jobs(JobOutcome::Processing);
        let phrase = match open {
            0 if !batch.is_acquired => "not acquired yet".to_owned(),
            0 if JobOutcome::ALL.into_iter().all(|outcome| jobs(outcome) == 0) => {
                "its jobs are being created".to_owned()
            }
            0 => "report due".to_owned(),
            _ => outlook.ends,
        };
        Self {
            batch: batch.id.to_string(),
            state: state_label(batch.state),
            entered: batch.entered,
            filename: visible(&batch.filename),
            title: visible(&batch.title),
            collection: visible(&batch.collection),
            submitter: visible(&batch.submitter),
            jobs: JobOutcome::ALL.into_iter().map(jobs).sum(),
            open,
            completed: jobs(JobOutcome::Completed),
            failed: jobs(JobOutcome::Failed),
            deleted: jobs(JobOutcome::Deleted),
            outlook: Outlook { ends: phrase, ..outlook },
        }
    }
}
