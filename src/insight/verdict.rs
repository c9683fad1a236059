//! What the causes of a job come to.

use super::{Cause, CauseKind, Verdict};
use crate::mirror::JobSituation;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::record::{OperatorNote, WithdrawnNote};
use queuekeeper_queue::state::{JobState, State};

/// What the causes of a job come to.
pub(super) fn verdict(causes: &[Cause]) -> Verdict {
    let first = causes.first().map_or(Verdict::Moving, |cause| cause.kind.verdict());
    match first {
        Verdict::Done | Verdict::Moving => first,
        // One reason that does not pass by itself is enough.
        Verdict::Waiting | Verdict::Stopped => {
            let stops = causes.iter().any(|cause| cause.kind.verdict() == Verdict::Stopped);
            if stops { Verdict::Stopped } else { Verdict::Waiting }
        }
    }
}

/// The same in a sentence, by the first of them.
pub(super) fn headline(kind: CauseKind, job: &JobSituation) -> String {
    let state = job.state.map_or("its state", State::name);
    let by_operator = || OperatorNote::read(&job.message).is_some();
    let said = match kind {
        CauseKind::Done if WithdrawnNote::of_job(job.state, &job.message).is_some() => "It was withdrawn.",
        CauseKind::Done if job.state == Some(JobState::Deleted) => "It is deleted.",
        CauseKind::Failed if by_operator() => "An operator moved it to Failed.",
        CauseKind::Failed => {
            return format!("It failed in {} and needs an operator.", JobState::failed_in(job.last_successful));
        }
        CauseKind::Held if by_operator() => "An operator is holding it.",
        CauseKind::Held if job.hold.is_some() => "It is held with its collection.",
        CauseKind::WaitingForSpace if job.lock.is_none() => {
            "It is waiting for working storage, and no daemon has taken it yet."
        }
        CauseKind::HeadBlocked => return format!("An entry at the head of {state} blocks all others."),
        CauseKind::NoWorkers => return format!("It is waiting for a daemon, but no process has workers for {state}."),
        CauseKind::Fault(Fault::NoDaemon) => {
            return format!("It is waiting for a daemon, but none takes jobs from {state}.");
        }
        CauseKind::Fault(Fault::MissingEntry) => "No daemon can see it: it has no queue entry.",
        CauseKind::Fault(Fault::UnloadableJob) => "No daemon can load it.",
        CauseKind::Fault(Fault::UnfinishedCreation) => "Its creation was not finished.",
        CauseKind::Fault(Fault::PriorityOutOfRange) => "Its priority makes it unreadable to the daemons.",
        CauseKind::Fault(Fault::LeakedLock) => "It is locked, and the lock may have leaked.",
        CauseKind::Fault(Fault::StuckState) => return format!("No job leaves {state}."),
        CauseKind::Fault(fault) => return format!("{}.", fault.title()),
        _ => kind.headline_of_job().unwrap_or("It is waiting."),
    };
    said.to_owned()
}
