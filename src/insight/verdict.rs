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
        | CauseKind::WaitingForGrant
        | CauseKind::WaitingForRetry
        | CauseKind::WaitingForRoom
        | CauseKind::BeingCreated
        | CauseKind::BeingWithdrawn
        | CauseKind::HeldBacklog
        | CauseKind::StoreHeld
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
        | CauseKind::NoWorkers
        | CauseKind::VolumeUnseen
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
        CauseKind::InWork if verdict == Verdict::Moving => "It is moving: a daemon is working on it.",
        CauseKind::InWork | CauseKind::Locked => "A daemon holds it.",
        CauseKind::StatusUnknown => "The daemons do not know its status.",
        CauseKind::Failed if OperatorNote::read(&job.message).is_some() => "An operator moved it to Failed.",
        CauseKind::Failed => {
            return format!("It failed in {} and needs an operator.", JobState::failed_in(job.last_successful));
        }
        CauseKind::Held if OperatorNote::read(&job.message).is_some() => "An operator is holding it.",
        CauseKind::Held if job.hold.is_some() => "It is held with its collection.",
        CauseKind::Held => "It is held and needs an operator.",
        CauseKind::QueuePaused => "It is waiting for the ingest queue to be unpaused.",
        CauseKind::CollectionHeld => "It will be held: its collection is held.",
        CauseKind::StoreHeld => "It may be waiting for a held store.",
        CauseKind::WaitingForSpace if job.lock.is_some() => "It is waiting for working storage.",
        CauseKind::WaitingForSpace => "It is waiting for working storage, and no daemon has taken it yet.",
        CauseKind::WaitingForGrant => "It is waiting until working storage is granted to it.",
        CauseKind::VolumeUnseen => "No running daemon has access to the volume of its files.",
        CauseKind::WaitingForRetry => "It is waiting for another attempt.",
        CauseKind::BeingCreated => "It is waiting for the other jobs of its batch to be created.",
        CauseKind::BeingWithdrawn => "It is being withdrawn with its deposit.",
        CauseKind::PoolFull => "It is waiting for a daemon, and the daemons are waiting for working storage.",
        CauseKind::HeadBlocked => return format!("An entry at the head of {state} blocks all others."),
        CauseKind::Fault(Fault::NoDaemon) => {
            return format!("It is waiting for a daemon, but none takes jobs from {state}.");
        }
        CauseKind::NoWorkers => return format!("It is waiting for a daemon, but no process has workers for {state}."),
        CauseKind::Behind | CauseKind::HeldBacklog => "It is waiting for its turn.",
        CauseKind::Next => "It is waiting for a daemon to take it.",
        CauseKind::BatchGone => "Its batch does not exist.",
        CauseKind::BatchNotAcquired => "Its batch has not been acquired.",
        CauseKind::Fault(Fault::MissingEntry) => "No daemon can see it: it has no queue entry.",
        CauseKind::Fault(Fault::UnloadableJob) => "No daemon can load it.",
        CauseKind::Fault(Fault::UnfinishedCreation) => "Its creation was not finished.",
        CauseKind::Fault(Fault::PriorityOutOfRange) => "Its priority makes it unreadable to the daemons.",
        CauseKind::Fault(Fault::LeakedLock) => "It is locked, and the lock may have leaked.",
        CauseKind::Fault(Fault::StuckState) => return format!("No job leaves {state}."),
        CauseKind::Fault(fault) => return format!("{}.", fault.title()),
        // Causes of states and batches.
        CauseKind::Flowing
        | CauseKind::Empty
        | CauseKind::WaitsForOperator
        | CauseKind::BatchAtRest
        | CauseKind::WaitingForRoom
        | CauseKind::JobsToDo
        | CauseKind::JobsHeld
        | CauseKind::JobsStopped
        | CauseKind::ReportDue => "It is waiting.",
    };
    said.to_owned()
}
