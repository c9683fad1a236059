//! What an operator should look at, the most urgent first.

use jiff::Timestamp;

use super::figures::queue_name;
use crate::metrics::storage::Space;
use crate::mirror::Summary;
use crate::queue::fault::Fault;
use crate::queue::path::Queue;
use crate::queue::state::JobState;
use crate::web::show::{Count, Moment, counted, percent, visible};

/// One thing to look at: what, since when, and what it means.
#[derive(Debug)]
pub(super) struct Item {
    /// `bad` or `warn`.
    pub(super) class: &'static str,
    pub(super) title: String,
    /// How its age is told: `for`, or `oldest` where it is that of one of many.
    pub(super) age: &'static str,
    pub(super) since: Option<Moment>,
    pub(super) text: String,
}

pub(super) fn items(summary: &Summary, storage: Option<(f64, Space)>, now: Timestamp) -> Vec<Item> {
    let moment = |instant: Option<Timestamp>| instant.map(|instant| Moment::new(instant, now));
    let mut items = Vec::new();
    for &queue in Queue::ALL {
        if let Some(since) = summary.paused(queue) {
            let text = match queue {
                Queue::Ingest => "No daemon but the inventory's takes a job until it is released.",
                Queue::AccessSmall | Queue::AccessLarge => "No request is taken from it until it is released.",
            };
            items.push(Item {
                class: "bad",
                title: format!("The {} queue is paused", queue_name(queue)),
                age: "for",
                since: moment(Some(since)),
                text: text.to_owned(),
            });
        }
    }
    let failed = summary.jobs.get(Some(JobState::Failed));
    if failed.count > 0 {
        let resumed = match failed.retried {
            0 => "None of them was resumed yet.".to_owned(),
            n if n == failed.count => "Each was resumed at least once and failed again.".to_owned(),
            1 => "1 of them was resumed at least once and failed again.".to_owned(),
            n => format!("{} of them were resumed at least once and failed again.", Count(n)),
        };
        items.push(Item {
            class: "bad",
            title: format!("{} failed", counted(failed.count, "job", "jobs")),
            age: "oldest",
            since: moment(failed.oldest()),
            text: format!("They wait for an operator. {resumed}"),
        });
    }
    if let Some((threshold, space)) = storage.filter(|_| summary.waiting_for_space > 0) {
        let used = 1.0 - space.free_bytes as f64 / (space.size_bytes as f64).max(1.0);
        items.push(Item {
            class: "bad",
            title: format!("{} for space", counted(summary.waiting_for_space, "job waits", "jobs wait")),
            age: "oldest",
            since: moment(summary.jobs.get(Some(JobState::Provisioning)).oldest_locked),
            text: format!(
                "Working storage is {} full, and with any of them it is above the limit of {}. \
                 Space comes free as jobs pass Notify.",
                percent(used),
                percent(threshold)
            ),
        });
    }
    items.extend(faults(summary, now));
    items.extend(oddities(summary));
    let held = summary.jobs.get(Some(JobState::Held));
    if summary.collections_held > 0 || held.count > 0 {
        items.push(Item {
            class: "warn",
            title: if summary.collections_held > 0 {
                format!("{} held", counted(summary.collections_held, "collection is", "collections are"))
            } else {
                format!("{} held, and no collection is", counted(held.count, "job is", "jobs are"))
            },
            age: "oldest",
            since: moment(held.oldest()),
            text: format!("{} held back until an operator releases them.", counted(held.count, "job is", "jobs are")),
        });
    }
    items
}

/// What is broken in the tree, one line for each kind of fault.
fn faults(summary: &Summary, now: Timestamp) -> impl Iterator<Item = Item> {
    let shown = Fault::ALL.into_iter().map(|fault| (fault, summary.faults(fault))).filter(|(_, shown)| shown.count > 0);
    shown.map(move |(fault, shown)| Item {
        class: "bad",
        title: format!("{}: {}", fault.title(), counted(shown.count, "item", "items")),
        age: "oldest",
        since: shown.since.map(|since| Moment::new(since, now)),
        text: format!("{} {}", fault.effect(), fault.remedy()),
    })
}

/// What is in the tree and should not be.
fn oddities(summary: &Summary) -> Vec<Item> {
    let mut items = Vec::new();
    if !summary.unknown_states.is_empty() {
        let names: Vec<String> = summary.unknown_states.iter().map(|name| format!("“{}”", visible(name))).collect();
        items.push(Item {
            class: "warn",
            title: "There are states that nobody knows".to_owned(),
            age: "",
            since: None,
            text: format!("What is in them is counted as other: {}.", names.join(", ")),
        });
    }
    if summary.unreadable > 0 {
        items.push(Item {
            class: "warn",
            title: format!("{} cannot be read", counted(summary.unreadable, "znode", "znodes")),
            age: "",
            since: None,
            text: "They hold garbage, are not ours to read, or have a name that nobody expects. \
                   Everything else is shown as if they were not there."
                .to_owned(),
        });
    }
    items
}
