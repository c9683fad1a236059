//! What the causes of a job come to.

use super::{Cause, CauseKind, Verdict};
use crate::mirror::JobSituation;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::record::OperatorNote;
use queuekeeper_queue::state::{JobState, State};

/// What the causes of a job come to.
pub(super) fn verdict(causes: &[Cause]) -> Verdict {
    let first = causes.first().map_or(Verdict::Moving, |cause| of_kind(cause.kind));
    match first {
        Verdict::Done | Verdict::Moving => first,
        // One reason that does not pass by itself is enough.
        Verdict::Waiting | Verdict::Stopped => {
            let stops = causes.iter().any(|cause| of_kind(cause.kind) == Verdict::Stopped);
            if stops { Verdict::Stopped } else { Verdict::Waiting }
        }
    }
}

/// What a cause alone comes to.
fn of_kind(kind: CauseKind) -> Verdict {
    match kind {
        CauseKind::Done => Verdict::Done,
        CauseKind::InWork | CauseKind::Flowing | CauseKind::Empty => Verdict::Moving,
        CauseKind::Behind
        | CauseKind::Next
        | CauseKind::Locked
        | CauseKind::HeldBacklog
        | CauseKind::BatchAtRest
        | CauseKind::JobsToDo
        | CauseKind::ReportDue => Verdict::Waiting,
        CauseKind::StatusUnknown
        | CauseKind::Failed
        | CauseKind::Held
        | CauseKind::WaitsForOperator
        | CauseKind::QueuePaused
        | CauseKind::CollectionHeld
        | CauseKind::WaitingForSpace
        | CauseKind::PoolFull
        | CauseKind::HeadBlocked
        | CauseKind::BatchGone
        | CauseKind::BatchNotAcquired
        | CauseKind::JobsHeld
        | CauseKind::JobsStopped => Verdict::Stopped,
        CauseKind::Fault(fault) => {
            if fault.stops_item() {
                Verdict::Stopped
            } else {
                Verdict::Waiting
            }
        }
    }
}

/// The same in a sentence, by the first of them.
pub(super) fn headline(kind: CauseKind, job: &JobSituation, verdict: Verdict) -> String {
    let state = job.state.map_or("its state", State::name);
    let said = match kind {
        CauseKind::Done => "It is done.",
        CauseKind::InWork if verdict == Verdict::Moving => "It is moving: a daemon works on it.",
        CauseKind::InWork | CauseKind::Locked => "A daemon holds it.",
        CauseKind::StatusUnknown => "Its status says nothing that the daemons know.",
        CauseKind::Failed if OperatorNote::read(&job.message).is_some() => "An operator set it Failed.",
        CauseKind::Failed => {
            return format!("It failed in {} and waits for an operator.", JobState::failed_in(job.last_successful));
        }
        CauseKind::Held if OperatorNote::read(&job.message).is_some() => "An operator holds it.",
        CauseKind::Held if job.hold.is_some() => "It is held with its collection.",
        CauseKind::Held => "It is held, and nothing but an operator releases it.",
        CauseKind::QueuePaused => "It waits until the ingest queue is released.",
        CauseKind::CollectionHeld => "It waits to be held: its collection is.",
        CauseKind::WaitingForSpace if job.lock.is_some() => "It waits for working storage.",
        CauseKind::WaitingForSpace => "It waits for working storage, and nobody has looked at it yet.",
        CauseKind::PoolFull => "It waits for a daemon, and the daemons wait for working storage.",
        CauseKind::HeadBlocked => return format!("An entry at the head of {state} blocks all others."),
        CauseKind::Fault(Fault::NoDaemon) => {
            return format!("It waits for a daemon, and none takes jobs from {state}.");
        }
        CauseKind::Behind | CauseKind::HeldBacklog => "It waits for its turn.",
        CauseKind::Next => "It waits for a daemon to take it.",
        CauseKind::BatchGone => "Its batch is not there.",
        CauseKind::BatchNotAcquired => "Its batch has not been acquired.",
        CauseKind::Fault(Fault::MissingEntry) => "No daemon can see it: it has no queue entry.",
        CauseKind::Fault(Fault::UnloadableJob) => "No daemon can load it.",
        CauseKind::Fault(Fault::UnfinishedCreation) => "Its creation was not finished.",
        CauseKind::Fault(Fault::PriorityOutOfRange) => "Its priority makes it unreadable to the daemons.",
        CauseKind::Fault(Fault::LeakedLock) => "It is locked, and nobody seems to work on it.",
        CauseKind::Fault(Fault::StuckState) => return format!("Nothing leaves {state}."),
        CauseKind::Fault(fault) => return format!("{}.", fault.title()),
        // Causes of states and batches.
        CauseKind::Flowing
        | CauseKind::Empty
        | CauseKind::WaitsForOperator
        | CauseKind::BatchAtRest
        | CauseKind::JobsToDo
        | CauseKind::JobsHeld
        | CauseKind::JobsStopped
        | CauseKind::ReportDue => "It waits.",
    };
    said.to_owned()
}
