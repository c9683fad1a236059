//! Why a job is where no daemon works on it: done with, failed, held, or in a state that nobody knows.

use jiff::Timestamp;

use super::turn::collection_lock;
use super::{Cause, CauseKind};
use crate::mirror::JobSituation;
use crate::mirror::words::{ago, count, counted, quoted};
use queuekeeper_queue::path::{JobNode, Path};
use queuekeeper_queue::record::OperatorNote;
use queuekeeper_queue::state::JobState;

pub(super) fn done(job: &JobSituation, now: Timestamp) -> Cause {
    let state = if job.state == Some(JobState::Deleted) { "deleted" } else { "completed" };
    let sentence = match job.entered {
        Some(at) => format!("It is {state}, {} ago.", ago(at, now)),
        None => format!("It is {state}."),
    };
    Cause::new(CauseKind::Done, sentence).since(job.entered).items([Path::JobNode(job.id, JobNode::Status)], 1)
}

pub(super) fn failed(job: &JobSituation, now: Timestamp) -> Cause {
    if let Some(note) = OperatorNote::read(&job.message) {
        return failed_by_operator(job, note, now);
    }
    let message = if job.message.trim().is_empty() { "without a message".to_owned() } else { quoted(&job.message) };
    let when = job.entered.map(|at| format!(" {} ago", ago(at, now))).unwrap_or_default();
    let separator = if job.message.trim().is_empty() { "," } else { ":" };
    let others = match job.same_message {
        0 => "No other job failed so.".to_owned(),
        1 => "1 other job failed with the same message, numbers and names aside.".to_owned(),
        others => format!("{} other jobs failed with the same message, numbers and names aside.", count(others)),
    };
    let resumed = match job.retries {
        0 => "It was not resumed yet.".to_owned(),
        retries => format!("It was resumed {}.", counted(retries.into(), "time", "times")),
    };
    Cause::new(
        CauseKind::Failed,
        format!("It failed in {}{when}{separator} {message}", JobState::failed_in(job.last_successful)),
    )
    .evidence(format!("{others} {resumed}"))
    .remedy("Repair what the message tells of, then resume the job; or delete it.")
    .since(job.entered)
    .items([Path::JobNode(job.id, JobNode::Status)], 1)
}

fn failed_by_operator(job: &JobSituation, note: OperatorNote<'_>, now: Timestamp) -> Cause {
    let when = job.entered.map(|at| format!(" {} ago", ago(at, now))).unwrap_or_default();
    let place = JobState::failed_in(job.last_successful);
    let sentence = format!("{} set it Failed in {place}{when}: {}", quoted(note.who), quoted(note.why));
    Cause::new(CauseKind::Failed, sentence)
        .evidence("No daemon reported an error.")
        .remedy("Resume the job, or delete it.")
        .since(job.entered)
        .items([Path::JobNode(job.id, JobNode::Status)], 1)
}

fn held_by_operator(job: &JobSituation, note: OperatorNote<'_>, now: Timestamp) -> Cause {
    let when = job.entered.map(|at| format!(" for {}", ago(at, now))).unwrap_or_default();
    let sentence = format!("{} has held it{when}: {}", quoted(note.who), quoted(note.why));
    let (collection, remedy) = if job.hold.is_some() {
        let collection = format!("Its collection {} is held, too.", quoted(&job.collection));
        (collection, "Release the collection, and then the job: before that, a daemon would hold it again.")
    } else {
        ("A held job does not come free by itself.".to_owned(), "Release the job.")
    };
    Cause::new(CauseKind::Held, sentence)
        .evidence(collection)
        .remedy(remedy)
        .since(job.entered)
        .items([Path::JobNode(job.id, JobNode::Status)], 1)
}

pub(super) fn held(job: &JobSituation, now: Timestamp) -> Cause {
    if let Some(note) = OperatorNote::read(&job.message) {
        return held_by_operator(job, note, now);
    }
    let when = job.entered.map(|at| format!(" for {}", ago(at, now))).unwrap_or_default();
    let name = quoted(&job.collection);
    // What a daemon or another tool wrote, but for the word for success.
    let said = Some(job.message.trim()).filter(|said| !said.is_empty() && !said.eq_ignore_ascii_case("success"));
    let said = said.map_or(".".to_owned(), |said| format!(": {}", quoted(said)));
    let cause = Cause::new(CauseKind::Held, format!("It is held{when}{said}")).since(job.entered);
    if let Some(hold) = &job.hold {
        let since = hold.since.map(|since| format!(" for {}", ago(since, now))).unwrap_or_default();
        return cause
            .evidence(format!("Its collection {name} is held{since}. {}", hold.requested()).trim_end())
            .remedy("Release the collection, and then its held jobs: they do not come free by themselves.")
            .items([collection_lock(&job.collection)], 1);
    }
    let whose = if job.collection.is_empty() {
        "It names no collection".to_owned()
    } else {
        format!("Its collection {name} is free")
    };
    cause
        .evidence(format!("{whose}; a held job does not come free by itself."))
        .remedy("Release the job.")
        .items([Path::JobNode(job.id, JobNode::Status)], 1)
}

pub(super) fn collection_held(job: &JobSituation, now: Timestamp) -> Cause {
    let hold = job.hold.clone().unwrap_or_default();
    let since = hold.since.map(|since| format!(" for {}", ago(since, now))).unwrap_or_default();
    Cause::new(CauseKind::CollectionHeld, format!("Its collection {} is held{since}.", quoted(&job.collection)))
        .evidence(format!("{}When its turn comes it is set Held instead of being worked on.", hold.requested()))
        .remedy("Release the collection.")
        .since(hold.since)
        .items([collection_lock(&job.collection)], 1)
}

pub(super) fn unknown(job: &JobSituation) -> Cause {
    let sentence = if job.odd_status.is_empty() {
        "It has no status that can be read.".to_owned()
    } else {
        format!("Its status {} is none that the daemons know.", quoted(&job.odd_status))
    };
    Cause::new(CauseKind::StatusUnknown, sentence)
        .evidence("No daemon can load it.")
        .remedy("Repair its status by hand.")
        .items([Path::JobNode(job.id, JobNode::Status)], 1)
}
