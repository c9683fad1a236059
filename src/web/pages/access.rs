//! Requests for assembly.

use askama::Template;
use jiff::Timestamp;

use super::buttons::{Button, Buttons};
use super::frame::{Frame, Section};
use super::listing::{Choice, LONG, Node, Of, SHORT, Shown, ages, choices, pairs, with};
use crate::actions::Role;
use crate::mirror::lists::RequestOrder;
use crate::mirror::{Summary, state_label};
use crate::views::access::AccessItem;
use crate::views::show::{Count, Moment, Size, brief};
use crate::web::State;
use crate::web::api::AccessFilter;
use crate::web::http::problem::Problem;
use crate::web::http::query::address;
use crate::web::lists::states;
use queuekeeper_queue::path::{AccessQueue, Queue};
use queuekeeper_queue::state::{AccessState, State as _};

/// The access requests, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "access.html")]
pub(super) struct AccessPage {
    frame: Frame,
    filter: AccessFilter,
    queues: Vec<Choice>,
    states: Vec<Choice>,
    ages: Vec<Choice>,
    sorts: Vec<Choice>,
    figures: Vec<QueueFigures>,
    /// `None` before the first walk.
    list: Option<List>,
}

/// One of the two queues.
#[derive(Debug)]
struct QueueFigures {
    name: &'static str,
    paused: Option<Moment>,
    lines: Vec<Line>,
}

/// The requests of a state.
#[derive(Debug)]
struct Line {
    name: &'static str,
    count: String,
    is_empty: bool,
    size: Size,
    oldest: Option<Moment>,
    href: String,
}

#[derive(Debug)]
struct List {
    shown: Shown,
    rows: Vec<Row>,
}

/// A request as the list shows it.
#[derive(Debug)]
struct Row {
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
    session_href: String,
    is_locked: bool,
    buttons: Vec<Button>,
}

impl AccessPage {
    pub(super) fn new(state: &State, filter: AccessFilter, role: Role, now: Timestamp) -> Result<Self, Problem> {
        let view = state.view(now);
        let frame = Frame::new(&view, "./".to_owned(), Section::Access);
        let list = match filter.list(state, now) {
            Ok(list) => Some(list),
            Err(problem) if problem.status == 503 => None,
            Err(problem) => return Err(problem),
        };
        let list = list.map(|list| {
            let counts = [list.total, list.before, list.items.len() as u64];
            List {
                shown: Shown::new(of(&filter), &frame.root, counts, list.next.as_deref()),
                rows: list
                    .items
                    .iter()
                    .map(|item| Row::new(item, Buttons::new(&frame.root, role), &frame.root, now))
                    .collect(),
            }
        });
        let summary = view.summary.as_ref();
        let figures = |queue: &AccessQueue| summary.map(|summary| QueueFigures::new(summary, *queue, &frame.root, now));
        let named = |state: Option<AccessState>| (state_label(state), state.map_or("Other", AccessState::name));
        let sorts = RequestOrder::ALL.iter().map(|order| (order.label(), sort_in_words(*order)));
        Ok(Self {
            queues: choices(filter.queue.as_ref(), AccessQueue::ALL.iter().map(|queue| (queue.name(), queue.name()))),
            states: choices(filter.state.as_ref(), states().into_iter().map(named)),
            ages: choices(filter.age.as_ref(), ages()),
            sorts: choices(filter.sort.as_ref(), sorts),
            figures: AccessQueue::ALL.iter().filter_map(figures).collect(),
            list,
            filter,
            frame,
        })
    }
}

fn of(filter: &AccessFilter) -> Of<'static> {
    let AccessFilter { queue, state, age, text, sort, limit, .. } = filter;
    let wanted =
        pairs([("queue", queue.as_ref()), ("state", state.as_ref()), ("age", age.as_ref()), ("text", text.as_ref())]);
    let is_filtered = !wanted.is_empty();
    let pairs = [wanted, pairs([("sort", sort.as_ref()), ("limit", limit.as_ref())])].concat();
    Of { name: "access", words: ["request", "requests"], pairs, is_filtered }
}

fn sort_in_words(order: RequestOrder) -> &'static str {
    match order {
        RequestOrder::Waiting => "longest in its state first",
        RequestOrder::Changed => "last changed first",
        RequestOrder::Newest => "last created first",
        RequestOrder::Largest => "largest first",
        RequestOrder::Smallest => "smallest first",
    }
}

impl QueueFigures {
    fn new(summary: &Summary, queue: AccessQueue, root: &str, now: Timestamp) -> Self {
        let pause = match queue {
            AccessQueue::Small => Queue::AccessSmall,
            AccessQueue::Large => Queue::AccessLarge,
        };
        let line = |(state, figures): (Option<AccessState>, &crate::mirror::ItemFigures)| {
            let wanted =
                [("queue".to_owned(), queue.name().to_owned()), ("state".to_owned(), state_label(state).to_owned())];
            Line {
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

impl Row {
    fn new(item: &AccessItem, buttons: Buttons<'_>, root: &str, now: Timestamp) -> Self {
        let state = AccessState::ALL.iter().copied().find(|state| state.label() == item.state);
        let odd = item.odd_status.as_deref().unwrap_or_default();
        let session = item.session.clone().unwrap_or_default();
        Self {
            state: match state {
                Some(state) => state.name().to_owned(),
                None if odd.is_empty() => "Other".to_owned(),
                None => brief(odd, SHORT / 2),
            },
            class: match state {
                Some(AccessState::Failed) | None => "bad",
                Some(state) if state.is_final() => "done",
                Some(_) => "",
            },
            token: brief(&item.token, SHORT),
            message: brief(&item.message, LONG),
            since: item.entered.map(|entered| Moment::new(entered, now)),
            size: (item.requested_bytes > 0).then(|| Size::new(item.requested_bytes)),
            node: Node { name: item.id.clone(), ..Node::of(&format!("/access/{}/{}", item.queue, item.id), root) },
            session_href: with(&format!("{root}locks"), "session", &session),
            session,
            buttons: buttons.request(item.queue, &item.id, item.state),
            is_locked: item.locked,
            queue: item.queue,
            id: item.id.clone(),
        }
    }
}
