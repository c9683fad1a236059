//! Why a job is not moving.

use std::time::Duration;

use jiff::Timestamp;

use super::at_rest::{being_withdrawn, collection_held, done, failed, held, unknown};
use super::obstacles::{GRANTS_FIX, grants, obstacles, paused, storage, would_be};
use super::verdict::{headline, verdict};
use super::{Cause, CauseKind, Diagnosis};
use crate::mirror::{BatchContext, Holding, JobSituation, QueuePosition, StateSituation, Volume};
use crate::words::{ago, between, count, counted, length, quoted, session, size, span, until_unpaused};
use queuekeeper_queue::fault::{FREE_SPACE, Fault, Provisioning};
use queuekeeper_queue::path::{JobNode, Path};
use queuekeeper_queue::record::Retry;
use queuekeeper_queue::state::{BatchState, JobPhase, JobState, State};

/// Diagnoses why a job is not moving, or that it is. `volume` is the working storage; `None` where it cannot be seen.
#[must_use]
pub fn diagnose_job(job: &JobSituation, volume: Option<&Volume>, now: Timestamp) -> Diagnosis {
    let mut causes = Vec::new();
    let (stopping, others): (Vec<_>, Vec<_>) = job.faults.iter().partition(|found| found.fault.stops_item());
    let is_leaked = stopping.iter().any(|found| found.fault == Fault::LeakedLock);
    match job.state.map(|state| (state, state.phase())) {
        Some((_, JobPhase::Completed | JobPhase::Deleted)) => causes.push(done(job, now)),
        Some((_, JobPhase::Failed)) => {
            causes.push(failed(job, now));
            causes.extend(stopping.iter().map(|found| of_fault(job, found, now)));
        }
        Some((_, JobPhase::Held)) => {
            causes.push(withdrawn_with_batch(job, now).unwrap_or_else(|| held(job, now)));
            causes.extend(stopping.iter().map(|found| of_fault(job, found, now)));
        }
        None => {
            causes.push(unknown(&job.status_text, Path::JobNode(job.id, JobNode::Status)));
            causes.extend(stopping.iter().map(|found| of_fault(job, found, now)));
        }
        Some((state, JobPhase::Underway)) => {
            causes.extend(stopping.iter().map(|found| of_fault(job, found, now)));
            match &job.lock {
                Some(lock) if !is_leaked => causes.push(locked(job, state, lock, volume, now)),
                Some(_) | None => {}
            }
            match withdrawn_with_batch(job, now).filter(|_| state == JobState::Pending && job.lock.is_none()) {
                Some(cause) => causes.push(cause),
                None => waiting(job, state, volume, now, &mut causes),
            }
        }
    }
    if matches!(job.state, Some(JobState::Completed | JobState::Deleted)) {
        causes.extend(stopping.into_iter().map(|found| of_fault(job, found, now)));
    }
    causes.extend(others.into_iter().map(Cause::of_fault));
    causes.extend(job.batch.as_ref().and_then(|batch| batch_cause(batch, job.state, now)));
    let verdict = verdict(&causes);
    let headline = causes.first().map(|cause| headline(cause.kind, job)).unwrap_or_default();
    Diagnosis { verdict, headline, causes }
}

/// The withdrawal of its batch, while that is under way.
fn withdrawn_with_batch(job: &JobSituation, now: Timestamp) -> Option<Cause> {
    let (note, batch) = job.withdrawal.as_ref().zip(job.batch.as_ref())?;
    Some(being_withdrawn(note, batch.id, true, now))
}

/// A fault of the job, with what is known of it beside the fault.
fn of_fault(job: &JobSituation, found: &crate::mirror::FoundFault, now: Timestamp) -> Cause {
    let mut cause = Cause::of_fault(found);
    let outside = found.nodes.iter().find_map(|path| match path {
        Path::Entry(_, entry) if !(0..=99).contains(&entry.priority) => Some(entry.priority),
        _ => None,
    });
    match (found.fault, outside, &job.lock) {
        (Fault::PriorityOutOfRange, Some(priority), _) => {
            cause.sentence = format!("Priority {priority} makes its entry unreadable to the daemons.");
        }
        (Fault::LeakedLock, _, Some(lock)) => {
            cause.sentence = format!("It has been locked for {} {}.", ago(lock.since, now), holder(lock));
            cause.evidence = format!("{} {}", found.how, found.effect);
        }
        (Fault::RetriesExhausted, _, _) => {
            cause.sentence =
                format!("It has been resumed {} and failed again.", counted(job.retries.into(), "time", "times"));
        }
        (_, _, _) => {}
    }
    cause
}

/// By whom, and what else they hold.
fn holder(lock: &Holding) -> String {
    let session = session(lock.session, lock.address.as_deref());
    match (lock.session, lock.others_count) {
        (0, _) => "by a lock that belongs to no session".to_owned(),
        (_, 0) => format!("by session {session}, which holds no other lock"),
        (_, 1) => format!("by session {session}, which also holds 1 other lock"),
        (_, others) => format!("by session {session}, which also holds {} other locks", count(others)),
    }
}

fn with_items(cause: Cause, lock: &Holding) -> Cause {
    cause.since(Some(lock.since)).items(lock.others.iter().cloned(), lock.others_count)
}

/// What a lock on a job that is worked on means.
fn locked(job: &JobSituation, state: JobState, lock: &Holding, volume: Option<&Volume>, now: Timestamp) -> Cause {
    let held = format!("Locked for {} {}.", ago(lock.since, now), holder(lock));
    if state == JobState::Provisioning {
        match volume {
            Some(volume) if volume.keeps_back(job.space_needed_bytes) => {
                return with_items(space(job, volume, &held), lock);
            }
            Some(_) => {}
            None => {
                let sentence =
                    "It is locked by a daemon; this server cannot tell whether it is waiting for working storage.";
                let cause = Cause::new(CauseKind::Locked, sentence).evidence(held);
                return with_items(cause.fix(Provisioning::Locked.fix()), lock);
            }
        }
    }
    let usual = format!("{held} The limit for a step in {state} is {}.", length(job.usual_lock));
    let sentence = format!("A daemon has been working on it for {}.", ago(lock.since, now));
    with_items(Cause::new(CauseKind::InProgress, sentence).evidence(usual), lock)
}

fn space(job: &JobSituation, volume: &Volume, held: &str) -> Cause {
    let all = job.in_state.as_ref().map_or(0, |state| state.space_needed_bytes);
    let waiting = if all > 0 {
        format!(" The jobs in this state that no daemon has taken need {}.", size(all))
    } else {
        String::new()
    };
    let evidence = format!("{}.{waiting} The daemons look again every five minutes. {held}", storage(volume));
    Cause::new(CauseKind::WaitingForSpace, would_be(volume, job.space_needed_bytes))
        .evidence(evidence.trim_end())
        .fix(FREE_SPACE)
}

/// Everything that a job of a state in which daemons work waits for.
fn waiting(job: &JobSituation, state: JobState, volume: Option<&Volume>, now: Timestamp, causes: &mut Vec<Cause>) {
    let Some(situation) = &job.in_state else { return };
    let is_locked = job.lock.is_some();
    if let Some(pause) = situation.pause.as_ref().filter(|_| !state.continues_when_paused()) {
        let first = if is_locked { "The daemon finishes the step that it has begun. " } else { "" };
        causes.push(paused(pause, now, &format!("{first}{}", until_unpaused())));
    }
    if is_locked {
        return;
    }
    if state == JobState::Pending && job.hold.is_some() {
        causes.push(collection_held(job, now));
    }
    if let Some(created) = job.expansion {
        causes.push(being_created(job, created));
        return;
    }
    let unseen = job.unseen_volume.as_deref();
    causes.extend(unseen.map(|volume| volume_unseen(volume, state)));
    if let Some(retry) = &job.retry {
        causes.push(retried(job, retry, now));
    }
    let has_daemon = !situation.faults.iter().any(|found| found.fault == Fault::NoDaemon);
    if state == JobState::Provisioning && job.retry.is_none() && situation.workers > 0 {
        causes.push(ungranted(job, situation, volume));
    } else if state == JobState::Provisioning
        && has_daemon
        && let Some(volume) = volume.filter(|volume| volume.keeps_back(job.space_needed_bytes))
    {
        causes.push(space(job, volume, ""));
    }
    // What is wrong with the job itself is said already.
    let others = |cause: &Cause| cause.kind != CauseKind::HeadBlocked || !cause.items.contains(&Path::Job(job.id));
    let obstacles = obstacles(situation, volume, now).into_iter().filter(others);
    // What delays those behind it matters less than how many are ahead, and nothing to the first.
    let (delays, obstacles): (Vec<_>, Vec<_>) = obstacles.partition(|cause| cause.kind == CauseKind::HeldBacklog);
    let is_full = obstacles.iter().any(|cause| cause.kind == CauseKind::PoolFull);
    causes.extend(obstacles);
    // Where something stops the way, no rate of the past says when its turn comes.
    let is_stopped = !causes.is_empty();
    // Its turn is not what a job waits for that is tried again at a time of its own.
    let Some((entry, place)) = job.place.as_ref().filter(|_| job.retry.is_none() && unseen.is_none()) else { return };
    let waits_for_others = place.more_urgent + place.earlier > place.locked;
    // In a full pool no job is next.
    if waits_for_others || !is_full {
        causes.push(turn(job, situation, entry, *place, (is_stopped, now)));
    }
    if place.held_ahead > 0 {
        causes.extend(delays);
    }
}

/// A daemon gave it back, and takes it again later.
fn retried(job: &JobSituation, retry: &Retry, now: Timestamp) -> Cause {
    let left = Duration::try_from(retry.not_before.duration_since(now)).ok().filter(|left| !left.is_zero());
    let when =
        left.map_or("The next attempt is due.".to_owned(), |left| format!("It is tried again in {}.", length(left)));
    if let Some(since) = retry.waits_since {
        let sentence =
            format!("It has been waiting for {} for more working storage than it was granted.", ago(since, now));
        let limit = "There is no time limit for this wait; if all jobs with grants are waiting for more, the youngest of them fails.";
        return Cause::new(CauseKind::WaitingForGrant, sentence)
            .evidence(format!("{}. {limit}", quoted(&retry.why)))
            .fix(GRANTS_FIX)
            .since(Some(since))
            .items([Path::retry(job.id)], 1);
    }
    if retry.attempts == 0 {
        return Cause::new(
            CauseKind::WaitingForRetry,
            format!("It has not been tried yet: {}. {when}", quoted(&retry.why)),
        )
        .evidence(format!("It has waited for {}.", ago(retry.since, now)))
        .fix("Wait, or allow more connections per host: --download.connections-per-host.")
        .since(Some(retry.since))
        .items([Path::retry(job.id)], 1);
    }
    let attempts = counted(retry.attempts.into(), "attempt has", "attempts have");
    let evidence = format!(
        "{attempts} failed in {}. If attempts still fail after --retry.within, the job fails.",
        ago(retry.since, now)
    );
    Cause::new(CauseKind::WaitingForRetry, format!("The last attempt failed: {}. {when}", quoted(&retry.why)))
        .evidence(evidence)
        .fix("Resolve the problem named in the message. The job itself needs no action.")
        .since(Some(retry.since))
        .items([Path::retry(job.id)], 1)
}

/// Those who see its files do not run; the others leave it to them.
fn volume_unseen(volume: &str, state: JobState) -> Cause {
    let sentence = format!(
        "Its files are on volume {}, to which no running process that takes jobs from {state} has access.",
        quoted(volume)
    );
    Cause::new(CauseKind::VolumeUnseen, sentence)
        .evidence("Processes on another volume do not take the job. The UUID of a volume is in the file .queuekeeper-volume in its top directory.")
        .fix("Start a process with daemons for this state whose --working is on this volume.")
        .items(Path::space(volume), 1)
}

/// It is the last job of a batch whose jobs are being created.
fn being_created(job: &JobSituation, created: u64) -> Cause {
    let sentence = format!("The jobs of its batch are being created, {} so far.", count(created));
    let evidence = "It is the last of them, so it gets its queue entry after all the others.";
    let note = job.batch.as_ref().map(|batch| Path::expansion(batch.id));
    Cause::new(CauseKind::BeingCreated, sentence).evidence(evidence).items(note, 1)
}

/// It passes when working storage is granted to it.
fn ungranted(job: &JobSituation, state: &StateSituation, volume: Option<&Volume>) -> Cause {
    let needs = match job.space_needed_bytes {
        0 => "an unknown size, for which the daemon counts --space.unknown".to_owned(),
        bytes => size(bytes),
    };
    Cause::new(CauseKind::WaitingForGrant, format!("It waits until working storage is granted to it: {needs}."))
        .evidence(grants(state.granted, volume))
        .fix(GRANTS_FIX)
        .since(job.entered)
}

/// How far ahead it is.
///
/// How long that takes is said only where nothing stops the way.
fn turn(
    job: &JobSituation,
    state: &StateSituation,
    entry: &Path,
    place: QueuePosition,
    (is_stopped, now): (bool, Timestamp),
) -> Cause {
    let ahead = place.more_urgent + place.earlier;
    let entered = job.entered.map(|at| format!("It entered {} {} ago.", state.state, ago(at, now))).unwrap_or_default();
    if ahead <= place.locked {
        let sentence = match ahead {
            0 if state.is_ours && state.workers == 0 => {
                format!("It is first in its state, and no process of queuekeeper has workers for {}.", state.state)
            }
            0 => "It is first in its state.".to_owned(),
            1 => "It is next in line: the job ahead of it is locked by a daemon.".to_owned(),
            _ => format!("It is next in line: the {} jobs ahead of it are locked by daemons.", count(ahead)),
        };
        let cause = Cause::new(CauseKind::Next, sentence).evidence(entered);
        return cause.since(job.entered).items([entry.clone()], 1);
    }
    let which = match (place.more_urgent, place.earlier) {
        (0, _) => "earlier ones of the same priority".to_owned(),
        (_, 0) => "of higher priority".to_owned(),
        (urgent, earlier) => format!("{} of higher priority and {} earlier ones", count(urgent), count(earlier)),
    };
    let sentence = format!("{} ahead of it: {which}.", counted(ahead, "job is", "jobs are"));
    let rates = state.flow.rates();
    let turns = ahead - place.locked + 1;
    let least = Duration::from_mins(1);
    let rate = match (rates.per_hour(), rates.time_for(turns)) {
        _ if is_stopped => String::new(),
        (Some((slow, fast)), Some((soonest, latest))) => format!(
            "At {} jobs an hour, its turn comes in {}{}.",
            between(slow, fast),
            span(soonest.max(least), latest.max(least)),
            // Who was overtaken once will be again: more urgent ones that come go before it, too.
            if place.more_urgent > 0 { ", unless more urgent jobs keep arriving" } else { "" }
        ),
        (Some(_), None) if rates.is_still() => {
            "No job has moved on from the state recently, so its turn cannot be estimated.".to_owned()
        }
        (Some(_), None) => "At the present rate, its turn is too far away to be estimated.".to_owned(),
        (None, _) => "The rate is not known yet: measuring it takes half a minute.".to_owned(),
    };
    let at_work = match place.locked {
        0 => String::new(),
        1 => " 1 of them is locked by a daemon.".to_owned(),
        locked => format!(" {} of them are locked by daemons.", count(locked)),
    };
    let cause = Cause::new(CauseKind::Behind, sentence).evidence(format!("{rate}{at_work} {entered}").trim());
    cause.since(job.entered).items([entry.clone()], 1)
}

fn batch_cause(batch: &BatchContext, state: Option<JobState>, now: Timestamp) -> Option<Cause> {
    if !batch.exists {
        let sentence = format!("Its batch {} does not exist.", batch.id);
        return Some(Cause::new(CauseKind::BatchGone, sentence).items([Path::Batch(batch.id)], 1));
    }
    if !batch.is_acquired {
        let sentence = format!("No daemon has acquired its batch {}.", batch.id);
        let cause = Cause::new(CauseKind::BatchNotAcquired, sentence)
            .evidence("Daemons cannot load the job until the batch has its states znode.");
        return Some(cause.items([Path::Batch(batch.id)], 1));
    }
    let is_job_done = state.is_some_and(State::is_final);
    let since = batch.entered.map(|at| ago(at, now));
    let what = match (batch.state?, since) {
        (BatchState::Held, Some(since)) => format!("has been held for {since}"),
        (BatchState::Held, None) => "is held".to_owned(),
        (BatchState::Failed, since) => format!("failed{}", before(since)),
        (BatchState::Deleted, since) if !is_job_done => format!("was deleted{}", before(since)),
        (BatchState::Completed, since) if !is_job_done => {
            format!("was completed{}, and its report has been made", before(since))
        }
        (
            BatchState::Pending
            | BatchState::Processing
            | BatchState::Reporting
            | BatchState::UpdateReporting
            | BatchState::Completed
            | BatchState::Deleted,
            _,
        ) => return None,
    };
    let cause = Cause::new(CauseKind::BatchAtRest, format!("Its batch {} {what}.", batch.id));
    Some(cause.since(batch.entered).items([Path::Batch(batch.id)], 1))
}

/// How long ago, behind a verb in the past.
fn before(since: Option<impl std::fmt::Display>) -> String {
    since.map(|since| format!(" {since} ago")).unwrap_or_default()
}
