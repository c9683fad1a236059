//! The verdict: whether the queue flows, in one sentence.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Recent, StateFigures, is_without_daemon};
use crate::insight::{Cause, CauseKind};
use crate::mirror::{Pace, Summary};
use crate::views::status::Status;
use crate::words::{WHILE_PAUSED, about, ago, counted, length, moment, percent};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::QueueName;
use queuekeeper_queue::state::{JobState, State as _};

#[cfg(test)]
mod tests;

/// Where no job completes, one that has waited for so long shows that the queue is slow.
const LONG_WAIT: SignedDuration = SignedDuration::from_mins(5);

/// What stands before the time of a verdict: how long it lasts, and how long the job that has waited longest does.
const FOR: &str = " for";
const WAITS: &str = ", oldest wait";

/// What the state of the whole queue comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VerdictKind {
    /// There is no connection to ZooKeeper: the figures are old.
    Disconnected,
    /// There is a connection, but the figures are not current: the queue is being read again, or a part of it is not
    /// readable.
    Stale,
    /// The ingest queue is paused.
    Paused,
    /// Jobs wait, no daemon takes any, and none is being worked on.
    NoDaemon,
    /// No job leaves a state, for a reason that will not go away without action.
    Stalled,
    /// No job is in a state that daemons work on.
    Idle,
    /// None completes at present although jobs have waited for minutes or completed until a moment ago, and nothing is
    /// known to stop them.
    Slow,
    /// Jobs complete, or none has waited for long.
    Flowing,
    /// Jobs wait, and they have not been watched for long enough to know whether they finish.
    Unknown,
}

/// How good or bad that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Health {
    /// All is well.
    Good,
    /// An operator should know about it.
    Warn,
    /// It needs an operator.
    Bad,
}

impl Health {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// Whether the queue is moving, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct OverviewVerdict {
    /// What it comes to.
    pub(crate) kind: VerdictKind,
    /// How good or bad that is.
    pub(crate) health: Health,
    /// The same in a sentence, without a full stop.
    #[schema(example = "Stalled in Provisioning for 52 s: working storage is full (86 %, limit 80 %)")]
    pub(crate) sentence: String,
    /// When this began; for `flowing`, `slow` and `unknown`, since when the longest-waiting job has been waiting; null
    /// if unknown, and for `idle`.
    pub(crate) since: Option<Timestamp>,
    /// The sentence without its time.
    #[serde(skip)]
    pub(crate) title: String,
    /// The sentence before the time since then, and after it.
    #[serde(skip)]
    pub(crate) around: (String, String),
}

impl VerdictKind {
    fn health(self) -> Health {
        match self {
            Self::Disconnected | Self::Stale | Self::NoDaemon | Self::Stalled => Health::Bad,
            // What is not known is not good: a stall may look the same.
            Self::Paused | Self::Slow | Self::Unknown => Health::Warn,
            Self::Idle | Self::Flowing => Health::Good,
        }
    }

    /// A sentence of what comes before the time since then, and what comes after it.
    fn since(
        self,
        title: &str,
        since: Option<Timestamp>,
        now: Timestamp,
        before: &str,
        after: String,
    ) -> OverviewVerdict {
        let what = [FOR, WAITS].into_iter().find_map(|suffix| before.strip_suffix(suffix)).unwrap_or(before);
        let around = (format!("{title}{before}"), after);
        let title = format!("{title}{what}{}", around.1);
        let time = since.map(|since| format!(" {}", ago(since, now))).unwrap_or_default();
        let sentence = format!("{}{time}{}", around.0, around.1);
        OverviewVerdict { kind: self, health: self.health(), sentence, since, title, around }
    }

    /// The same of something that lasts.
    fn lasting(self, title: &str, since: Option<Timestamp>, now: Timestamp, why: &str) -> OverviewVerdict {
        let after = if why.is_empty() { String::new() } else { format!(": {why}") };
        self.since(title, since, now, if since.is_some() { FOR } else { "" }, after)
    }
}

/// The verdict on these figures.
pub(super) fn verdict(
    status: &Status,
    summary: &Summary,
    states: &[StateFigures],
    recent: &Recent,
    now: Timestamp,
) -> OverviewVerdict {
    outdated(status, now)
        .or_else(|| paused(recent, now))
        .or_else(|| no_daemon(states, recent, now))
        .or_else(|| stalled(recent, now))
        .unwrap_or_else(|| moving(summary, states, recent, now))
}

/// The figures are old.
fn outdated(status: &Status, now: Timestamp) -> Option<OverviewVerdict> {
    let since = status.stale_since?;
    let figures = format!("figures are from {}", moment(since));
    Some(if status.connected {
        VerdictKind::Stale.lasting("Not up to date", Some(since), now, &figures)
    } else {
        VerdictKind::Disconnected.lasting("Not connected to ZooKeeper", Some(since), now, &figures)
    })
}

fn paused(recent: &Recent, now: Timestamp) -> Option<OverviewVerdict> {
    let (_, pause) = recent.pauses.iter().find(|(queue, _)| *queue == QueueName::Ingest)?;
    Some(VerdictKind::Paused.lasting("Paused", pause.since, now, WHILE_PAUSED))
}

/// No job is being worked on, and no daemon takes one from any state in which some wait.
fn no_daemon(states: &[StateFigures], recent: &Recent, now: Timestamp) -> Option<OverviewVerdict> {
    let waiting = || states.iter().filter(|state| state.is_on_path && !state.is_final && state.count > 0);
    let idle = || recent.stopped.iter().filter(|stopped| stopped.is_without_daemon());
    let is_idle = |state: &StateFigures| idle().any(|stopped| stopped.state.label() == state.state);
    if waiting().next().is_none() || !waiting().all(|state| state.locked == 0 && is_idle(state)) {
        return None;
    }
    let jobs = waiting().map(|state| state.count).sum();
    let since = idle().filter_map(|stopped| stopped.since).max();
    Some(VerdictKind::NoDaemon.lasting(
        "No daemon has taken a job",
        since,
        now,
        &counted(jobs, "job waits", "jobs wait"),
    ))
}

/// The stalled state that is farthest on the way: those before it may wait for it.
fn stalled(recent: &Recent, now: Timestamp) -> Option<OverviewVerdict> {
    let stopped = recent.stopped.last()?;
    let why = match decisive(&stopped.diagnosis.causes) {
        Some(cause) => match cause.kind {
            CauseKind::PoolFull | CauseKind::WaitingForSpace if recent.storage.is_some() => full(recent),
            // Its own sentence has a time of its own.
            CauseKind::NoWorkers => "no process has workers for it".to_owned(),
            CauseKind::Fault(Fault::NoDaemon) => "no daemon takes jobs from it".to_owned(),
            _ => lowered(cause.sentence.trim_end_matches('.')),
        },
        None => "the reason is unknown".to_owned(),
    };
    let others = match recent.stopped.len() - 1 {
        0 => String::new(),
        others => format!(" (and {})", counted(others as u64, "earlier state", "earlier states")),
    };
    let title = format!("Stalled in {}", stopped.state.name());
    Some(VerdictKind::Stalled.lasting(&title, stopped.since, now, &format!("{why}{others}")))
}

/// The cause that stops a state: what blocks all of its jobs before what stops some of them.
fn decisive(causes: &[Cause]) -> Option<&Cause> {
    let blocks_all = |cause: &&Cause| {
        is_without_daemon(cause.kind) || matches!(cause.kind, CauseKind::HeadBlocked | CauseKind::PoolFull)
    };
    // These alone stop nothing.
    let is_beside = |cause: &Cause| {
        matches!(cause.kind, CauseKind::QueuePaused | CauseKind::HeldBacklog | CauseKind::Fault(Fault::FolderNearLimit))
    };
    causes.iter().find(blocks_all).or_else(|| causes.iter().find(|cause| !is_beside(cause)))
}

/// Jobs wait for working storage.
fn full(recent: &Recent) -> String {
    let Some((threshold, space)) = recent.storage else { return String::new() };
    let used = 1.0 - space.free_bytes as f64 / (space.size_bytes as f64).max(1.0);
    let figures = format!("({}, limit {})", percent(used), percent(threshold));
    if used >= threshold {
        format!("working storage is full {figures}")
    } else {
        format!("its jobs need more working storage than is left {figures}")
    }
}

/// The queue as it moves.
fn moving(summary: &Summary, states: &[StateFigures], recent: &Recent, now: Timestamp) -> OverviewVerdict {
    let under_way = || states.iter().filter(|state| state.is_on_path && !state.is_final);
    let jobs: u64 = under_way().map(|state| state.count).sum();
    if jobs == 0 {
        return VerdictKind::Idle.lasting("Idle", None, now, "no job is waiting or in progress");
    }
    // Those that a daemon is working on do not wait.
    let waiting = summary.jobs.iter().filter(|(state, _)| state.is_some_and(JobState::is_worked_on));
    let oldest = waiting.filter_map(|(_, figures)| figures.oldest_unlocked).min();
    let is_long = oldest.is_some_and(|oldest| now.duration_since(oldest) >= LONG_WAIT);
    let (completed, seen) = (recent.flow.completed(), recent.flow.completed_1h);
    let waits = if oldest.is_some() { WAITS } else { "" };
    let flowing = |before: String| VerdictKind::Flowing.since("Flowing", oldest, now, &before, String::new());
    let present = completed.present();
    let has_stopped = has_stopped(present, recent, now);
    match present.per_hour() {
        Some(per_hour) if per_hour > 0.0 && !has_stopped => {
            flowing(format!(": {} jobs/h{waits}", about(rounded(per_hour))))
        }
        Some(_) => {
            let is_slow = is_long || has_stopped;
            let (kind, title) = if is_slow { (VerdictKind::Slow, "Slow") } else { (VerdictKind::Flowing, "Flowing") };
            let before = format!(": {} under way, none completed recently{waits}", counted(jobs, "job", "jobs"));
            kind.since(title, oldest, now, &before, String::new())
        }
        // Too little was seen for a rate, but enough to know that jobs move.
        None if seen.count > 0 => {
            flowing(format!(": {} completed in {}{waits}", counted(seen.count, "job", "jobs"), length(seen.over)))
        }
        // One look shows no rate: that jobs completed until some time ago is so during a stall, too.
        None => {
            let title = format!("{} under way", counted(jobs, "job", "jobs"));
            let last = recent.flow.states.get(Some(JobState::Notify)).last_left;
            let last = last.map(|last| format!("; the last one completed {} ago", ago(last, now))).unwrap_or_default();
            VerdictKind::Unknown.since(&title, oldest, now, waits, last)
        }
    }
}

/// So many jobs would have completed at the present pace since the last one did: that is no chance.
const MISSING: f64 = 20.0;

/// Whether jobs completed at this pace until a moment ago, and none does now. The pace is that of minutes.
fn has_stopped(pace: Pace, recent: &Recent, now: Timestamp) -> bool {
    let last = recent.flow.states.get(Some(JobState::Notify)).seen_left;
    let since = last.and_then(|last| Duration::try_from(now.duration_since(last)).ok()).unwrap_or_default();
    pace.per_second().unwrap_or(0.0) * since.as_secs_f64() >= MISSING
}

/// A rate to two digits: more of them would change all the time, and mean nothing.
pub(crate) fn rounded(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.log10().floor() - 1.0);
    (rate / unit).round() * unit
}

/// A sentence that follows a colon.
fn lowered(sentence: &str) -> String {
    let mut characters = sentence.chars();
    let first = characters.next().map(|first| first.to_lowercase().to_string()).unwrap_or_default();
    format!("{first}{}", characters.as_str())
}
