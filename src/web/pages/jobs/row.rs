//! A job in the list.

use jiff::Timestamp;

use crate::views::jobs::JobItem;
use crate::views::show::{Moment, Size, brief};
use crate::web::http::query::address;
use crate::web::pages::state_tag::state_tag;
use queuekeeper_queue::state::JobState;

/// How many characters of a text stand in a list. The job's own page has all of it.
const SHORT: usize = 60;
const LONG: usize = 160;

/// A job as the list shows it.
#[derive(Debug)]
pub(super) struct JobRow {
    pub(super) id: String,
    pub(super) href: String,
    pub(super) state: String,
    /// The label of its state.
    pub(super) label: &'static str,
    pub(super) class: &'static str,
    pub(super) is_locked: bool,
    pub(super) filename: String,
    pub(super) title: String,
    pub(super) ark: String,
    pub(super) local_ids: String,
    pub(super) since: Option<Moment>,
    pub(super) collection: String,
    pub(super) collection_href: String,
    pub(super) batch: String,
    pub(super) batch_href: String,
    pub(super) priority: String,
    pub(super) retries: String,
    pub(super) space: Option<Size>,
    pub(super) message: String,
    /// The jobs that failed likewise; empty for one that has not failed.
    pub(super) group_href: String,
    /// Whether it is selected already.
    pub(super) is_chosen: bool,
}

impl JobRow {
    pub(super) fn new(item: &JobItem, root: &str, now: Timestamp) -> Self {
        let (state, class) = state_tag::<JobState>(item.state, item.status_text.as_deref());
        let batch = item.batch.clone().unwrap_or_default();
        let jobs = |name: &str, value: &str| address(&format!("{root}jobs"), &[(name.to_owned(), value.to_owned())]);
        Self {
            href: format!("{root}jobs/{}", item.id),
            state,
            label: item.state,
            class,
            is_locked: item.locked,
            filename: brief(&item.filename, SHORT),
            title: brief(&item.title, SHORT),
            ark: brief(&item.ark, SHORT),
            local_ids: brief(&item.local_ids, SHORT),
            since: item.entered.map(|entered| Moment::new(entered, now)),
            collection: brief(&item.collection, SHORT),
            collection_href: jobs("collection", &item.collection),
            batch_href: format!("{root}batches/{batch}"),
            batch,
            priority: item.priority.map(|priority| priority.to_string()).unwrap_or_default(),
            retries: item
                .retry_count
                .filter(|retries| *retries > 0)
                .map(|retries| retries.to_string())
                .unwrap_or_default(),
            space: (item.space_needed_bytes > 0).then(|| Size::new(item.space_needed_bytes)),
            message: brief(&item.message, LONG),
            group_href: item.group.as_ref().map(|group| jobs("group", group)).unwrap_or_default(),
            is_chosen: false,
            id: item.id.clone(),
        }
    }
}
