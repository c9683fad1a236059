//! Why a job is where no daemon works on it: done with, failed, held, or in an unknown state.

use jiff::Timestamp;

use super::obstacles::collection_lock;
use super::{Cause, CauseKind};
use crate::mirror::JobSituation;
use crate::words::{ago, count, counted, quoted};
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::{JobNode, Path};
use queuekeeper_queue::record::{OperatorNote, WithdrawalNote, WithdrawalPhase, WithdrawnNote, fails_again};
use queuekeeper_queue::state::JobState;

pub(super) fn done(job: &JobSituation, now: Timestamp) -> Cause {
    let state = match WithdrawnNote::of_job(job.state, &job.message) {
        Some(note) => format!("withdrawn by {}", quoted(note.who)),
        None if job.state == Some(JobState::Deleted) => "deleted".to_owned(),
        None => "completed".to_owned(),
    };
    let sentence = match job.entered {
        Some(at) => format!("It was {state} {} ago.", ago(at, now)),
        None => format!("It is {state}."),
    };
    Cause::new(CauseKind::Done, sentence).since(job.entered).items([Path::JobNode(job.id, JobNode::Status)], 1)
}

/// Its deposit is being withdrawn.
pub(super) fn being_withdrawn(note: &WithdrawalNote, batch: BatchId, is_locked: bool, now: Timestamp) -> Cause {
    let sentence = format!("{} began to withdraw the deposit {} ago.", quoted(&note.who), ago(note.since, now));
    let how = match (note.phase, &note.hindrance) {
        (WithdrawalPhase::Holding, _) => {
            "The jobs of the deposit are being set to Held; none is deleted until all are Held.".to_owned()
        }
        (WithdrawalPhase::Deleting, _) => "All jobs of the deposit were set to Held and are being deleted.".to_owned(),
        (WithdrawalPhase::Returning, None) => "The withdrawal is not possible; the jobs return to Pending.".to_owned(),
        (WithdrawalPhase::Returning, Some(why)) => {
            format!("The withdrawal is not possible; the jobs return to Pending: {}.", quoted(why))
        }
    };
    let left =
        if is_locked { "" } else { " No process is working on the withdrawal now; a batch daemon will continue it." };
    Cause::new(CauseKind::BeingWithdrawn, sentence)
        .evidence(format!("{how}{left}"))
        .since(Some(note.since))
        .items([Path::withdrawal(batch)], 1)
}

pub(super) fn failed(job: &JobSituation, now: Timestamp) -> Cause {
    if let Some(note) = OperatorNote::read(&job.message) {
        return failed_by_operator(job, note, now);
    }
    let message = if job.message.trim().is_empty() { "without a message".to_owned() } else { quoted(&job.message) };
    let when = job.entered.map(|at| format!(" {} ago", ago(at, now))).unwrap_or_default();
    let separator = if job.message.trim().is_empty() { "," } else { ":" };
    let others = match job.same_message {
        0 => "No other job failed with this message.".to_owned(),
        1 => "1 other job failed with the same message (numbers and names ignored).".to_owned(),
        others => format!("{} other jobs failed with the same message (numbers and names ignored).", count(others)),
    };
    let fix = if fails_again(&job.message) {
        "The deposit itself is wrong, so resuming the job cannot help: correct the deposit, submit it again, and delete this job."
    } else {
        "Resolve the problem named in the message, then resume the job. If the deposit itself is wrong, resuming cannot help: correct it, submit it again, and delete this job."
    };
    let resumed = match job.retries {
        0 => "It has not been resumed yet.".to_owned(),
        retries => format!("It has been resumed {}.", counted(retries.into(), "time", "times")),
    };
    Cause::new(
        CauseKind::Failed,
        format!("It failed in {}{when}{separator} {message}", JobState::failed_in(job.last_successful)),
    )
    .evidence(format!("{others} {resumed}"))
    .fix(fix)
    .since(job.entered)
    .items([Path::JobNode(job.id, JobNode::Status)], 1)
}

fn failed_by_operator(job: &JobSituation, note: OperatorNote<'_>, now: Timestamp) -> Cause {
    let when = job.entered.map(|at| format!(" {} ago", ago(at, now))).unwrap_or_default();
    let place = JobState::failed_in(job.last_successful);
    let sentence = format!("{} moved it to Failed in {place}{when}: {}", quoted(note.who), quoted(note.why));
    Cause::new(CauseKind::Failed, sentence)
        .evidence("No daemon reported an error.")
        .fix("Resume the job, or delete it.")
        .since(job.entered)
        .items([Path::JobNode(job.id, JobNode::Status)], 1)
}

fn held_by_operator(job: &JobSituation, note: OperatorNote<'_>, now: Timestamp) -> Cause {
    let when = job.entered.map(|at| format!(" for {}", ago(at, now))).unwrap_or_default();
    let sentence = format!("{} has held it{when}: {}", quoted(note.who), quoted(note.why));
    let (collection, fix) = if job.hold.is_some() {
        let collection = format!("Its collection {} is held too.", quoted(&job.collection));
        (collection, "Release the collection first, then the job: otherwise, a daemon holds it again.")
    } else {
        ("Daemons do not release held jobs.".to_owned(), "Release the job.")
    };
    Cause::new(CauseKind::Held, sentence)
        .evidence(collection)
        .fix(fix)
        .since(job.entered)
        .items([Path::JobNode(job.id, JobNode::Status)], 1)
}

pub(super) fn held(job: &JobSituation, now: Timestamp) -> Cause {
    if let Some(note) = OperatorNote::read(&job.message) {
        return held_by_operator(job, note, now);
    }
    let name = quoted(&job.collection);
    // What a daemon or another tool wrote, but for the word for success.
    let said = Some(job.message.trim()).filter(|said| !said.is_empty() && !said.eq_ignore_ascii_case("success"));
    let said = said.map_or(".".to_owned(), |said| format!(": {}", quoted(said)));
    let cause = Cause::new(CauseKind::Held, format!("It {}{said}", is_held(job.entered, now))).since(job.entered);
    if let Some(hold) = &job.hold {
        return cause
            .evidence(format!("Its collection {name} {}. {}", is_held(hold.since, now), hold.requested()).trim_end())
            .fix("Release the collection, then its held jobs: daemons do not release them.")
            .items([collection_lock(&job.collection)], 1);
    }
    let whose = if job.collection.is_empty() {
        "It names no collection".to_owned()
    } else {
        format!("Its collection {name} is not held")
    };
    cause
        .evidence(format!("{whose}; daemons do not release held jobs."))
        .fix("Release the job.")
        .items([Path::JobNode(job.id, JobNode::Status)], 1)
}

/// That something is held, and for how long where that is known.
pub(super) fn is_held(since: Option<Timestamp>, now: Timestamp) -> String {
    since.map_or_else(|| "is held".to_owned(), |since| format!("has been held for {}", ago(since, now)))
}

pub(super) fn collection_held(job: &JobSituation, now: Timestamp) -> Cause {
    let hold = job.hold.clone().unwrap_or_default();
    let sentence = format!("Its collection {} {}.", quoted(&job.collection), is_held(hold.since, now));
    Cause::new(CauseKind::CollectionHeld, sentence)
        .evidence(format!("{}When its turn comes, it is moved to Held instead of being processed.", hold.requested()))
        .fix("Release the collection.")
        .since(hold.since)
        .items([collection_lock(&job.collection)], 1)
}

/// Of an item whose status names no state that is known; `status` is the znode, `odd` what it says instead.
pub(super) fn unknown(odd: &str, status: Path) -> Cause {
    let sentence = if odd.is_empty() {
        "Its status cannot be read.".to_owned()
    } else {
        format!("The daemons do not know its status {}.", quoted(odd))
    };
    Cause::new(CauseKind::StatusUnknown, sentence)
        .evidence("No daemon can load it.")
        .fix("Correct its status znode manually.")
        .items([status], 1)
}
