//! What an operator should look at, the most urgent first.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Recent, queue_name};
use crate::metrics::storage::Space;
use crate::mirror::{Pause, Summary};
use crate::views::show::{Ago, Size, as_sentence, counted, percent, visible};
use crate::views::status::Status;
use queuekeeper_queue::fault::{self, Fault};
use queuekeeper_queue::path::Queue;
use queuekeeper_queue::state::JobState;

mod automation;
mod failures;
mod held;
mod states;

/// How urgent something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Something does not flow, or never will by itself.
    Bad,
    /// Somebody should know.
    Warn,
}

impl From<fault::Severity> for Severity {
    fn from(severity: fault::Severity) -> Self {
        match severity {
            fault::Severity::Error => Self::Bad,
            fault::Severity::Warning => Self::Warn,
        }
    }
}

/// One thing to look at.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Attention {
    /// What it is: a fault's name as in the metrics, or `unsynced`, `storage_unmeasured`, `paused`, `stopped`, `failed`, `waiting_for_space`, `held`, `held_jobs`,
    /// `held_by_operator`, `failed_by_operator`,
    /// `unknown_states`, `unreadable`, `automation_paused`, `breaker_open`, `automation_gave_up`, `automation_failing`,
    /// `automation_at_work`, `automation_holds`, `automation_orphan`,
    /// `automation_foreign`, `automation_blocked`, `automation_unwritten`, `clock_offset`.
    pub(crate) kind: &'static str,
    /// How urgent it is.
    pub(crate) severity: Severity,
    /// What is the matter.
    pub(crate) title: String,
    /// Since when; where it is about many, since when the oldest.
    pub(crate) since: Option<Timestamp>,
    /// What it means and what it comes from.
    pub(crate) text: String,
    /// What repairs it.
    pub(crate) remedy: String,
    /// The page that shows it, relative to the root.
    pub(crate) page: Option<String>,
    /// Whether `since` is that of the oldest of many.
    #[serde(skip)]
    pub(crate) is_oldest: bool,
    /// What the page is about.
    #[serde(skip)]
    pub(crate) link: &'static str,
}

/// Everything that wants to be looked at.
pub(super) fn all(status: &Status, summary: &Summary, recent: &Recent) -> Vec<Attention> {
    let mut items: Vec<_> = unsynced(status).into_iter().collect();
    items.extend(states::no_daemon(summary, recent));
    items.extend(recent.pauses.iter().map(paused));
    items.extend(states::stopped(recent));
    let is_told = recent.stopped.iter().any(|stopped| stopped.state == JobState::Provisioning);
    items.extend(waiting(summary, recent.storage).filter(|_| !is_told));
    // A fault may stop a whole state, or all reporting; a job that failed stops no other.
    items.extend(faults(summary, !recent.stopped.is_empty()));
    items.extend(failures::groups(summary, recent));
    items.extend(recent.automation.as_ref().map(automation::items).unwrap_or_default());
    items.extend(automation::foreign(&recent.foreign));
    items.extend(held::all(summary));
    items.extend(oddities(summary));
    items.extend(recent.storage_problem.as_deref().map(unmeasured));
    items.extend(clock(status));
    // What is equally urgent stays in this order.
    items.sort_by_key(|item| item.severity);
    items
}

fn item(kind: &'static str, severity: Severity, title: String, text: impl Into<String>) -> Attention {
    Attention {
        kind,
        severity,
        title,
        since: None,
        text: text.into(),
        remedy: String::new(),
        page: None,
        is_oldest: false,
        link: "",
    }
}

/// The figures are old: whatever began since is in none of them.
fn unsynced(status: &Status) -> Option<Attention> {
    let since = status.stale_since?;
    let (title, remedy) = if status.connected {
        ("The figures do not follow the queue", "They do again as soon as the whole queue has been read.")
    } else {
        (
            "There is no connection to ZooKeeper",
            "Look whether its servers run and can be reached from here, and at --zookeeper. Connecting is tried again \
             until it succeeds.",
        )
    };
    let why = status.problem.as_deref().map(as_sentence).unwrap_or_default();
    let text = format!("{why} What began since is not shown: everything below is as it was then.");
    Some(Attention {
        since: Some(since),
        remedy: remedy.to_owned(),
        ..item("unsynced", Severity::Bad, title.to_owned(), text.trim_start())
    })
}

/// A volume that was to be measured and cannot be.
fn unmeasured(problem: &str) -> Attention {
    Attention {
        remedy: "Check --storage.path, and that this host has the volume mounted and answers for it.".to_owned(),
        ..item(
            "storage_unmeasured",
            Severity::Warn,
            "Working storage cannot be measured".to_owned(),
            format!("{} Whether jobs wait for space is unknown.", as_sentence(&visible(problem))),
        )
    }
}

fn paused((queue, pause): &(Queue, Pause)) -> Attention {
    let effect = match queue {
        Queue::Ingest => {
            "No daemon but the inventory's takes a job, and none that would free working storage does either."
        }
        Queue::AccessSmall | Queue::AccessLarge => "No request is taken from it.",
    };
    Attention {
        since: pause.since,
        remedy: "It goes on when the pause is released.".to_owned(),
        page: Some("locks".to_owned()),
        link: "Show locks",
        ..item(
            "paused",
            Severity::Bad,
            format!("The {} queue is paused", queue_name(*queue)),
            format!("{}{effect}", pause.requested()),
        )
    }
}

fn full(threshold: f64, space: Space) -> String {
    let used = 1.0 - space.free_bytes as f64 / (space.size_bytes as f64).max(1.0);
    format!("Working storage is {} full, and the limit is {}.", percent(used), percent(threshold))
}

fn waiting(summary: &Summary, storage: Option<(f64, Space)>) -> Option<Attention> {
    let (threshold, space) = storage.filter(|_| summary.waiting_for_space > 0)?;
    let provisioning = summary.jobs.get(Some(JobState::Provisioning));
    let needed = Size::new(provisioning.space_needed_bytes).short;
    Some(Attention {
        since: provisioning.oldest(),
        is_oldest: true,
        remedy: "Space comes free as jobs pass Notify: look whether those do, or enlarge it.".to_owned(),
        page: Some("jobs?state=provisioning".to_owned()),
        link: "Show jobs",
        ..item(
            "waiting_for_space",
            Severity::Bad,
            format!("{} for space", counted(summary.waiting_for_space, "job waits", "jobs wait")),
            format!(
                "{} With {} it would be above that. All in Provisioning need {needed}.",
                full(threshold, space),
                if summary.waiting_for_space == 1 { "this one" } else { "any of these" }
            ),
        )
    })
}

/// What is broken in the tree, one line for each kind of fault that is not shown otherwise.
fn faults(summary: &Summary, has_stopped: bool) -> impl Iterator<Item = Attention> {
    let shown = Fault::ALL.into_iter().map(|fault| (fault, summary.faults(fault)));
    let shown = shown.filter(move |(fault, shown)| {
        let is_told = match fault {
            Fault::StuckState | Fault::NoDaemon => has_stopped,
            _ => false,
        };
        shown.count > 0 && !is_told
    });
    shown.map(|(fault, shown)| Attention {
        since: shown.since,
        is_oldest: shown.count > 1,
        remedy: fault.remedy().to_owned(),
        page: Some("faults".to_owned()),
        link: "Show faults",
        ..item(
            fault.label(),
            fault.severity().into(),
            format!("{}: {}", fault.title(), counted(shown.count, "item", "items")),
            fault.effect(),
        )
    })
}

/// What is in the tree and should not be.
fn oddities(summary: &Summary) -> Vec<Attention> {
    let mut items = Vec::new();
    if !summary.unknown_states.is_empty() {
        let names: Vec<String> = summary.unknown_states.iter().map(|name| format!("“{}”", visible(name))).collect();
        let text = format!("What is in them is counted as other: {}.", names.join(", "));
        items.push(Attention {
            remedy: "Look who writes them; a newer daemon may know more states than this program.".to_owned(),
            ..item("unknown_states", Severity::Warn, "There are states that nobody knows".to_owned(), text)
        });
    }
    if summary.unreadable > 0 {
        items.push(Attention {
            remedy: "Look at them in the tree. Where ZooKeeper refuses to show one, check --zookeeper.auth-file.".to_owned(),
            page: Some("faults#unreadable".to_owned()),
            link: "Show znodes",
            ..item(
                "unreadable",
                Severity::Warn,
                format!(
                    "{} cannot be read or {} an unexpected name",
                    counted(summary.unreadable, "znode", "znodes"),
                    if summary.unreadable == 1 { "has" } else { "have" }
                ),
                "Malformed values, znodes that queuekeeper's credentials may not read, and unexpected names. What they should \
                 tell is missing from what is shown.",
            )
        });
    }
    items
}

/// By how much the servers' clock differs from ours, in words; `ahead` is negative where it is behind.
pub(crate) fn offset(ahead: SignedDuration) -> String {
    let by = Ago(ahead.unsigned_abs());
    if ahead.is_positive() { format!("{by} ahead of this host's") } else { format!("{by} behind this host's") }
}

/// Clocks that differ: ages are right, and every instant that another program compares with its own clock is not.
fn clock(status: &Status) -> Option<Attention> {
    let ahead = status.clock_difference?;
    let least = if status.clock_measured { "" } else { " at least" };
    Some(Attention {
        remedy: "Check the time synchronization (NTP) of this host and of the ZooKeeper servers.".to_owned(),
        ..item(
            "clock_offset",
            Severity::Warn,
            format!("The clock of the ZooKeeper servers is{least} {}", offset(ahead)),
            "Ages are counted by the servers' clock. Times of day are shown by the clock of this host, and so are those in \
             metrics, which Prometheus compares with its own.",
        )
    })
}
