//! Faults: how many of each kind, and a list of them.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ViewSource;
use super::error::ViewError;
use super::page::PageQuery;
use super::parameter::OneOf;
use crate::mirror::lists::{FaultOrder, Page};
use crate::mirror::{FoundFault, Summary};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::Path;

// The derived parameter descriptions resolve aliases, but not type arguments.
type OneFault = OneOf<Fault>;
type Sort = OneOf<FaultOrder>;

/// Which faults, and in which order.
#[derive(Clone, Debug, Default, Deserialize, Serialize, Args, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct FaultFilter {
    /// Only faults of this kind.
    #[arg(value_name = "FAULT")]
    #[param(inline)]
    pub(crate) fault: Option<OneFault>,

    /// The sort order: kind by kind and of each the oldest first, or of all kinds the oldest or the newest first.
    #[arg(long, value_name = "ORDER", default_value_t)]
    #[param(inline)]
    pub(crate) sort: Sort,
}

impl FaultFilter {
    /// Whether it lets faults of that kind through.
    pub(crate) fn takes(&self, fault: Fault) -> bool {
        self.fault.is_none_or(|wanted| wanted.0 == fault)
    }
}

impl ViewSource<'_> {
    /// A page of the faults of a kind, or of all of them.
    ///
    /// # Errors
    /// For a cursor of another list.
    pub(crate) fn faults(
        &self,
        filter: &FaultFilter,
        page: &PageQuery,
        now: Timestamp,
    ) -> Result<FaultList, ViewError> {
        let (store, wanted) = (self.store, filter.fault.map(|fault| fault.0));
        let found = store.fault_list(wanted, filter.sort.0, &page.part()?, now, self.space_left())?;
        let unconfirmed = store.unconfirmed(now).unwrap_or_default().into_iter();
        let unconfirmed = unconfirmed.filter(|(fault, ..)| filter.takes(*fault));
        Ok(FaultList::new(&self.summary(now)?, found, &store.unreadable().unwrap_or_default()).with(unconfirmed))
    }
}

/// A kind of fault.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct FaultKind {
    /// Its name, which is the label value of `merritt_faults`.
    #[schema(example = "orphan_entry")]
    pub(crate) fault: &'static str,
    /// Its title.
    pub(crate) title: &'static str,
    /// How many items have it.
    pub(crate) count: u64,
    /// When the oldest of these faults began.
    pub(crate) since: Option<Timestamp>,
    /// Its effect on the queue.
    pub(crate) effect: &'static str,
    /// How to repair it.
    pub(crate) fix: &'static str,
}

/// A kind of suspected fault: present, but not for long enough to be reported.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Unconfirmed {
    /// Its name, which is the label value of `merritt_faults`.
    #[schema(example = "no_daemon")]
    pub(crate) fault: &'static str,
    /// Its title.
    pub(crate) title: &'static str,
    /// How many items have it.
    pub(crate) count: u64,
    /// How long it must last to be reported.
    pub(crate) lasting_seconds: f64,
}

/// A fault of an item.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct FaultItem {
    /// Its kind.
    #[schema(example = "orphan_entry")]
    pub(crate) fault: &'static str,
    /// The item: the path of a job, batch, request, lock, UUID or folder.
    #[schema(example = "/jobs/jid0000000042")]
    pub(crate) item: String,
    /// Since when the item has shown it.
    pub(crate) since: Timestamp,
    /// The symptom, in a sentence.
    pub(crate) how: &'static str,
    /// Its effect on the queue.
    pub(crate) effect: &'static str,
    /// How to repair it: as its kind, or as this item requires.
    pub(crate) fix: &'static str,
    /// The znodes involved, including missing ones; twenty at most.
    pub(crate) nodes: Vec<String>,
}

/// The faults: every kind that is checked for, and a page of those that were found.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct FaultList {
    /// Every kind that is checked for.
    pub(crate) kinds: Vec<FaultKind>,
    /// How many faults match on all pages.
    pub(crate) total: u64,
    /// How many of them come before this page.
    pub(crate) before: u64,
    /// The cursor of the next page; null on the last one.
    pub(crate) next: Option<String>,
    /// The faults of this page. One that has just been repaired may be missing here, and
    /// disappears from the counts a moment later.
    pub(crate) items: Vec<FaultItem>,
    /// Suspected faults of the requested kinds, which are not present for long enough to be reported. A daemon's own
    /// writes look like faults for a moment.
    pub(crate) unconfirmed: Vec<Unconfirmed>,
    /// How many znodes cannot be decoded, are not readable with these credentials, or have an unexpected name. Not all
    /// of these break something.
    pub(crate) unreadable_znodes: u64,
    /// Their paths, of the first hundred.
    #[schema(example = json!(["/jobs/jid0000000042/status"]))]
    pub(crate) unreadable: Vec<String>,
}

impl FaultItem {
    pub(crate) fn new(found: &FoundFault) -> Self {
        Self {
            fault: found.fault.label(),
            item: found.item.to_string(),
            since: found.since,
            how: found.how,
            effect: found.effect,
            fix: found.fix,
            nodes: found.nodes.iter().map(ToString::to_string).collect(),
        }
    }
}

impl FaultList {
    /// The same with suspected faults: kinds, items and how long they must last.
    pub(crate) fn with(mut self, unconfirmed: impl IntoIterator<Item = (Fault, u64, Duration)>) -> Self {
        let view = |(fault, count, lasting): (Fault, u64, Duration)| Unconfirmed {
            fault: fault.label(),
            title: fault.title(),
            count,
            lasting_seconds: lasting.as_secs_f64(),
        };
        self.unconfirmed = unconfirmed.into_iter().map(view).collect();
        self
    }

    pub(crate) fn new(summary: &Summary, page: Page<FoundFault>, unreadable: &[Path]) -> Self {
        let kind = |fault: Fault| {
            let figures = summary.faults(fault);
            FaultKind {
                fault: fault.label(),
                title: fault.title(),
                count: figures.count,
                since: figures.since,
                effect: fault.effect(),
                fix: fault.fix(),
            }
        };
        let Page { items, total, before, next } = page;
        Self {
            kinds: Fault::ALL.map(kind).into(),
            total,
            before,
            next: next.map(|next| next.to_string()),
            items: items.iter().map(FaultItem::new).collect(),
            unconfirmed: Vec::new(),
            unreadable_znodes: summary.unreadable,
            unreadable: unreadable.iter().map(ToString::to_string).collect(),
        }
    }
}
