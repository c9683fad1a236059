//! What needs attention, the most urgent first.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::Recent;
use crate::metrics::working_storage::Space;
use crate::mirror::{PauseSituation, Summary};
use crate::views::show::{Ago, Size, as_sentence, counted, percent, visible};
use crate::views::status::Status;
use crate::words::until_unpaused;
use queuekeeper_queue::fault::{self, FREE_SPACE, Fault};
use queuekeeper_queue::path::QueueName;
use queuekeeper_queue::state::JobState;

mod automation;
mod bit_errors;
mod failures;
mod held;
mod mail;
mod states;

/// How urgent something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Something is stuck and needs an operator.
    Bad,
    /// An operator should know about it.
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

/// Something that needs attention.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Attention {
    /// What it is: a fault's name as in the metrics, or `unsynced`, `storage_unmeasured`, `paused`, `stopped`,
    /// `failed`, `failed_without_jobs`, `waiting_for_space`, `held`, `held_jobs`, `held_by_operator`, `store_held`,
    /// `mail_waiting`, `failed_by_operator`, `unknown_states`, `unreadable`, `automation_paused`, `breaker_open`,
    /// `automation_gave_up`, `automation_failing`, `automation_at_work`, `automation_holds`, `automation_orphan`,
    /// `automation_foreign`, `automation_blocked`, `automation_unwritten`, `clock_offset`, `bit_errors`,
    /// `bit_errors_unknown`.
    pub(crate) kind: &'static str,
    /// How urgent it is.
    pub(crate) severity: Severity,
    /// The problem in a few words.
    pub(crate) title: String,
    /// When it began; of many items, when the oldest began.
    pub(crate) since: Option<Timestamp>,
    /// The effect and the cause.
    pub(crate) text: String,
    /// How to fix it.
    pub(crate) fix: String,
    /// The page that shows it, relative to the root.
    pub(crate) page: Option<String>,
    /// Whether `since` is that of the oldest of many items.
    #[serde(skip)]
    pub(crate) is_oldest: bool,
    /// What the page is about.
    #[serde(skip)]
    pub(crate) link: &'static str,
}

/// Everything that needs attention, the most urgent first.
pub(super) fn all(status: &Status, summary: &Summary, recent: &Recent, now: Timestamp) -> Vec<Attention> {
    let mut items: Vec<_> = unsynced(status).into_iter().collect();
    items.extend(states::no_daemon(summary, recent));
    items.extend(recent.pauses.iter().map(paused));
    items.extend(states::stopped(recent));
    let is_listed = recent.stopped.iter().any(|stopped| stopped.state == JobState::Provisioning);
    items.extend(waiting(summary, recent.storage).filter(|_| !is_listed));
    // What was stored is at stake.
    items.extend(bit_errors::open(&recent.bit_errors));
    // Before the failed jobs: a fault may stop a whole state or all reports, a failed job stops no other.
    items.extend(faults(summary, &recent.fixes, !recent.stopped.is_empty()));
    items.extend(failures::groups(summary, recent));
    items.extend(failures::without_jobs(&recent.failed_without_jobs));
    items.extend(recent.automation.as_ref().map(|rules| automation::items(rules, now)).unwrap_or_default());
    items.extend(automation::foreign(&recent.foreign));
    items.extend(held::all(summary, &held::by_operators(summary, recent, now)));
    items.extend(held::stores(&recent.held_stores));
    items.extend(recent.waiting_mail.as_ref().and_then(|mail| mail::overdue(mail, now)));
    items.extend(oddities(summary));
    items.extend(recent.storage_problem.as_deref().map(unmeasured));
    items.extend(clock(status));
    // The sort is stable: items of the same severity keep this order.
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
        fix: String::new(),
        page: None,
        is_oldest: false,
        link: "",
    }
}

/// The mirror is stale: later changes are in none of the figures.
fn unsynced(status: &Status) -> Option<Attention> {
    let since = status.stale_since?;
    let (title, fix) = if status.connected {
        ("The figures are stale", "They are current again once the whole queue has been read.")
    } else {
        (
            "There is no connection to ZooKeeper",
            "Check its servers and --zookeeper. The connection is retried until it succeeds.",
        )
    };
    let why = status.problem.as_deref().map(as_sentence).unwrap_or_default();
    let text = format!("{why} Everything below is as of that time; later changes are not shown.");
    Some(Attention {
        since: Some(since),
        fix: fix.to_owned(),
        ..item("unsynced", Severity::Bad, title.to_owned(), text.trim_start())
    })
}

/// Working storage is configured, and cannot be measured.
fn unmeasured(problem: &str) -> Attention {
    Attention {
        fix: "Check --storage.path, and that the volume is mounted on this host and responds.".to_owned(),
        ..item(
            "storage_unmeasured",
            Severity::Warn,
            "Working storage cannot be measured".to_owned(),
            format!("{} Whether jobs wait for space is unknown.", as_sentence(&visible(problem))),
        )
    }
}

fn paused((queue, pause): &(QueueName, PauseSituation)) -> Attention {
    let effect = match queue {
        QueueName::Ingest => until_unpaused(),
        QueueName::AccessSmall | QueueName::AccessLarge => "No daemon takes requests from it.".to_owned(),
    };
    Attention {
        since: pause.since,
        fix: "Unpause the queue once the reason for the pause is resolved.".to_owned(),
        page: Some("locks".to_owned()),
        link: "Show locks",
        ..item(
            "paused",
            Severity::Bad,
            format!("The {} queue is paused", queue.in_words()),
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
        fix: FREE_SPACE.to_owned(),
        page: Some("jobs?state=provisioning".to_owned()),
        link: "Show jobs",
        ..item(
            "waiting_for_space",
            Severity::Bad,
            format!("{} for space", counted(summary.waiting_for_space, "job waits", "jobs wait")),
            format!(
                "{} With {} it would exceed the limit. All jobs in Provisioning need {needed}.",
                full(threshold, space),
                if summary.waiting_for_space == 1 { "this one" } else { "any of these" }
            ),
        )
    })
}

/// One item for each kind of fault that is present and not shown otherwise.
fn faults<'a>(
    summary: &'a Summary,
    fixes: &'a [(Fault, &'static str)],
    has_stopped: bool,
) -> impl Iterator<Item = Attention> + 'a {
    let shown = Fault::ALL.into_iter().map(|fault| (fault, summary.faults(fault)));
    let shown = shown.filter(move |(fault, shown)| {
        let is_listed = match fault {
            Fault::StuckState | Fault::NoDaemon => has_stopped,
            _ => false,
        };
        shown.count > 0 && !is_listed
    });
    let fix = |fault: Fault, count: u64| {
        let alone = fixes.iter().find(|(of, _)| *of == fault).filter(|_| count == 1).map(|(_, fix)| *fix);
        alone.unwrap_or_else(|| fault.fix()).to_owned()
    };
    shown.map(move |(fault, shown)| Attention {
        since: shown.since,
        is_oldest: shown.count > 1,
        fix: fix(fault, shown.count),
        page: Some("faults".to_owned()),
        link: "Show faults",
        ..item(
            fault.label(),
            fault.severity().into(),
            format!("{}: {}", fault.title(), counted(shown.count, "item", "items")),
            short(fault.effect()),
        )
    })
}

/// A text as a line of the list: of a long one its first sentence; the rest is on the page of faults.
fn short(text: &str) -> &str {
    const LONG: usize = 140;
    match text.split_once(". ") {
        Some((first, _)) if text.len() > LONG => &text[..=first.len()],
        Some(_) | None => text,
    }
}

/// Unknown states and unreadable znodes.
fn oddities(summary: &Summary) -> Vec<Attention> {
    let mut items = Vec::new();
    if !summary.unknown_states.is_empty() {
        let names: Vec<String> = summary.unknown_states.iter().map(|name| format!("“{}”", visible(name))).collect();
        let text = format!("Items in these states are counted as other: {}.", names.join(", "));
        items.push(Attention {
            fix: "Find out which program writes them; a newer daemon may use states that this program does not know."
                .to_owned(),
            ..item("unknown_states", Severity::Warn, "There are unknown states".to_owned(), text)
        });
    }
    if summary.unreadable > 0 {
        items.push(Attention {
            fix: "Inspect them in the tree. Where ZooKeeper denies access to one, check --zookeeper.auth-file."
                .to_owned(),
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
                "Their contents are missing from everything that is shown.",
            )
        });
    }
    items
}

/// The difference between the servers' clock and ours, in words; `ahead` is negative if theirs is behind.
pub(crate) fn offset(ahead: SignedDuration) -> String {
    let by = Ago(ahead.unsigned_abs());
    if ahead.is_positive() { format!("{by} ahead of this host's") } else { format!("{by} behind this host's") }
}

/// The clocks differ: ages are right, but instants are wrong for programs that compare them with their own clock.
fn clock(status: &Status) -> Option<Attention> {
    let ahead = status.clock_difference?;
    let least = if status.clock_measured { "" } else { " at least" };
    Some(Attention {
        fix: "Check the time synchronization (NTP) of this host and of the ZooKeeper servers.".to_owned(),
        ..item(
            "clock_offset",
            Severity::Warn,
            format!("The clock of the ZooKeeper servers is{least} {}", offset(ahead)),
            "Ages are computed from the servers' clock; times of day and timestamps in metrics are by this host's.",
        )
    })
}
