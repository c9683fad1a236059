//! Jobs in lists.

use clap::Args;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::error::ViewError;
use super::page::PageQuery;
use super::parameter::{BatchName, OneOf, SearchFor, Text};
use super::show::visible;
use super::{NONE, PrometheusDuration, ViewSource, session_text};
use crate::mirror::failures::FailureKey;
use crate::mirror::find::{Direction, FoundPage, InvalidCursor, JobCursor, JobOrder, JobQuery};
use crate::mirror::{ByState, Job, state_label};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::id::{JobId, Priority};
use queuekeeper_queue::state::JobState;

/// How many collections an error names.
const COLLECTIONS_NAMED: usize = 50;

// The derived parameter descriptions resolve aliases, but not type arguments.
type State = OneOf<Option<JobState>>;
type FaultName = OneOf<Fault>;
type Sort = OneOf<JobOrder>;
type DirectionParameter = OneOf<Direction>;

/// Which jobs, and in which order; all filters must match.
#[derive(Clone, Debug, Default, Deserialize, Serialize, Args, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
#[command(next_help_heading = "Which jobs")]
pub(crate) struct JobFilter {
    /// With this text in job id, file name, title, ARK, local ids, submitter or message, case-insensitive.
    #[arg(long, value_name = "TEXT")]
    #[param(inline)]
    pub(crate) text: Option<SearchFor>,

    /// In one of these states; `other` for an unknown status. May be repeated.
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    #[param(inline, style = Form, explode, required = false, example = json!(["failed", "held"]))]
    pub(crate) state: Vec<State>,

    /// In the collection with this mnemonic; `(none)` for jobs without a collection.
    #[arg(long, value_name = "MNEMONIC")]
    pub(crate) collection: Option<String>,

    /// Of this batch: its id, or the number in it.
    #[arg(long, value_name = "BID")]
    #[param(value_type = Option<String>, example = "bid0000000042")]
    pub(crate) batch: Option<Text<BatchName>>,

    /// In its state for at least this long, as 1h30m.
    #[arg(long, value_name = "DURATION")]
    #[param(value_type = Option<String>, example = "1h30m")]
    pub(crate) min_age: Option<Text<PrometheusDuration>>,

    /// Resumed at least this often.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) min_retries: Option<u32>,

    /// Locked, or with `false` not locked.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) locked: Option<bool>,

    /// With this fault.
    #[arg(long, value_name = "FAULT", hide_possible_values = true)]
    #[param(inline, example = "orphan_entry")]
    pub(crate) fault: Option<FaultName>,

    /// Of this group of failures.
    #[arg(long, value_name = "GROUP")]
    #[param(value_type = Option<String>, pattern = "^[0-9a-f]{16}$")]
    pub(crate) group: Option<Text<FailureKey>>,

    /// What to sort by; `unfinished` lists unfinished jobs before Completed and Deleted ones, in either direction, each
    /// by the time in their state.
    #[arg(long, value_name = "ORDER", default_value_t)]
    #[param(inline)]
    pub(crate) sort: Sort,

    /// The sort direction.
    #[arg(long, value_name = "DIRECTION", default_value_t)]
    #[param(inline)]
    pub(crate) direction: DirectionParameter,
}

impl JobFilter {
    /// Whether the answer depends on the age of something, and so on a clock.
    pub(crate) fn goes_by_age(&self) -> bool {
        self.fault.is_some() || self.min_age.is_some()
    }

    /// The question to the mirror.
    fn query(&self, page: &PageQuery) -> Result<JobQuery, ViewError> {
        let Self { text, state, collection, batch, min_age, min_retries, locked, fault, group, sort, direction } = self;
        let cursor = page.after::<JobCursor>()?;
        if cursor.is_some_and(|cursor| !cursor.is_of(sort.0, direction.0)) {
            return Err(InvalidCursor.into());
        }
        Ok(JobQuery {
            text: text.as_ref().and_then(|text| text.text().cloned()),
            states: state.iter().map(|state| state.0).collect(),
            collection: collection_key(collection.as_deref()),
            batch: batch.map(|batch| batch.0.0),
            min_age: min_age.map(|age| age.0.get()),
            min_retries: *min_retries,
            locked: *locked,
            fault: fault.map(|fault| fault.0),
            group: group.map(|group| group.0),
            sort: sort.0,
            direction: direction.0,
            limit: page.limit.get(),
            cursor,
        })
    }
}

/// The mnemonic that a filter asks for; empty for items that name none.
pub(super) fn collection_key(wanted: Option<&str>) -> Option<String> {
    let name = wanted.filter(|name| !name.is_empty())?;
    Some(if name == NONE { String::new() } else { name.to_owned() })
}

/// A collection as a filter takes it and errors name it.
pub(super) fn collection_name(mnemonic: &str) -> String {
    if mnemonic.is_empty() { NONE.to_owned() } else { visible(mnemonic) }
}

impl ViewSource<'_> {
    /// A page of the jobs that match.
    ///
    /// # Errors
    /// For a cursor of another list, and for a collection or group that does not exist.
    pub(crate) fn jobs(&self, filter: &JobFilter, page: &PageQuery, now: Timestamp) -> Result<JobList, ViewError> {
        let query = self.job_query(filter, page)?;
        let found = self.store.find_jobs(&query, now).ok_or(ViewError::NoMirror)?;
        self.job_list(&query, found)
    }

    /// The same, and how many jobs of each state there are by all filters but that of the state.
    ///
    /// # Errors
    /// Likewise.
    pub(crate) fn jobs_by_state(
        &self,
        filter: &JobFilter,
        page: &PageQuery,
        now: Timestamp,
    ) -> Result<(JobList, ByState<JobState, usize>), ViewError> {
        let query = self.job_query(filter, page)?;
        let (found, counts) = self.store.find_and_count_jobs(&query, now).ok_or(ViewError::NoMirror)?;
        Ok((self.job_list(&query, found)?, counts))
    }

    /// All jobs that match, at most so many, with the versions of their statuses.
    ///
    /// # Errors
    /// Likewise, and when there are more.
    pub(crate) fn matching(
        &self,
        filter: &JobFilter,
        most: usize,
        now: Timestamp,
    ) -> Result<Vec<(JobId, i32)>, ViewError> {
        let total = self.jobs(filter, &PageQuery::first(1), now)?.total;
        if total > most {
            let detail = format!("{total} jobs match; one action applies to {most} at most.");
            return Err(ViewError::parameter(detail));
        }
        let query = filter.query(&PageQuery::default())?;
        self.store.matching(&query, now).ok_or(ViewError::NoMirror)
    }

    /// The question to the mirror. A collection without jobs is more likely mistyped than empty.
    fn job_query(&self, filter: &JobFilter, page: &PageQuery) -> Result<JobQuery, ViewError> {
        let query = filter.query(page)?;
        if let Some(wanted) = &query.collection {
            let mut known = self.store.collections().ok_or(ViewError::NoMirror)?;
            known.sort_by(|a, b| a.collection.cmp(&b.collection));
            if !known.iter().any(|figures| *figures.collection == **wanted) {
                let detail = format!("There is no job of the collection “{}” now.", collection_name(wanted));
                let known = known.iter().map(|figures| collection_name(&figures.collection));
                return Err(ViewError::not_found(detail).of("collection").allowing(known.take(COLLECTIONS_NAMED)));
            }
        }
        Ok(query)
    }

    fn job_list(&self, query: &JobQuery, page: FoundPage<Job>) -> Result<JobList, ViewError> {
        if let Some(group) = query.group.filter(|group| page.total == 0 && self.store.failure(*group).is_none()) {
            return Err(ViewError::not_found(format!(
                "There is no failed job in the group “{group}” now: its jobs were resumed or deleted, or it never existed."
            ))
            .of("group"));
        }
        Ok(JobList::new(page))
    }
}

/// A job in a list. Texts may hold anything and are cut to 512 bytes each.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct JobItem {
    /// The job's id.
    #[schema(example = "jid0000000042")]
    pub(crate) id: String,
    /// Its state; `other` if its status is missing, unreadable or unknown.
    #[schema(example = "failed")]
    pub(crate) state: &'static str,
    /// The text of its status, if it is not a known state in the daemons' spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status_text: Option<String>,
    /// When it entered that state.
    pub(crate) entered: Option<Timestamp>,
    /// The version of its status; -1 if it has none.
    pub(crate) status_version: i32,
    /// Its priority, 0 (most urgent) to 99; null if it is missing or invalid.
    pub(crate) priority: Option<u8>,
    /// Whether it is locked.
    pub(crate) locked: bool,
    /// The session that holds its lock, in the notation of ZooKeeper's log; null for none, and for a persistent
    /// lock.
    pub(crate) session: Option<String>,
    /// How often it was resumed; null if its status does not have it.
    pub(crate) retry_count: Option<u32>,
    /// Its last successful state.
    pub(crate) last_successful_status: Option<&'static str>,
    /// The daemons' message about the last step.
    pub(crate) message: String,
    /// The group of failures that it is in, if it has failed.
    pub(crate) group: Option<String>,
    /// The working storage that it needs, in bytes; 0 if unknown.
    pub(crate) space_needed_bytes: u64,
    /// Its batch.
    pub(crate) batch: Option<String>,
    /// The mnemonic of its collection; empty for none.
    pub(crate) collection: String,
    /// The depositor.
    pub(crate) submitter: String,
    /// When it was deposited.
    pub(crate) submitted: Option<Timestamp>,
    /// The file's name.
    pub(crate) filename: String,
    /// The object's title.
    pub(crate) title: String,
    /// Its ARK: the minted one, else the one given by the depositor; empty for none.
    pub(crate) ark: String,
    /// Its local ids, separated by semicolons.
    pub(crate) local_ids: String,
}

impl JobItem {
    pub(crate) fn new(job: Job) -> Self {
        Self {
            group: job.failure().map(|key| key.to_string()),
            id: job.id.to_string(),
            state: state_label(job.state),
            status_text: Some(job.status_text.to_string()).filter(|text| !text.is_empty()),
            entered: job.entered,
            status_version: job.status_version,
            priority: job.priority.map(Priority::number),
            locked: job.lock.is_some(),
            session: job.lock.and_then(|lock| session_text(lock.session)),
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
    /// The cursor of the next page; null on the last one.
    pub(crate) next: Option<String>,
    /// The cursor of the previous page; null on the first one.
    pub(crate) previous: Option<String>,
    /// The jobs of this page.
    pub(crate) items: Vec<JobItem>,
}

impl JobList {
    pub(crate) fn new(page: FoundPage<Job>) -> Self {
        let FoundPage { items, total, before, previous, next } = page;
        Self { total, before, next, previous, items: items.into_iter().map(JobItem::new).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::page::Limit;

    #[test]
    fn the_cursor_of_another_order_is_none_of_this_list() {
        let page = PageQuery { limit: Limit::default(), cursor: Some("iaf1".to_owned()) };
        let by_id = JobFilter { sort: OneOf(JobOrder::Id), ..JobFilter::default() };
        assert!(by_id.query(&page).is_ok());
        let wrong = JobFilter::default().query(&page).unwrap_err().to_string();
        assert!(wrong.contains("“cursor”") && wrong.contains("first page"), "{wrong}");
    }
}
