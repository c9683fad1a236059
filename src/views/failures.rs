//! Failed jobs in groups of one cause.

use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ViewSource;
use super::error::ViewError;
use super::page::PageQuery;
use super::parameter::OneOf;
use crate::mirror::failures::FailureGroup;
use crate::mirror::lists::{FailureOrder, Page};
use crate::mirror::state_label;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::{JobState, State};

// The derived parameter descriptions resolve aliases, but not type arguments.
type Sort = OneOf<FailureOrder>;

/// In which order groups of failed jobs are listed. There is nothing to filter them by.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, Args, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct FailureSort {
    /// The sort order: groups of the most jobs first, of the latest failure first, or of the earliest.
    #[arg(long, value_name = "ORDER", default_value_t)]
    #[param(inline)]
    pub(crate) sort: Sort,
}

impl ViewSource<'_> {
    /// A page of the groups of failed jobs.
    ///
    /// # Errors
    /// For a cursor of another list.
    pub(crate) fn failures(&self, wanted: FailureSort, page: &PageQuery) -> Result<FailureList, ViewError> {
        Ok(FailureList::new(self.store.failures(wanted.sort.0, &page.part()?)?))
    }
}

/// How many of a group's jobs a batch has.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct BatchShare {
    /// The batch.
    #[schema(example = "bid0000000042")]
    pub(crate) batch: String,
    /// How many jobs.
    pub(crate) count: u64,
}

/// How many of a group's jobs a collection has.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct CollectionShare {
    /// The mnemonic; empty for jobs that name no collection.
    pub(crate) collection: String,
    /// How many jobs.
    pub(crate) count: u64,
}

/// Failed jobs with the same last successful state and the same message, ignoring numbers and ids in it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct FailureItem {
    /// The key of the group, which is stable: the same failures have the same key every day. See `/jobs?group=`.
    #[schema(example = "6c3ef937cddd415d")]
    pub(crate) group: String,
    /// The last successful state of the jobs.
    pub(crate) last_successful_status: Option<&'static str>,
    /// The state in which they failed: the one after the last successful one, or Pending.
    pub(crate) failed_in: &'static str,
    /// Their message, with `#` for numbers and ids.
    pub(crate) pattern: String,
    /// The message of the job that failed last.
    pub(crate) message: String,
    /// How many jobs.
    pub(crate) count: u64,
    /// Of these, resumed at least once before.
    pub(crate) resumed: u64,
    /// When the first of them failed.
    pub(crate) oldest: Option<Timestamp>,
    /// When the last of them failed.
    pub(crate) newest: Option<Timestamp>,
    /// The jobs that failed last, the latest first; at most five.
    pub(crate) jobs: Vec<String>,
    /// How many batches contain some of them.
    pub(crate) batch_count: u64,
    /// The batches with the most of them; at most five.
    pub(crate) batches: Vec<BatchShare>,
    /// How many collections contain some of them.
    pub(crate) collection_count: u64,
    /// The collections with the most of them; at most five.
    pub(crate) collections: Vec<CollectionShare>,
}

impl FailureItem {
    pub(crate) fn new(group: FailureGroup) -> Self {
        let batch = |(batch, count): (BatchId, u64)| BatchShare { batch: batch.to_string(), count };
        let collections = group.collections.iter();
        let collection =
            |(name, count): &(Arc<str>, u64)| CollectionShare { collection: name.to_string(), count: *count };
        Self {
            group: group.key.to_string(),
            last_successful_status: group.last_successful.map(|state| state_label(Some(state))),
            failed_in: JobState::failed_in(group.last_successful).label(),
            pattern: group.pattern,
            message: group.message.to_string(),
            count: group.count,
            resumed: group.resumed,
            oldest: group.oldest,
            newest: group.newest,
            jobs: group.jobs.iter().map(ToString::to_string).collect(),
            batch_count: group.batch_count,
            batches: group.batches.into_iter().map(batch).collect(),
            collection_count: group.collection_count,
            collections: collections.map(collection).collect(),
        }
    }
}

/// A page of groups.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct FailureList {
    /// How many groups there are on all pages.
    pub(crate) total: u64,
    /// How many of them come before this page.
    pub(crate) before: u64,
    /// The cursor of the next page; null on the last one.
    pub(crate) next: Option<String>,
    /// The groups of this page.
    pub(crate) items: Vec<FailureItem>,
}

impl FailureList {
    pub(crate) fn new(page: Page<FailureGroup>) -> Self {
        let Page { items, total, before, next } = page;
        let next = next.map(|next| next.to_string());
        Self { total, before, next, items: items.into_iter().map(FailureItem::new).collect() }
    }
}
