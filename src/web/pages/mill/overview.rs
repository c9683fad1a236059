//! What the mill does.

use askama::Template;
use axum::extract::State as FromState;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;

use super::super::frame::Frame;
use super::super::render;
use super::{Due, frame, width};
use crate::actions::mill::PauseChange;
use crate::views::mill::{
    BudgetItem, BudgetPart, DecisionItem, LimitItem, Mill, MillOverview, MorselItem, PauseItem, ProducerItem,
    QueueItem, RATE_MINUTES, WorkerItem, no_process,
};
use crate::views::overview::OpenBitErrors;
use crate::views::show::{Count, Moment, Size, as_sentence, visible};
use crate::web::http::identity::Identity;
use crate::web::http::problem::Problem;
use crate::web::state::State;

#[derive(Debug, Template)]
#[template(path = "mill.html")]
struct MillPage {
    frame: Frame,
    problems: Vec<String>,
    /// Whether one of the problems is that of the overview.
    has_bit_errors: bool,
    queues: Vec<Queue>,
    /// Over how many minutes their rates are averaged.
    rate_minutes: u32,
    producers: Vec<Producer>,
    workers: Vec<Worker>,
    /// That there is none, in a sentence.
    no_worker: String,
    pauses: Pauses,
    limits: Vec<Limit>,
    budgets: Vec<Budget>,
    decisions: Vec<DecisionRow>,
    has_restores: bool,
}

#[derive(Debug)]
struct Queue {
    name: &'static str,
    waiting: String,
    in_progress: String,
    oldest: Option<Moment>,
    rate: String,
    empty: Option<Due>,
    held: String,
    dead: String,
    /// Empty where none is.
    paused: String,
    /// Empty where none waits for its store.
    restore: String,
    has_bit_errors: bool,
    is_empty: bool,
}

#[derive(Debug)]
struct Producer {
    name: &'static str,
    /// What it does now, in words.
    does: String,
    started: Option<Moment>,
    ends: Option<Due>,
    is_late: bool,
    next_due: Option<Due>,
    rest: Option<Rest>,
    scanned: String,
    items: String,
    width: String,
    left: Vec<MorselRow>,
    more: String,
}

/// What the rest of a loop of checks takes.
#[derive(Debug)]
struct Rest {
    items: String,
    bytes: Size,
    requests: String,
    /// Empty without prices.
    cost: String,
}

#[derive(Debug)]
struct MorselRow {
    name: String,
    href: String,
    stores: String,
    text: String,
    width: String,
    error: String,
    is_paused: bool,
}

#[derive(Debug)]
struct Worker {
    process: String,
    workers: u64,
    busy: u64,
    kinds: String,
    started: Moment,
    seen: Moment,
}

#[derive(Debug)]
struct Limit {
    name: String,
    limits: String,
    closed_until: Option<Due>,
}

/// What was used of the budgets of a store.
#[derive(Debug)]
struct Budget {
    store: String,
    parts: Vec<BudgetRow>,
}

/// What was used of one of them.
#[derive(Debug)]
struct BudgetRow {
    words: String,
    width: String,
    is_used_up: bool,
}

/// The pauses in force, and what may be paused.
#[derive(Debug)]
struct Pauses {
    rows: Vec<PauseRow>,
    may_act: bool,
    /// Why nothing was paused or resumed; empty where it was.
    refused: String,
    accounts: Vec<String>,
    stores: Vec<String>,
}

#[derive(Debug)]
struct PauseRow {
    what: String,
    account: String,
    store: String,
    user: String,
    reason: String,
    since: Moment,
    tasks: String,
}

/// A decision, as several pages show it.
#[derive(Debug)]
pub(super) struct DecisionRow {
    pub(super) at: Moment,
    pub(super) user: String,
    pub(super) did: &'static str,
    pub(super) what: String,
    pub(super) reason: String,
}

/// `GET /mill`: queues, loops and workers.
pub(in crate::web::pages) async fn show(
    FromState(state): FromState<State>,
    who: Identity,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &page(&state, &who, "./", String::new()).await?))
}

/// The page, with why what was requested there was refused.
pub(super) async fn page(state: &State, who: &Identity, root: &str, refused: String) -> Result<impl Template, Problem> {
    let now = Timestamp::now();
    let mill = state.mill()?;
    let MillOverview { problems, queues, producers, workers, pauses, limits, budgets, decisions, .. } =
        mill.overview(now).await?;
    let has_bit_errors = matches!(mill.open_bit_errors().await, OpenBitErrors::Open(1.., _));
    let frame = frame(state, root, now);
    Ok(MillPage {
        has_bit_errors,
        pauses: Pauses::new(pauses, mill, state.rights(who) >= PauseChange::Pause.role(), refused, now),
        problems: problems.iter().map(|problem| visible(problem)).collect(),
        queues: queues.iter().map(|queue| Queue::new(queue, now)).collect(),
        rate_minutes: RATE_MINUTES,
        producers: producers.into_iter().map(|producer| Producer::new(producer, &frame.root, now)).collect(),
        workers: workers.into_iter().map(|worker| Worker::new(worker, now)).collect(),
        no_worker: as_sentence(&no_process()),
        limits: limits.into_iter().map(|limit| Limit::new(limit, now)).collect(),
        budgets: budgets.iter().map(Budget::new).collect(),
        has_restores: queues.iter().any(|queue| queue.restore > 0),
        decisions: decisions.iter().map(|decision| DecisionRow::new(decision, now)).collect(),
        frame,
    })
}

impl Budget {
    fn new(item: &BudgetItem) -> Self {
        let part = |part: BudgetPart| BudgetRow {
            width: width(part.used, part.most),
            is_used_up: part.used >= part.most,
            words: part.words,
        };
        Self { store: item.store.clone(), parts: item.parts().map(part).collect() }
    }
}

impl Queue {
    fn new(item: &QueueItem, now: Timestamp) -> Self {
        let rate = item.done_per_minute;
        Self {
            name: item.queue,
            waiting: Count(item.waiting).to_string(),
            in_progress: Count(item.in_progress).to_string(),
            oldest: item.oldest.map(|oldest| Moment::new(oldest, now)),
            rate: if rate > 0.0 && rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") },
            empty: item.empty_at.map(|empty| Due::new(empty, now)),
            held: Count(item.held).to_string(),
            dead: Count(item.dead).to_string(),
            paused: if item.paused > 0 { Count(item.paused).to_string() } else { String::new() },
            restore: if item.restore > 0 { Count(item.restore).to_string() } else { String::new() },
            has_bit_errors: item.has_bit_errors(),
            is_empty: item.waiting + item.in_progress + item.held + item.dead + item.paused + item.restore == 0,
        }
    }
}

impl Producer {
    fn new(item: ProducerItem, root: &str, now: Timestamp) -> Self {
        let does = match (item.number, item.morsels_left) {
            (0, _) => "No loop has begun yet: queuekeeper mill run begins one.".to_owned(),
            (number, 0) => match item.checking {
                0 => format!("Loop {number} is done."),
                1 => format!("Loop {number} has requested all checks; those of a space have not ended."),
                spaces => {
                    format!("Loop {number} has requested all checks; those of {} spaces have not ended.", Count(spaces))
                }
            },
            (number, left) if item.is_led => {
                format!("Loop {number} is under way: {left} of {} parts are left.", item.morsels)
            }
            (number, left) => format!(
                "Loop {number} is not progressing, because no process leads it: {left} of {} parts are left.",
                item.morsels
            ),
        };
        let more = item.morsels_left.saturating_sub(item.left.len() as u64);
        Self {
            name: item.producer,
            does,
            started: item.started.filter(|_| item.morsels_left > 0).map(|started| Moment::new(started, now)),
            ends: item.ends.map(|ends| Due::new(ends, now)),
            is_late: item.is_late,
            next_due: item.next_due.map(|due| Due::new(due, now)),
            rest: item.forecast.map(|rest| Rest {
                items: Count(rest.items).to_string(),
                bytes: Size::new(rest.bytes),
                requests: Count(rest.requests).to_string(),
                cost: rest.cost.map(|cost| visible(&cost.words())).unwrap_or_default(),
            }),
            scanned: Count(item.scanned).to_string(),
            // What was deleted since the loop began was not there to be scanned.
            items: Count(if item.morsels_left == 0 { item.scanned } else { item.items.max(item.scanned) }).to_string(),
            width: if item.morsels_left == 0 && item.number > 0 {
                width(1, 1)
            } else {
                width(item.scanned, item.items)
            },
            left: item.left.into_iter().map(|morsel| MorselRow::new(morsel, root)).collect(),
            more: if more > 0 { Count(more).to_string() } else { String::new() },
        }
    }
}

impl MorselRow {
    fn new(morsel: MorselItem, root: &str) -> Self {
        let stores = morsel.stores();
        let MorselItem { account, space, items, scanned, error, is_paused, .. } = morsel;
        Self {
            href: format!("{root}mill/spaces/{account}/{space}"),
            name: format!("{account}/{space}"),
            stores,
            text: format!("{} of {} items", Count(scanned), Count(items.max(scanned))),
            width: width(scanned, items),
            error: error.map(|error| visible(&error)).unwrap_or_default(),
            is_paused,
        }
    }
}

impl Worker {
    fn new(item: WorkerItem, now: Timestamp) -> Self {
        let WorkerItem { process, workers, busy, kinds, started, seen } = item;
        let (started, seen) = (Moment::new(started, now), Moment::new(seen, now));
        Self { process: visible(&process), workers, busy, kinds: kinds.join(", "), started, seen }
    }
}

impl Limit {
    fn new(item: LimitItem, now: Timestamp) -> Self {
        let LimitItem { account, store, limits, closed_until } = item;
        let closed_until = closed_until.map(|until| Due::new(until, now));
        Self { name: format!("{account} in {store}"), limits: visible(&limits), closed_until }
    }
}

impl Pauses {
    fn new(items: Vec<PauseItem>, mill: &Mill, may_act: bool, refused: String, now: Timestamp) -> Self {
        let row = |item: PauseItem| PauseRow {
            what: visible(&item.what),
            account: item.account.unwrap_or_default(),
            store: item.store.unwrap_or_default(),
            user: visible(&item.user),
            reason: visible(&item.reason),
            since: Moment::new(item.since, now),
            tasks: Count(item.tasks).to_string(),
        };
        let rows = items.into_iter().map(row).collect();
        Self { rows, may_act, refused, accounts: mill.account_names(), stores: mill.store_names() }
    }
}

impl DecisionRow {
    pub(super) fn new(item: &DecisionItem, now: Timestamp) -> Self {
        let key = item.key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
        let to = item.destination.as_ref().map(|store| format!(" to {store}")).unwrap_or_default();
        Self {
            at: Moment::new(item.time, now),
            user: visible(&item.user),
            did: if item.decision == "drop" { "dropped" } else { "requeued" },
            what: format!("{} of {}: {}{key}{to}", item.kind, item.account, item.space),
            reason: visible(&item.reason),
        }
    }
}
