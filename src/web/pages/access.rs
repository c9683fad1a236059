//! Requests for assembly.

use askama::Template;
use jiff::Timestamp;

use super::buttons::{Button, Buttons};
use super::frame::{Frame, Section};
use super::listing::{
    Choice, ColumnHead, LONG, ListRequest, Node, SHORT, Shown, age_in_words, choices_of, if_walked, with,
};
use super::state_tag::state_tag;
use crate::actions::Role;
use crate::mirror::lists::RequestOrder;
use crate::mirror::{ItemFigures, Summary, state_label};
use crate::views::PageQuery;
use crate::views::access::{AccessFilter, AccessItem};
use crate::views::parameter::OneOf;
use crate::views::query::Parameters as _;
use crate::views::show::{Count, Moment, Size, brief};
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair};
use crate::web::state::State;
use crate::words::moment;
use queuekeeper_queue::path::{AccessQueue, QueueName};
use queuekeeper_queue::state::{AccessState, State as _};

/// The access requests, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "access.html")]
pub(super) struct AccessPage {
    frame: Frame,
    filter: AccessFilter,
    page: PageQuery,
    queues: Vec<Choice>,
    states: Vec<Choice>,
    ages: Vec<Choice>,
    sorts: Vec<Choice>,
    /// Whether a filter is set that is folded away.
    is_open: bool,
    figures: Vec<QueueFigures>,
    /// `None` before the first walk.
    list: Option<RequestTable>,
}

/// One of the two queues.
#[derive(Debug)]
struct QueueFigures {
    name: &'static str,
    paused: Option<Moment>,
    lines: Vec<RequestStateRow>,
}

/// The requests of a state.
#[derive(Debug)]
struct RequestStateRow {
    name: &'static str,
    count: String,
    is_empty: bool,
    size: Size,
    oldest: Option<Moment>,
    href: String,
}

#[derive(Debug)]
struct RequestTable {
    shown: Shown,
    heads: Vec<ColumnHead>,
    rows: Vec<RequestRow>,
}

/// A request as the list shows it.
#[derive(Debug)]
struct RequestRow {
    id: String,
    queue: &'static str,
    state: String,
    class: &'static str,
    token: String,
    message: String,
    since: Option<Moment>,
    /// `None` where it is not known.
    size: Option<Size>,
    node: Node,
    session: String,
    /// From where it is connected; empty if unknown.
    address: String,
    session_href: String,
    is_locked: bool,
    /// Where its archive is; empty for none.
    link: String,
    /// Until when, to read; empty where that is not known.
    expires: String,
    buttons: Vec<Button>,
}

impl AccessPage {
    pub(super) fn new(
        state: &State,
        list_query: (AccessFilter, PageQuery),
        role: Role,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let (filter, page) = &list_query;
        let view = state.view(now);
        let frame = Frame::new(&view, "./".to_owned(), Section::Access);
        let list = if_walked(state.source().access(filter, page, now))?;
        let list = list.map(|list| {
            let counts = [list.total, list.before, list.items.len() as u64];
            RequestTable {
                shown: Shown::new(
                    ListRequest::new("access", ["request", "requests"], &list_query),
                    &frame.root,
                    counts,
                    list.next.as_deref(),
                ),
                heads: heads(&list_query, &frame.root),
                rows: list
                    .items
                    .iter()
                    .map(|item| RequestRow::new(item, Buttons::new(&frame.root, role), &frame.root, now))
                    .collect(),
            }
        });
        let summary = view.summary.as_ref();
        let figures = |queue: &AccessQueue| summary.map(|summary| QueueFigures::new(summary, *queue, &frame.root, now));
        Ok(Self {
            queues: choices_of(filter.queue, AccessQueue::name),
            states: choices_of(filter.state, |state| state.map_or("Other", AccessState::name)),
            ages: choices_of(filter.age, age_in_words),
            sorts: choices_of(Some(filter.sort), sort_in_words),
            is_open: AccessFilter { text: None, ..list_query.0.clone() }.is_filtered(),
            figures: AccessQueue::ALL.iter().filter_map(figures).collect(),
            list,
            filter: list_query.0,
            page: list_query.1,
            frame,
        })
    }
}

fn heads((filter, page): &(AccessFilter, PageQuery), root: &str) -> Vec<ColumnHead> {
    use RequestOrder::{Changed, Largest, Newest, Oldest, Smallest, Waiting};
    let href = |sort| {
        let other = AccessFilter { sort: OneOf(sort), ..filter.clone() };
        address(&format!("{root}access"), &[other.pairs(), page.size().pairs()].concat())
    };
    let by = |column, orders: &[_]| ColumnHead::by(column, orders, filter.sort.0, href);
    vec![
        by(("Request", ""), &[(Newest, false), (Oldest, true)]),
        // The column shows how long, not since when.
        by(("In state", "num"), &[(Waiting, false), (Changed, true)]),
        by(("Size", "num"), &[(Largest, false), (Smallest, true)]),
        ColumnHead::plain("Locked by", ""),
        ColumnHead::plain("Last message", ""),
    ]
}

fn sort_in_words(order: RequestOrder) -> &'static str {
    match order {
        RequestOrder::Waiting => "unfinished first, longest in their state on top",
        RequestOrder::Changed => "last changed first",
        RequestOrder::Newest => "last created first",
        RequestOrder::Oldest => "first created first",
        RequestOrder::Largest => "largest first",
        RequestOrder::Smallest => "smallest first",
    }
}

impl QueueFigures {
    fn new(summary: &Summary, queue: AccessQueue, root: &str, now: Timestamp) -> Self {
        let pause = QueueName::from(queue);
        let line = |(state, figures): (Option<AccessState>, &ItemFigures)| {
            let wanted = [pair("queue", queue.name()), pair("state", state_label(state))];
            RequestStateRow {
                name: state.map_or("Other", AccessState::name),
                count: Count(figures.count).to_string(),
                is_empty: figures.count == 0,
                size: Size::new(figures.requested_bytes),
                oldest: figures.oldest.map(|oldest| Moment::new(oldest, now)),
                href: address(&format!("{root}access"), &wanted),
            }
        };
        let lines = summary.access(queue).iter().map(line);
        Self {
            name: queue.name(),
            paused: summary.paused(pause).map(|since| Moment::new(since, now)),
            lines: lines.filter(|line| !line.is_empty || line.name != "Other").collect(),
        }
    }
}

impl RequestRow {
    fn new(item: &AccessItem, buttons: Buttons<'_>, root: &str, now: Timestamp) -> Self {
        let (state, class) = state_tag::<AccessState>(item.state, item.status_text.as_deref());
        let session = item.session.clone().unwrap_or_default();
        Self {
            state,
            class,
            token: brief(&item.token, SHORT),
            message: brief(&item.message, LONG),
            since: item.entered.map(|entered| Moment::new(entered, now)),
            size: (item.requested_bytes > 0).then(|| Size::new(item.requested_bytes)),
            node: Node { name: item.id.clone(), ..Node::of(&format!("/access/{}/{}", item.queue, item.id), root) },
            address: item.address.clone().unwrap_or_default(),
            session_href: with(&format!("{root}locks"), "session", &session),
            session,
            buttons: buttons.request(item.queue, &item.id, item.state),
            is_locked: item.locked,
            link: item.url.clone().unwrap_or_default(),
            expires: item.expires.map(moment).unwrap_or_default(),
            queue: item.queue,
            id: item.id.clone(),
        }
    }
}
