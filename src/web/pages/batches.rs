//! Which batches, and how far each of them is.

use askama::Template;
use jiff::Timestamp;

use super::buttons::{Button, Buttons};
use super::frame::{Frame, Section};
use super::listing::{self, Choice, LONG, ListRequest, SHORT, Shown, choices_of, if_walked, with};
use super::progress::Progress;
use super::state_tag::state_tag;
use crate::actions::{ActionKind, Role, Target};
use crate::mirror::lists::BatchOrder;
use crate::views::batches::{BatchFilter, BatchItem};
use crate::views::parameter::OneOf;
use crate::views::query::Parameters as _;
use crate::views::show::{Count, Moment, brief};
use crate::views::{NONE, PageQuery};
use crate::web::http::problem::Problem;
use crate::web::http::query::address;
use crate::web::state::State;
use queuekeeper_queue::state::{BatchState, State as _};

/// The list of batches, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "batches.html")]
pub(super) struct BatchesPage {
    frame: Frame,
    filter: BatchFilter,
    page: PageQuery,
    states: Vec<Choice>,
    sorts: Vec<Choice>,
    /// Whether a filter is set that is folded away.
    is_open: bool,
    collections: Vec<String>,
    /// Purges all that are done with, where the reader may.
    clean_up: Option<Button>,
    /// `None` before the first walk.
    list: Option<BatchTable>,
}

#[derive(Debug)]
struct BatchTable {
    shown: Shown,
    heads: Vec<listing::ColumnHead>,
    rows: Vec<BatchRow>,
}

/// A batch as the list shows it.
#[derive(Debug)]
struct BatchRow {
    id: String,
    href: String,
    head: BatchHead,
    since: Option<Moment>,
    collection_href: String,
    progress: Progress,
}

/// What names a batch, and its state.
#[derive(Debug)]
pub(super) struct BatchHead {
    pub(super) state: String,
    pub(super) class: &'static str,
    pub(super) is_locked: bool,
    pub(super) filename: String,
    pub(super) title: String,
    pub(super) uuid: String,
    pub(super) collection: String,
    pub(super) submitter: String,
    pub(super) message: String,
}

impl BatchHead {
    pub(super) fn new(item: &BatchItem) -> Self {
        let (state, class) = state_tag::<BatchState>(item.state, item.status_text.as_deref());
        Self {
            state,
            class,
            is_locked: item.locked,
            filename: brief(&item.filename, SHORT),
            title: brief(&item.title, SHORT),
            uuid: brief(&item.uuid, SHORT),
            collection: brief(&item.collection, SHORT),
            submitter: brief(&item.submitter, SHORT),
            message: brief(&item.message, LONG),
        }
    }
}

impl BatchesPage {
    pub(super) fn new(
        state: &State,
        list_query: (BatchFilter, PageQuery),
        role: Role,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let (source, (filter, page)) = (state.source(), &list_query);
        let view = state.view(now);
        let frame = Frame::new(&view, "./".to_owned(), Section::Batches);
        let list = if_walked(source.batches(filter, page))?;
        let list = list.map(|list| {
            let counts = [list.total, list.before, list.items.len() as u64];
            BatchTable {
                shown: Shown::new(
                    ListRequest::new("batches", ["batch", "batches"], &list_query),
                    &frame.root,
                    counts,
                    list.next.as_deref(),
                ),
                heads: heads(&list_query, &frame.root),
                rows: list.items.iter().map(|item| BatchRow::new(item, &frame.root, now)).collect(),
            }
        });
        let counts = source.batches_by_state(filter, view.summary.as_ref());
        let named = |of: Option<BatchState>| {
            let name = of.map_or("Other", BatchState::name);
            let count = counts.as_ref().map_or(String::new(), |counts| format!(" ({})", Count(*counts.get(of))));
            format!("{name}{count}")
        };
        Ok(Self {
            states: choices_of(filter.state, named),
            sorts: choices_of(Some(filter.sort), sort_in_words),
            is_open: BatchFilter { text: None, ..filter.clone() }.is_filtered(),
            collections: source.batch_collections(),
            clean_up: Buttons::new(&frame.root, role).on(ActionKind::CleanUp, &Target::Batches),
            list,
            filter: list_query.0,
            page: list_query.1,
            frame,
        })
    }
}

fn heads((filter, page): &(BatchFilter, PageQuery), root: &str) -> Vec<listing::ColumnHead> {
    use BatchOrder::{Changed, Collection, Failed, Jobs, Newest, Oldest, Waiting};
    let href = |sort| {
        let other = BatchFilter { sort: OneOf(sort), ..filter.clone() };
        address(&format!("{root}batches"), &[other.pairs(), page.size().pairs()].concat())
    };
    let by = |column, orders: &[_]| listing::ColumnHead::by(column, orders, filter.sort.0, href);
    vec![
        by(("Batch", ""), &[(Newest, false), (Oldest, true)]),
        // The column shows how long, not since when.
        by(("In state", "num"), &[(Waiting, false), (Changed, true)]),
        by(("Collection, submitter", ""), &[(Collection, true)]),
        by(("Jobs", ""), &[(Jobs, false), (Failed, false)]),
    ]
}

fn sort_in_words(order: BatchOrder) -> &'static str {
    match order {
        BatchOrder::Newest => "last created first",
        BatchOrder::Oldest => "first created first",
        BatchOrder::Waiting => "unfinished first, longest in their state on top",
        BatchOrder::Changed => "last changed first",
        BatchOrder::Jobs => "most jobs first",
        BatchOrder::Failed => "most failed jobs first",
        BatchOrder::Collection => "collection",
    }
}

impl BatchRow {
    fn new(item: &BatchItem, root: &str, now: Timestamp) -> Self {
        let collection = if item.collection.is_empty() { NONE } else { &item.collection };
        Self {
            id: item.id.clone(),
            href: format!("{root}batches/{}", item.id),
            head: BatchHead::new(item),
            since: item.entered.map(|entered| Moment::new(entered, now)),
            collection_href: with(&format!("{root}batches"), "collection", collection),
            progress: Progress::new(item),
        }
    }
}
