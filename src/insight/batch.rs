//! Why a batch is not moving.

use jiff::Timestamp;

use super::at_rest::{being_withdrawn, is_held, unknown};
use super::obstacles::{obstacles, paused};
use super::state::is_about_size;
use super::{Cause, CauseKind, Diagnosis, Verdict};
use crate::insight::forecast::Forecast;
use crate::mirror::Rates;
use crate::mirror::{BatchSituation, JobHold, StateSituation, Volume};
use crate::words::{ago, between, count, counted, quoted, session, span, until_unpaused};
use queuekeeper_queue::path::{BatchNode, Path};
use queuekeeper_queue::record::{BatchWait, WithdrawnNote};
use queuekeeper_queue::state::{BatchState, JobOutcome, State};

/// Diagnoses why a batch does not finish, or how far it is.
#[must_use]
pub fn diagnose_batch(batch: &BatchSituation, volume: Option<&Volume>, now: Timestamp) -> Diagnosis {
    let (stopping, others): (Vec<_>, Vec<_>) = batch.faults.iter().partition(|found| found.fault.stops_item());
    let mut causes = Vec::new();
    let is_final = batch.state.is_some_and(State::is_final);
    if is_final {
        causes.push(done(batch, now));
    }
    causes.extend(stopping.into_iter().map(Cause::of_fault));
    match batch.state {
        None => causes.push(unknown(&batch.status_text, Path::BatchNode(batch.id, BatchNode::Status))),
        Some(BatchState::Completed | BatchState::Deleted) => {}
        Some(BatchState::Failed) => causes.push(failed(batch, now)),
        Some(BatchState::Held) => causes.push(held(batch, now)),
        Some(BatchState::Pending | BatchState::Processing | BatchState::Reporting | BatchState::UpdateReporting) => {
            in_progress(batch, volume, now, &mut causes);
        }
    }
    causes.extend(others.into_iter().map(Cause::of_fault));
    let verdict = verdict(&causes, batch);
    let headline = causes.first().map(|cause| headline(cause, batch)).unwrap_or_default();
    Diagnosis { verdict, headline, causes }
}

fn in_progress(batch: &BatchSituation, volume: Option<&Volume>, now: Timestamp, causes: &mut Vec<Cause>) {
    if let Some(note) = &batch.withdrawal {
        // Its jobs wait for nothing else.
        return causes.push(being_withdrawn(note, batch.id, batch.lock.is_some(), now));
    }
    if let Some(pause) = &batch.pause {
        causes.push(paused(pause, now, &until_unpaused()));
    }
    if !batch.is_acquired {
        let waits =
            batch.entered.map_or("is waiting".to_owned(), |at| format!("has been waiting for {}", ago(at, now)));
        let cause = Cause::new(CauseKind::BatchNotAcquired, format!("It {waits} for a daemon to acquire it."))
            .evidence("Its states znode does not exist yet, and none of its jobs has been created.")
            .since(batch.entered)
            .items([Path::Batch(batch.id)], 1);
        causes.push(cause);
    }
    if let Some(wait) = &batch.waits {
        // It is looked at again and again, and locked for that: what it waits for is the same.
        causes.push(waits(batch, wait, now));
    } else if let Some(created) = batch.expansion {
        let sentence = format!("Its jobs are being created, {} so far.", count(created));
        let evidence =
            if batch.lock.is_some() { "" } else { "No daemon is creating them now; a batch daemon will continue." };
        let note = [Path::expansion(batch.id)];
        causes.push(Cause::new(CauseKind::BeingCreated, sentence).evidence(evidence).items(note, 1));
    }
    if let Some(lock) = batch.lock.as_ref().filter(|_| batch.waits.is_none()) {
        let is_unsaid = batch.state == Some(BatchState::Processing) && batch.expansion.is_none();
        let what = if is_unsaid { "Its jobs are being created." } else { "" };
        let sentence = format!("A daemon has been working on it for {}.", ago(lock.since, now));
        let cause = Cause::new(CauseKind::InProgress, sentence)
            .evidence(
                format!("Locked by session {}. {what}", session(lock.session, lock.address.as_deref())).trim_end(),
            )
            .since(Some(lock.since))
            .items([Path::BatchNode(batch.id, BatchNode::Lock)], 1);
        causes.push(cause);
    }
    match batch.references[JobOutcome::Processing as usize] {
        Some(0) if batch.is_acquired && batch.state != Some(BatchState::Processing) => {
            let sentence = "All its jobs have finished. Its report has not been made yet.";
            let folder = Path::BatchOutcome(batch.id, JobOutcome::Processing);
            causes.push(Cause::new(CauseKind::ReportDue, sentence).evidence(outcomes(batch)).items([folder], 1));
        }
        Some(left @ 1..) => {
            let left = u64::from(left);
            let to_do = to_do(batch, left, forecast(batch, volume, now));
            let stopped: u64 = obstacles_of(batch, volume, now).map(|(_, jobs, _)| jobs).sum();
            let standing = held_jobs(batch).into_iter().chain(stopped_jobs(batch, volume, now));
            if batch.held + stopped >= left {
                causes.extend(standing.chain([to_do]));
            } else {
                causes.extend([to_do].into_iter().chain(standing));
            }
        }
        Some(0) | None => {}
    }
}

/// A daemon gave it back before all its jobs existed.
fn waits(batch: &BatchSituation, wait: &BatchWait, now: Timestamp) -> Cause {
    let waited = ago(wait.since, now);
    let created = match batch.expansion.unwrap_or(0) {
        0 => "None of its jobs has been created yet.".to_owned(),
        created => {
            format!("{} so far.", counted(created, "of its jobs has been created", "of its jobs have been created"))
        }
    };
    let kind = if wait.full.is_some() { CauseKind::WaitingForRoom } else { CauseKind::WaitingForRetry };
    let (sentence, fix) = match (&wait.full, wait.attempts) {
        (Some(Path::Jobs), _) => (
            format!(
                "It has been waiting for {waited} for room in /jobs, which has as many jobs as Java programs can list."
            ),
            "The rest are created as soon as jobs are removed: the cleanup daemon removes completed batches (--cleanup.after), or an operator cleans up or purges them. If no Java program reads the queue, start the batch daemons with --no-java-readers.",
        ),
        (Some(folder), _) => (
            format!(
                "It has been waiting for {waited} for room in {folder}, which has as many entries as Java programs can list."
            ),
            "The rest are created as soon as daemons take jobs from Pending: check that they do. If no Java program reads the queue, start the batch daemons with --no-java-readers.",
        ),
        (None, 0) => (
            format!("It has been waiting for {waited}, and has not been tried yet: {}", quoted(&wait.why)),
            "Wait, or allow more connections per host: --download.connections-per-host.",
        ),
        (None, attempts) => (
            format!(
                "{} in {waited}, the last one with: {}",
                counted(attempts.into(), "attempt has failed", "attempts have failed"),
                quoted(&wait.why)
            ),
            "Resolve the problem named in the message; the daemons keep trying. If attempts still fail after --retry.within, the batch fails.",
        ),
    };
    Cause::new(kind, sentence)
        .evidence(created)
        .fix(fix)
        .since(Some(wait.since))
        .items([wait.full.clone().unwrap_or(Path::expansion(batch.id))], 1)
}

/// Its jobs that are Held, which keep it open.
fn held_jobs(batch: &BatchSituation) -> Option<Cause> {
    let by = holds(batch);
    let cause = match batch.held {
        0 => return None,
        1 => Cause::new(CauseKind::JobsHeld, "1 of its jobs is Held.")
            .evidence(format!(
                "{by}Daemons do not release held jobs, and the batch cannot complete while the job is held."
            ))
            .fix("Release the job (first its collection, if that is held), or delete it."),
        held => Cause::new(CauseKind::JobsHeld, format!("{} of its jobs are Held.", count(held)))
            .evidence(format!(
                "{by}Daemons do not release held jobs, and the batch cannot complete while they are held."
            ))
            .fix("Release the jobs (first their collection, if that is held), or delete them."),
    };
    Some(cause.items([Path::Batch(batch.id)], 1))
}

/// Who holds them and why; with a space behind it.
fn holds(batch: &BatchSituation) -> String {
    let said = batch.holds.iter().map(|hold| match hold {
        JobHold::ByOperator(message) => format!("{}. ", quoted(message.trim_end_matches(['.', ' ']))),
        JobHold::OfCollection(name, pause) => format!("Collection {} is held. {}", quoted(name), pause.requested()),
    });
    said.collect()
}

/// What stops the states that its jobs wait in or have still to pass, the most decisive of each, with how many are in
/// it.
fn obstacles_of<'a>(
    batch: &'a BatchSituation,
    volume: Option<&'a Volume>,
    now: Timestamp,
) -> impl Iterator<Item = (&'a StateSituation, u64, Cause)> {
    batch.states.iter().map(|(state, jobs)| (&**state, *jobs)).filter_map(move |(state, jobs)| {
        let obstacles = obstacles(state, volume, now).into_iter();
        let mut stopping = obstacles.filter(|cause| cause.kind != CauseKind::HeldBacklog && !is_about_size(cause));
        Some((state, jobs, stopping.next()?))
    })
}

fn stopped_jobs(batch: &BatchSituation, volume: Option<&Volume>, now: Timestamp) -> Vec<Cause> {
    let stopped = obstacles_of(batch, volume, now).map(|(state, jobs, why)| Cause {
        kind: CauseKind::JobsStopped,
        sentence: match jobs {
            0 => format!("Its jobs still have to pass {}: {}", state.state, why.sentence),
            jobs => format!(
                "{} in {}: {}",
                counted(jobs, "of its jobs is waiting", "of its jobs are waiting"),
                state.state,
                why.sentence
            ),
        },
        items: vec![Path::StateFolder(state.state.into())],
        more: 0,
        ..why
    });
    stopped.collect()
}

/// When it ends.
pub(super) fn forecast(batch: &BatchSituation, volume: Option<&Volume>, now: Timestamp) -> Forecast {
    let left = batch.references[JobOutcome::Processing as usize].unwrap_or(0);
    // Where its jobs wait is of more use than where they will.
    let stopped = obstacles_of(batch, volume, now).min_by_key(|(_, jobs, _)| *jobs == 0);
    let stopped = stopped.map(|(state, ..)| state.state);
    Forecast::of(left.into(), batch.held, stopped, batch.pause.is_some(), batch.rates)
}

fn to_do(batch: &BatchSituation, left: u64, forecast: Forecast) -> Cause {
    let all: u64 = batch.references.iter().flatten().map(|jobs| u64::from(*jobs)).sum();
    let sentence = match all {
        1 => "Its only job has not finished.".to_owned(),
        all => {
            format!(
                "{} of its {} jobs {} not finished.",
                count(left),
                count(all),
                if left == 1 { "has" } else { "have" }
            )
        }
    };
    let rate = batch.rates.and_then(Rates::per_hour);
    let forecast = match (forecast, rate) {
        (Forecast::Ends(soonest, latest), Some((least, most))) => {
            format!(" At {} an hour, they finish in {}.", between(least, most), span(soonest, latest))
        }
        (Forecast::Still, _) => " None has finished recently.".to_owned(),
        _ => String::new(),
    };
    Cause::new(CauseKind::JobsToDo, sentence)
        .evidence(format!("{}{forecast}", outcomes(batch)))
        .since(batch.entered)
        .items([Path::BatchOutcome(batch.id, JobOutcome::Processing)], 1)
}

/// How many of its jobs ended how.
fn outcomes(batch: &BatchSituation) -> String {
    let of = |outcome: JobOutcome| u64::from(batch.references[outcome as usize].unwrap_or(0));
    let deleted = match of(JobOutcome::Deleted) {
        0 => String::new(),
        deleted => format!(", {} deleted", count(deleted)),
    };
    format!("{} completed, {} failed{deleted}.", count(of(JobOutcome::Completed)), count(of(JobOutcome::Failed)))
}

fn done(batch: &BatchSituation, now: Timestamp) -> Cause {
    let when = batch.entered.map(|at| format!(" {} ago", ago(at, now))).unwrap_or_default();
    let sentence = match WithdrawnNote::of_batch(batch.state, &batch.message) {
        Some(WithdrawnNote { who, why: "" }) => format!("It was withdrawn by {}{when}.", quoted(who)),
        Some(WithdrawnNote { who, why }) => format!("It was withdrawn by {}{when}: {}", quoted(who), quoted(why)),
        None if batch.state == Some(BatchState::Deleted) => format!("It was deleted{when}."),
        None => format!("It was completed{when}."),
    };
    Cause::new(CauseKind::Done, sentence)
        .evidence(outcomes(batch))
        .since(batch.entered)
        .items([Path::BatchNode(batch.id, BatchNode::Status)], 1)
}

fn failed(batch: &BatchSituation, now: Timestamp) -> Cause {
    let message = if batch.message.trim().is_empty() {
        ", without a message".to_owned()
    } else {
        format!(": {}", quoted(&batch.message))
    };
    let when = batch.entered.map(|at| format!(" {} ago", ago(at, now))).unwrap_or_default();
    let has_jobs = batch.references.iter().any(|jobs| *jobs > Some(0));
    let fix = match batch.references[JobOutcome::Failed as usize] {
        _ if !has_jobs => {
            "Have the problem named in the message corrected and the submission made again, as a new deposit; then delete the batch."
        }
        Some(0) => "None of its jobs is in state Failed any more: send the report again.",
        _ => {
            "Resume the failed jobs once their problem is resolved, unless their rows were submitted again, then send the \
             report again; or delete the batch."
        }
    };
    let jobs = if has_jobs { format!("Its jobs: {}", outcomes(batch)) } else { "It has no jobs.".to_owned() };
    Cause::new(CauseKind::Failed, format!("It failed{when}{message}"))
        .evidence(jobs)
        .fix(fix)
        .since(batch.entered)
        .items([Path::BatchNode(batch.id, BatchNode::Status)], 1)
}

fn held(batch: &BatchSituation, now: Timestamp) -> Cause {
    Cause::new(CauseKind::Held, format!("It {}.", is_held(batch.entered, now)))
        .fix("Release the batch.")
        .since(batch.entered)
        .items([Path::BatchNode(batch.id, BatchNode::Status)], 1)
}

/// Whether jobs of it end.
fn is_moving(batch: &BatchSituation) -> bool {
    batch.rates.is_some_and(|rates| !rates.is_still())
}

fn verdict(causes: &[Cause], batch: &BatchSituation) -> Verdict {
    match causes.first().map(|cause| cause.kind) {
        Some(CauseKind::BeingCreated | CauseKind::BeingWithdrawn) if batch.lock.is_some() => Verdict::Moving,
        Some(CauseKind::JobsToDo) if is_moving(batch) => Verdict::Moving,
        // What keeps it from being acquired stops its jobs; the batch itself only waits for a daemon.
        Some(CauseKind::BatchNotAcquired) | None => Verdict::Waiting,
        Some(kind) => kind.verdict(),
    }
}

fn headline(cause: &Cause, batch: &BatchSituation) -> String {
    let said = match cause.kind {
        CauseKind::Done if WithdrawnNote::of_batch(batch.state, &batch.message).is_some() => "It was withdrawn.",
        CauseKind::Done if batch.state == Some(BatchState::Deleted) => "It is deleted.",
        CauseKind::JobsToDo if is_moving(batch) => "It is moving.",
        CauseKind::Fault(fault) => return format!("{}.", fault.title()),
        // The sentences of the others are short.
        kind => kind.headline_of_batch().unwrap_or(&cause.sentence),
    };
    said.to_owned()
}
