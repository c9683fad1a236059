//! What stands below the curves: queues, locks, batches, access requests, and the image itself.

use std::time::Duration;

use jiff::Timestamp;

use crate::mirror::ServerClock;
use crate::views::held::HeldCollection;
use crate::views::overview::{Overview, QueueState, offset};
use crate::views::show::{Count, Moment, Size, brief, counted, requested, visible};
use crate::web::http::query::{address, pair};
use crate::web::pages::View;
use crate::web::pages::listing::SHORT;

/// The tables of the overview.
#[derive(Debug)]
pub(super) struct Details {
    pub(super) stops: Vec<Stop>,
    /// How many collections are held beyond those that are named; empty for none.
    pub(super) more_held: String,
    pub(super) locks: Vec<CountLine>,
    pub(super) batches: Vec<CountLine>,
    pub(super) access: Vec<AccessLine>,
}

/// A name, how many, and since when the oldest is there.
#[derive(Debug)]
pub(super) struct CountLine {
    pub(super) name: &'static str,
    pub(super) count: String,
    pub(super) is_empty: bool,
    pub(super) oldest: Option<Moment>,
}

/// A queue that can be paused, or a held collection.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) name: String,
    /// The page that shows it, relative to the root; empty for none.
    pub(super) page: String,
    pub(super) is_stopped: bool,
    pub(super) state: &'static str,
    /// Who stopped it, and why; empty if that is not recorded.
    pub(super) requested: String,
    pub(super) since: Option<Moment>,
}

impl Stop {
    fn queue(queue: &QueueState, now: Timestamp) -> Self {
        let is_stopped = queue.paused_since.is_some();
        Self {
            name: format!("{} queue", queue.name),
            page: if is_stopped { "locks?kind=queue".to_owned() } else { String::new() },
            is_stopped,
            state: if is_stopped { "paused" } else { "not paused" },
            requested: requested(&queue.by, &queue.reason),
            since: queue.paused_since.map(|since| Moment::new(since, now)),
        }
    }

    fn collection(held: &HeldCollection, now: Timestamp) -> Self {
        Self {
            name: brief(&held.collection, SHORT),
            page: address("jobs", &[pair("collection", &held.collection)]),
            is_stopped: true,
            state: "held",
            requested: requested(&held.by, &held.reason),
            since: held.since.map(|since| Moment::new(since, now)),
        }
    }
}

/// The access requests of a queue in a state.
#[derive(Debug)]
pub(super) struct AccessLine {
    /// Empty where the line before has said it.
    pub(super) queue: &'static str,
    pub(super) line: CountLine,
    pub(super) size: Size,
}

/// A line of the table about the image.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) moment: Option<Moment>,
    /// The page that shows it, relative to the root; empty for none.
    pub(super) page: &'static str,
}

impl Details {
    pub(super) fn new(overview: &Overview, now: Timestamp) -> Self {
        let moment = |at: Option<Timestamp>| at.map(|at| Moment::new(at, now));
        let queues = overview.queues.iter().map(|queue| Stop::queue(queue, now));
        let held = overview.held.iter().map(|held| Stop::collection(held, now));
        let more_held = overview.collections_held.saturating_sub(overview.held.len() as u64);
        let line = |name, count, at| CountLine {
            name,
            count: Count(count).to_string(),
            is_empty: count == 0,
            oldest: moment(at),
        };
        let locks = overview.locks.iter().map(|locks| line(locks.title, locks.count, locks.oldest_created));
        let batches = overview.batch_states.iter().map(|items| line(items.name, items.count, items.oldest_entered));
        let mut last = "";
        let access = overview.access.iter().map(|access| {
            let is_same = std::mem::replace(&mut last, access.queue) == access.queue;
            AccessLine {
                queue: if is_same { "" } else { access.queue },
                line: line(access.items.name, access.items.count, access.items.oldest_entered),
                size: Size::new(access.requested_bytes),
            }
        });
        Self {
            stops: queues.chain(held).collect(),
            more_held: match (overview.collections_held, more_held) {
                (0, _) => "no collection is held".to_owned(),
                (_, 0) => String::new(),
                (_, more) => format!("and {} held", counted(more, "more collection", "more collections")),
            },
            locks: locks.collect(),
            batches: batches.collect(),
            access: access.collect(),
        }
    }
}

/// A short time: in milliseconds below a second.
fn short(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

/// How the servers' clock compares with ours, and how far ages can be trusted.
fn clock(clock: &ServerClock) -> String {
    let offset = match clock.difference() {
        Some(ahead) => offset(ahead),
        None if clock.is_measured => "equal to this host's".to_owned(),
        None => "assumed equal to this host's".to_owned(),
    };
    match &clock.problem {
        _ if clock.is_measured => offset,
        Some(problem) => {
            format!("{offset}; not measured, so ages may be off by the difference: {}", visible(problem))
        }
        None => format!("{offset}; not measured, so ages may be off by the difference"),
    }
}

/// How we stand with ZooKeeper, and what of the tree we see.
pub(super) fn facts(view: &View) -> Vec<Fact> {
    let freshness = &view.freshness;
    let fact = |name, value: String| Fact { name, value, moment: None, page: "" };
    let mut facts = vec![fact("Servers", view.servers.clone())];
    facts.push(match &freshness.session {
        Some(session) => fact("Session", session.clone()),
        None => fact("Session", "none".to_owned()),
    });
    let moment =
        |name, instant| Fact { name, value: String::new(), moment: Some(Moment::new(instant, view.now)), page: "" };
    facts.extend(freshness.last_event.map(|instant| moment("Last change", instant)));
    let walked = freshness.was_synced;
    facts.extend(freshness.last_walk.filter(|_| walked).map(|instant| moment("Last full read", instant)));
    facts.extend(
        freshness.last_walk_duration.filter(|_| walked).map(|took| fact("Duration of a full read", short(took))),
    );
    facts.push(fact("Clock of ZooKeeper", clock(&freshness.clock)));
    if let Some(summary) = &view.summary {
        facts.push(fact("In the mirror", counted(summary.znodes, "znode", "znodes")));
        facts.push(match summary.unreadable {
            0 => fact("Unreadable", "none".to_owned()),
            znodes => Fact { page: "faults#unreadable", ..fact("Unreadable", Count(znodes).to_string()) },
        });
        if !summary.unknown_states.is_empty() {
            let names: Vec<String> = summary.unknown_states.iter().map(|name| visible(name)).collect();
            facts.push(fact("Unknown states", names.join(", ")));
        }
    }
    facts
}
