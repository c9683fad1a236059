//! Jobs with warnings: what is odd about their packages, and was no reason to refuse them.

use jiff::Timestamp;
use queuekeeper_ingest::warnings;
use serde::Serialize;
use utoipa::ToSchema;

use super::ViewSource;
use crate::mirror::find::{JobOrder, JobQuery, PAGE_LIMIT, SearchText};
use queuekeeper_queue::id::BatchId;

/// How many jobs with warnings are named of a batch.
const NAMED: usize = 20;

/// The jobs of a batch with warnings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct WarnedJobs {
    /// How many there are.
    pub(crate) total: u64,
    /// The first of them by their ids, at most twenty.
    pub(crate) items: Vec<WarnedJob>,
}

/// A job with warnings.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct WarnedJob {
    /// Its id.
    #[schema(example = "jid0000000042")]
    pub(crate) job: String,
    /// The name of its file.
    pub(crate) filename: String,
    /// The warnings, one sentence each, separated by semicolons.
    #[schema(example = "empty folders, which are not stored: \"notes\"")]
    pub(crate) warnings: String,
}

impl ViewSource<'_> {
    /// The jobs of a batch with warnings. A job that fails behind them has its failure in their place.
    pub(crate) fn warned(&self, batch: BatchId, now: Timestamp) -> WarnedJobs {
        let text = Some(SearchText::in_messages(warnings::BEGINNING));
        let query = JobQuery { batch: Some(batch), text, sort: JobOrder::Id, limit: PAGE_LIMIT, ..JobQuery::default() };
        let Some(page) = self.store.find_jobs(&query, now) else { return WarnedJobs::default() };
        let found = page.items.len();
        let mut items: Vec<_> = page
            .items
            .into_iter()
            .filter_map(|job| {
                let warnings = warnings::in_message(&job.message)?.to_owned();
                Some(WarnedJob { job: job.id.to_string(), filename: job.filename, warnings })
            })
            .collect();
        let total = (page.total - (found - items.len())) as u64;
        items.truncate(NAMED);
        WarnedJobs { total, items }
    }
}
