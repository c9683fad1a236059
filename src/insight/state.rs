//! Why a state is not moving.

use jiff::{SignedDuration, Timestamp};

use super::obstacles::{GRANTS_FIX, grants, obstacles, paused};
use super::{Cause, CauseKind, Diagnosis, Verdict};
use crate::mirror::{StateSituation, Volume};
use crate::words::{ago, between, count, counted, percent, size, until_unpaused};
use queuekeeper_queue::fault::{FREE_SPACE, Fault};
use queuekeeper_queue::path::Path;
use queuekeeper_queue::state::{JobPhase, State};

/// A shorter time is no sign of a stopped state: its first job has just come.
const LEAST: SignedDuration = SignedDuration::from_secs(1);

/// Within which our daemons let a job pass that may, on however busy a machine.
const GRANTED_WITHIN: SignedDuration = SignedDuration::from_secs(2);

/// Diagnoses why nothing leaves a state, or that it flows. `volume` is the working storage; `None` where it cannot be
/// seen.
#[must_use]
pub fn diagnose_state(state: &StateSituation, volume: Option<&Volume>, now: Timestamp) -> Diagnosis {
    if state.jobs == 0 {
        let cause = Cause::new(CauseKind::Empty, format!("No job is in {}.", state.state)).since(state.flow.last_left);
        return Diagnosis { verdict: Verdict::Moving, headline: cause.sentence.clone(), causes: vec![cause] };
    }
    if !state.state.is_worked_on() {
        return at_rest(state);
    }
    let mut causes = Vec::new();
    if let Some(pause) = state.pause.as_ref().filter(|_| !state.state.continues_when_paused()) {
        causes.push(paused(pause, now, &until_unpaused()));
    }
    causes.extend(waiting_for_space(state, volume, now));
    causes.extend(waiting_for_grants(state, volume, now));
    causes.extend(obstacles(state, volume, now));
    let goes_on = |cause: &Cause| matches!(cause.kind, CauseKind::HeldBacklog | CauseKind::StoreHeld);
    let is_stopped = causes.iter().any(|cause| !goes_on(cause) && !is_about_size(cause));
    if !is_stopped {
        causes.push(flowing(state, now));
    }
    let verdict = match (is_stopped, state.flow.rates().is_still()) {
        (true, _) => Verdict::Stopped,
        (false, true) => Verdict::Waiting,
        (false, false) => Verdict::Moving,
    };
    Diagnosis { verdict, headline: headline(state, &causes, verdict, now), causes }
}

/// A folder near its limit still works.
pub(super) fn is_about_size(cause: &Cause) -> bool {
    cause.kind == CauseKind::Fault(Fault::FolderNearLimit)
}

fn headline(state: &StateSituation, causes: &[Cause], verdict: Verdict, now: Timestamp) -> String {
    let name = state.state;
    let kind = causes.first().map(|cause| cause.kind);
    match (kind, verdict) {
        (Some(CauseKind::QueuePaused), _) => format!("{name} is waiting for the ingest queue to be unpaused."),
        (_, Verdict::Stopped) => match state.flow.last_left.max(state.oldest) {
            Some(since) if now.duration_since(since) >= LEAST => {
                format!("No job has left {name} for {}.", ago(since, now))
            }
            Some(_) | None => format!("No job leaves {name}."),
        },
        (_, Verdict::Waiting) => format!("{name} is waiting."),
        (_, Verdict::Moving | Verdict::Done) => format!("{name} is moving."),
    }
}

/// Jobs that wait for space while their daemons have room for others.
fn waiting_for_space(state: &StateSituation, volume: Option<&Volume>, now: Timestamp) -> Option<Cause> {
    let waiting: u64 = state.pools.iter().map(|pool| pool.jobs).sum();
    let volume = volume.filter(|_| waiting > 0)?;
    let since = state.pools.iter().map(|pool| pool.since).min();
    let items = state.pools.iter().flat_map(|pool| pool.items.iter().copied()).map(Path::Job);
    let all = if state.space_needed_bytes > 0 {
        let untaken = counted(state.untaken(), "job", "jobs");
        format!("The {untaken} that no daemon has taken yet need another {}.", size(state.space_needed_bytes))
    } else {
        String::new()
    };
    let sentence = format!(
        "Daemons have locked {} for working storage: it is {} full; the limit is {}.",
        counted(waiting, "job that waits", "jobs that wait"),
        percent(volume.used_with(0)),
        percent(volume.threshold)
    );
    let when =
        since.map(|since| format!("The first one has been waiting for {}. ", ago(since, now))).unwrap_or_default();
    Some(
        Cause::new(CauseKind::WaitingForSpace, sentence)
            .evidence(format!("{when}{all}").trim_end())
            .fix(FREE_SPACE)
            .since(since)
            .items(items, waiting),
    )
}

/// No job is granted working storage: our daemons lock none that waits for some.
fn waiting_for_grants(state: &StateSituation, volume: Option<&Volume>, now: Timestamp) -> Option<Cause> {
    let granted = state.granted.filter(|_| state.may_wait_for_grants())?;
    let waiting = state.untaken();
    let since = state.flow.last_left.max(state.oldest)?;
    if now.duration_since(since) < GRANTED_WITHIN {
        return None;
    }
    let who = match waiting {
        1 => "1 job waits until working storage is granted to it".to_owned(),
        _ => format!("{} jobs wait until working storage is granted to them", count(waiting)),
    };
    let needs = match state.space_needed_bytes {
        0 => String::new(),
        bytes => format!("; known needs are {}", size(bytes)),
    };
    Some(
        Cause::new(CauseKind::WaitingForGrant, format!("{who}{needs}."))
            .evidence(grants(Some(granted), volume))
            .fix(GRANTS_FIX)
            .since(Some(since)),
    )
}

fn flowing(state: &StateSituation, now: Timestamp) -> Cause {
    let rates = state.flow.rates();
    let rate = match rates.per_hour() {
        Some(_) if rates.is_still() => "None has moved on recently.".to_owned(),
        Some((least, most)) => format!("Jobs leave it at {} an hour.", between(least, most)),
        None => "The rate is not known yet: measuring it takes half a minute.".to_owned(),
    };
    let last =
        state.flow.seen_left.map(|left| format!(" The last one left {} ago.", ago(left, now))).unwrap_or_default();
    let work =
        format!("{} in it, {} being worked on. {rate}", counted(state.jobs, "job is", "jobs are"), count(state.locked));
    Cause::new(CauseKind::Flowing, work).evidence(last.trim_start()).since(state.flow.last_left)
}

/// A state in which no daemon works.
fn at_rest(state: &StateSituation) -> Diagnosis {
    let jobs = counted(state.jobs, "job is", "jobs are");
    let name = state.state;
    let (kind, verdict, sentence) = match name.phase() {
        JobPhase::Completed | JobPhase::Deleted => {
            (CauseKind::Done, Verdict::Done, format!("{jobs} {}.", name.label()))
        }
        JobPhase::Failed | JobPhase::Held => {
            let need = if state.jobs == 1 { "needs" } else { "need" };
            (CauseKind::WaitsForOperator, Verdict::Stopped, format!("{jobs} {} and {need} an operator.", name.label()))
        }
        JobPhase::Underway => (CauseKind::Flowing, Verdict::Moving, format!("{jobs} in {name}.")),
    };
    let mut causes = vec![Cause::new(kind, sentence.clone()).since(state.oldest)];
    causes.extend(state.faults.iter().map(Cause::of_fault));
    Diagnosis { verdict, headline: sentence, causes }
}
