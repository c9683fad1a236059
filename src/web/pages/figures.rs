//! The figures of the overview.

use jiff::Timestamp;

use crate::metrics::storage::Space;
use crate::mirror::{AGE_LABELS, ByAge, ByState, ItemFigures, JobFigures, LockKind, Summary, state_label};
use crate::queue::path::{AccessQueue, Queue};
use crate::queue::state::{AccessState, BatchState, JobState, State};
use crate::web::show::{Count, Moment, Size, counted, percent, visible};

/// Everything that the page shows of the image.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) pipeline: Vec<Step>,
    pub(super) aside: Vec<Step>,
    pub(super) jobs: String,
    pub(super) space_needed: Option<Size>,
    pub(super) storage: Option<Volume>,
    pub(super) queues: Vec<Line>,
    pub(super) collections_held: String,
    pub(super) locks: Vec<Line>,
    pub(super) batches: Vec<Line>,
    pub(super) access: Vec<AccessLine>,
    pub(super) unreadable: String,
    pub(super) unknown_states: Vec<String>,
}

/// The jobs of a state.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: &'static str,
    /// The state's own look, where it has one: `failed`, `held`.
    pub(super) class: &'static str,
    pub(super) count: String,
    pub(super) is_empty: bool,
    /// How many a daemon holds; empty where none.
    pub(super) at_work: String,
    pub(super) oldest: Option<Moment>,
    pub(super) bar: Bar,
}

/// The ages of the jobs of a state, drawn.
#[derive(Debug)]
pub(super) struct Bar {
    /// The same in words.
    pub(super) text: String,
    pub(super) parts: Vec<Part>,
}

/// A part of a bar, in percent of its width.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) band: &'static str,
    pub(super) x: String,
    pub(super) width: String,
}

/// A name, how many, and since when the oldest is there.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) count: String,
    pub(super) is_empty: bool,
    pub(super) oldest: Option<Moment>,
}

/// The access requests of a queue in a state.
#[derive(Debug)]
pub(super) struct AccessLine {
    pub(super) queue: &'static str,
    pub(super) line: Line,
    pub(super) size: Size,
}

/// Working storage.
#[derive(Debug)]
pub(super) struct Volume {
    pub(super) used: String,
    pub(super) limit: String,
    pub(super) size: Size,
    pub(super) is_above: bool,
}

impl Figures {
    pub(super) fn new(summary: &Summary, storage: Option<(f64, Space)>, now: Timestamp) -> Self {
        let on_path = |state: Option<JobState>| {
            state.is_some_and(|state| state == JobState::Completed || state.success().is_some())
        };
        let steps = |wanted: bool| {
            let states = summary.jobs.iter().filter(|(state, _)| on_path(*state) == wanted);
            states.map(|(state, jobs)| step(state, jobs, now)).collect()
        };
        let count = summary.jobs.iter().map(|(_, jobs)| jobs.count).sum();
        // A job that is done has given its space back.
        let unfinished = summary.jobs.iter().filter(|(state, _)| !state.is_some_and(State::is_final));
        // A znode may claim any number of bytes, and two of them more than there are numbers.
        let space = unfinished.map(|(_, jobs)| jobs.space_needed_bytes).fold(0, u64::saturating_add);
        Self {
            pipeline: steps(true),
            aside: steps(false),
            jobs: counted(count, "job", "jobs"),
            space_needed: (space > 0).then(|| Size::new(space)),
            storage: storage.map(|(threshold, space)| volume(threshold, space)),
            queues: queues(summary, now),
            collections_held: counted(summary.collections_held, "collection", "collections"),
            locks: locks(summary, now),
            batches: items(&summary.batches, now, |state| state.map_or("other", BatchState::name)),
            access: AccessQueue::ALL.iter().flat_map(|&queue| access(summary.access(queue), queue, now)).collect(),
            unreadable: counted(summary.unreadable, "znode", "znodes"),
            unknown_states: summary.unknown_states.iter().map(|name| visible(name)).collect(),
        }
    }
}

fn step(state: Option<JobState>, jobs: &JobFigures, now: Timestamp) -> Step {
    let class = match state {
        Some(JobState::Failed) => "failed",
        Some(JobState::Held) => "held",
        None if jobs.count > 0 => "failed",
        Some(_) | None => "",
    };
    // What is done is not waiting: how long it has been done is nobody's worry.
    let is_done = state.is_some_and(State::is_final);
    Step {
        name: state.map_or("Other", State::name),
        class,
        count: Count(jobs.count).to_string(),
        is_empty: jobs.count == 0,
        at_work: if jobs.locked > 0 { format!("{} at work", Count(jobs.locked)) } else { String::new() },
        oldest: jobs.oldest().filter(|_| !is_done).map(|oldest| Moment::new(oldest, now)),
        bar: if is_done { bar(&ByAge::default()) } else { bar(&jobs.by_age) },
    }
}

/// Draws the bands side by side, youngest first.
fn bar(by_age: &ByAge) -> Bar {
    let total: u64 = by_age.iter().sum();
    let mut text = Vec::new();
    let mut parts = Vec::new();
    let mut x = 0.0;
    for (&count, band) in by_age.iter().zip(AGE_LABELS).filter(|(count, _)| **count > 0) {
        let width = count as f64 / total as f64 * 100.0;
        parts.push(Part { band, x: format!("{x:.2}"), width: format!("{width:.2}") });
        x += width;
        let jobs = Count(count);
        text.push(if band == "older" { format!("{jobs} older than 1d") } else { format!("{jobs} up to {band}") });
    }
    Bar { text: text.join(", "), parts }
}

fn volume(threshold: f64, space: Space) -> Volume {
    let used = 1.0 - space.free_bytes as f64 / (space.size_bytes as f64).max(1.0);
    Volume {
        used: percent(used),
        limit: percent(threshold),
        size: Size::new(space.size_bytes),
        is_above: used > threshold,
    }
}

fn queues(summary: &Summary, now: Timestamp) -> Vec<Line> {
    let line = |&queue: &Queue| {
        let since = summary.paused(queue);
        Line {
            name: queue_name(queue),
            count: if since.is_some() { "paused" } else { "running" }.to_owned(),
            is_empty: since.is_none(),
            oldest: since.map(|since| Moment::new(since, now)),
        }
    };
    Queue::ALL.iter().map(line).collect()
}

/// A queue's name within a sentence.
pub(super) fn queue_name(queue: Queue) -> &'static str {
    match queue {
        Queue::Ingest => "ingest",
        Queue::AccessSmall => "small access",
        Queue::AccessLarge => "large access",
    }
}

fn locks(summary: &Summary, now: Timestamp) -> Vec<Line> {
    let line = |kind: LockKind| {
        let locks = summary.locks(kind);
        let name = match kind {
            LockKind::Job => "jobs",
            LockKind::Batch => "batches",
            LockKind::Access => "access requests",
            LockKind::Storage => "objects being stored",
            LockKind::Inventory => "objects being recorded",
            LockKind::LocalId => "local ids",
            LockKind::Queue => "queues paused",
            LockKind::Collection => "collections held",
        };
        Line {
            name,
            count: Count(locks.count).to_string(),
            is_empty: locks.count == 0,
            oldest: locks.oldest.map(|oldest| Moment::new(oldest, now)),
        }
    };
    LockKind::ALL.into_iter().map(line).collect()
}

/// The states that have items, and the others only where they are on the way of every item.
fn items<S: State>(items: &ByState<S, ItemFigures>, now: Timestamp, name: fn(Option<S>) -> &'static str) -> Vec<Line> {
    items
        .iter()
        .filter(|(state, figures)| figures.count > 0 || state.is_some_and(|state| state.success().is_some()))
        .map(|(state, figures)| Line {
            name: name(state),
            count: Count(figures.count).to_string(),
            is_empty: figures.count == 0,
            oldest: figures.oldest.map(|oldest| Moment::new(oldest, now)),
        })
        .collect()
}

fn access(figures: &ByState<AccessState, ItemFigures>, queue: AccessQueue, now: Timestamp) -> Vec<AccessLine> {
    let sizes = |line: &Line| {
        let state = figures.iter().find(|(state, _)| state_label(*state).eq_ignore_ascii_case(line.name));
        Size::new(state.map_or(0, |(_, figures)| figures.requested_bytes))
    };
    items(figures, now, |state| state.map_or("other", AccessState::name))
        .into_iter()
        .map(|line| AccessLine { queue: queue.name(), size: sizes(&line), line })
        .collect()
}
