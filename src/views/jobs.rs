//! Jobs in lists.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::mirror::find::Page;
use crate::mirror::{Job, state_label};

/// A job in a list. Texts are a depositor's: anything at all, cut to 512 bytes each.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct JobItem {
    /// The job's id.
    #[schema(example = "jid0000000042")]
    pub(crate) id: String,
    /// Its state; `other` where its status is missing, unreadable, or one that nobody knows.
    #[schema(example = "failed")]
    pub(crate) state: &'static str,
    /// The status text, where it names no state that we know or is spelled as the daemons do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) odd_status: Option<String>,
    /// When it entered that state.
    pub(crate) entered: Option<Timestamp>,
    /// The version of its status; -1 where it has none.
    pub(crate) status_version: i32,
    /// Its priority, 0 (most urgent) to 99; null where it is missing or impossible.
    pub(crate) priority: Option<u8>,
    /// Whether it is locked.
    pub(crate) locked: bool,
    /// The session that holds its lock, as ZooKeeper's own log writes it; null for none, and for a lock that will not go
    /// with its session.
    pub(crate) session: Option<String>,
    /// How often it was resumed; null where its status does not say.
    pub(crate) retry_count: Option<u32>,
    /// Its last successful state.
    pub(crate) last_successful_status: Option<&'static str>,
    /// What the daemons said of the last step.
    pub(crate) message: String,
    /// The group of failures that it is in, if it has failed.
    pub(crate) group: Option<String>,
    /// The working storage that it needs, in bytes; 0 where that is unknown.
    pub(crate) space_needed_bytes: u64,
    /// Its batch.
    pub(crate) batch: Option<String>,
    /// The mnemonic of its collection; empty for none.
    pub(crate) collection: String,
    /// Who deposited it.
    pub(crate) submitter: String,
    /// When it was deposited.
    pub(crate) submitted: Option<Timestamp>,
    /// The file's name.
    pub(crate) filename: String,
    /// The object's title.
    pub(crate) title: String,
    /// Its ARK: the one minted, else the one that the depositor named; empty for none.
    pub(crate) ark: String,
    /// Its local ids, with `; ` between them.
    pub(crate) local_ids: String,
}

impl JobItem {
    pub(crate) fn new(job: Job) -> Self {
        Self {
            group: job.failure().map(|key| key.to_string()),
            id: job.id.to_string(),
            state: state_label(job.state),
            odd_status: Some(job.odd_status.to_string()).filter(|text| !text.is_empty()),
            entered: job.entered,
            status_version: job.status_version,
            priority: job.priority.map(queuekeeper_queue::id::Priority::number),
            locked: job.lock.is_some(),
            session: job.lock.filter(|lock| lock.session != 0).map(|lock| format!("0x{:x}", lock.session)),
            retry_count: job.retry_count,
            last_successful_status: job.last_successful.map(|state| state_label(Some(state))),
            message: job.message.to_string(),
            space_needed_bytes: job.space_needed_bytes,
            batch: job.batch.map(|batch| batch.to_string()),
            collection: job.collection.to_string(),
            submitter: job.submitter.to_string(),
            submitted: job.submitted,
            filename: job.filename,
            title: job.title,
            ark: job.ark,
            local_ids: job.local_ids,
        }
    }
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct JobList {
    /// How many jobs match on all pages.
    pub(crate) total: usize,
    /// How many of them come before this page.
    pub(crate) before: usize,
    /// The cursor of the page behind; null on the last one.
    pub(crate) next: Option<String>,
    /// The cursor of the page before; null on the first one.
    pub(crate) previous: Option<String>,
    /// The jobs of this page.
    pub(crate) items: Vec<JobItem>,
}

impl JobList {
    pub(crate) fn new(page: Page<Job>) -> Self {
        let Page { items, total, before, previous, next } = page;
        Self { total, before, next, previous, items: items.into_iter().map(JobItem::new).collect() }
    }
}
