//! The states of jobs, from Pending to Completed, and those beside the way.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::views::overview::{Overview, StateFigures};
use crate::views::show::{Ago, Count, Moment, Size, percent};
use crate::words;

/// Everything about jobs by state.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) path: Vec<Step>,
    pub(super) aside: Vec<Step>,
    pub(super) sums: Vec<Sum>,
}

/// The jobs of a state.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) state: &'static str,
    /// The state's own look, where it has one: `failed`, `held`, `stuck`.
    pub(super) class: &'static str,
    pub(super) count: String,
    pub(super) is_empty: bool,
    /// How many a daemon holds; empty where none.
    pub(super) at_work: String,
    /// What `moment` is: `oldest`, `empty for`.
    pub(super) said: &'static str,
    pub(super) moment: Option<Moment>,
    /// How fast jobs leave it; empty where that is not known, or nothing is there to leave.
    pub(super) rate: String,
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

/// A figure of the whole queue within a phrase.
#[derive(Debug)]
pub(super) struct Sum {
    pub(super) class: &'static str,
    pub(super) before: String,
    pub(super) value: String,
    /// The value exactly; empty where it is that already.
    pub(super) exact: String,
    pub(super) after: String,
}

impl Pipeline {
    pub(super) fn new(overview: &Overview, now: Timestamp) -> Self {
        let steps = |is_on_path: bool| {
            let states = overview.states.iter().filter(move |state| state.is_on_path == is_on_path);
            // A state that we do not know is worth a place only where there is one.
            let shown = states.filter(|state| state.state != "other" || state.count > 0);
            shown.map(|state| step(state, overview, now)).collect()
        };
        Self { path: steps(true), aside: steps(false), sums: sums(overview) }
    }
}

fn step(state: &StateFigures, overview: &Overview, now: Timestamp) -> Step {
    let is_empty = state.count == 0;
    let waiting = overview.waiting_for_space.filter(|waiting| *waiting > 0 && state.state == "provisioning");
    let waits = waiting.is_some_and(|waiting| state.locked > 0 && waiting >= state.locked);
    let class = match state.state {
        "failed" | "other" => "failed",
        "held" => "held",
        _ if state.is_stopped => "stuck",
        _ if waits => "waits",
        _ => "",
    };
    let at_work = match state.locked {
        0 => String::new(),
        // As many as elsewhere are said to wait for space: those that no daemon has taken do so, too.
        _ if waits => format!("{} waiting", Count(waiting.unwrap_or(state.locked))),
        locked => format!("{} working", Count(locked)),
    };
    // Finished jobs do not wait, so their age does not matter.
    let (said, instant) = match (state.is_final, is_empty) {
        (true, _) => ("", None),
        (false, false) => ("oldest", state.oldest_entered),
        (false, true) => ("empty for", state.last_left.filter(|_| state.is_on_path)),
    };
    Step {
        name: state.name,
        state: state.state,
        class,
        count: Count(state.count).to_string(),
        is_empty,
        at_work,
        said,
        moment: instant.map(|instant| Moment::new(instant, now)),
        rate: rate(state, overview, now),
        bar: bar(state),
    }
}

/// How long ago a job left a state that is shown with its rate although it is empty.
const LATELY: SignedDuration = SignedDuration::from_secs(5);

fn rate(state: &StateFigures, overview: &Overview, now: Timestamp) -> String {
    if state.state == "completed" {
        if overview.watched_seconds == 0 {
            return String::new();
        }
        return format!("+ {} {}", Count(overview.completed_1h), overview.watched());
    }
    // One that is empty for a moment flows as before.
    let is_lately = state.last_left.is_some_and(|left| now.duration_since(left) < LATELY);
    if !state.is_on_path || (state.count == 0 && !is_lately) {
        return String::new();
    }
    match (state.left_per_hour, state.last_left) {
        (Some(rate), _) if rate > 0.0 => format!("{} an hour", words::about(rate)),
        (Some(_), Some(left)) if state.count > 0 => {
            let still = Duration::try_from(now.duration_since(left)).unwrap_or_default();
            format!("none for {}", Ago(still))
        }
        _ => String::new(),
    }
}

/// Draws the bands side by side, youngest first.
fn bar(state: &StateFigures) -> Bar {
    let (mut text, mut parts) = (Vec::new(), Vec::new());
    if state.is_final {
        return Bar { text: String::new(), parts };
    }
    let total: u64 = state.by_age.iter().map(|band| band.count).sum();
    let mut x = 0.0;
    for band in state.by_age.iter().filter(|band| band.count > 0) {
        let width = band.count as f64 / total as f64 * 100.0;
        parts.push(Part { band: band.age, x: format!("{x:.2}"), width: format!("{width:.2}") });
        x += width;
        let jobs = Count(band.count);
        let age = band.age;
        text.push(if age == "older" { format!("{jobs} older than 1d") } else { format!("{jobs} up to {age}") });
    }
    Bar { text: text.join(", "), parts }
}

fn sums(overview: &Overview) -> Vec<Sum> {
    let sum = |before: &str, value: String, after: &str| Sum {
        class: "",
        before: before.to_owned(),
        value,
        exact: String::new(),
        after: after.to_owned(),
    };
    let mut sums = vec![sum("", Count(overview.under_way).to_string(), "under way")];
    if overview.space_needed_bytes > 0 {
        let size = Size::new(overview.space_needed_bytes);
        sums.push(Sum { exact: size.exact, ..sum("", size.short, "of working storage needed") });
    }
    if let Some(storage) = &overview.storage {
        let is_above = storage.used_ratio > storage.threshold_ratio;
        let size = Size::new(storage.size_bytes);
        sums.push(Sum {
            class: if is_above { "bad" } else { "" },
            exact: size.exact,
            ..sum(
                "working storage",
                percent(storage.used_ratio),
                &format!("full of {}, limit {}", size.short, percent(storage.threshold_ratio)),
            )
        });
    }
    let paused: Vec<_> = overview.queues.iter().filter(|queue| queue.paused_since.is_some()).collect();
    sums.push(match paused.as_slice() {
        // Whether any daemon works on them is another question.
        [] => sum("queues", "not paused".to_owned(), ""),
        [one] => Sum { class: "bad", ..sum(one.name, "paused".to_owned(), "") },
        many => Sum { class: "bad", ..sum("", format!("{} queues", many.len()), "paused") },
    });
    let open = |queue: &str| -> u64 {
        let open = overview.access.iter().filter(|access| access.queue == queue);
        open.filter(|access| access.items.state != "completed" && access.items.state != "deleted")
            .map(|access| access.items.count)
            .sum()
    };
    sums.push(sum("access", format!("{} small, {} large", Count(open("small")), Count(open("large"))), ""));
    sums
}
