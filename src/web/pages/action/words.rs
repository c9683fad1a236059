//! What actions are in words.

use crate::actions::{Action, ActionKind, Target};
use crate::views::show::visible;
use crate::web::State;
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::path::{AccessQueue, Queue};
use queuekeeper_queue::state::{AccessState, BatchState, JobState, State as _};

/// A target in words.
pub(in crate::web::pages) fn subject_in_words(target: &Target) -> String {
    match target {
        Target::Job(id) => id.to_string(),
        Target::Batch(id) => id.to_string(),
        Target::Request(AccessQueue::Small, id) => format!("{id} of the small queue"),
        Target::Request(AccessQueue::Large, id) => format!("{id} of the large queue"),
        Target::Queue(Queue::Ingest) => "the ingest queue".to_owned(),
        Target::Queue(Queue::AccessSmall) => "the small access queue".to_owned(),
        Target::Queue(Queue::AccessLarge) => "the large access queue".to_owned(),
        Target::Collection(mnemonic) => format!("the collection {}", visible(mnemonic)),
        Target::Lock(path) => visible(&path.to_string()),
        Target::Fault(fault, path) => format!("{} at {}", fault.title(), visible(&path.to_string())),
        Target::Batches => "all batches that are done with".to_owned(),
    }
}

/// A state by its label, as people read it.
pub(in crate::web::pages) fn state_name(label: &str) -> String {
    let job = JobState::ALL.iter().find(|state| state.label() == label).map(|state| state.name());
    let batch = || BatchState::ALL.iter().find(|state| state.label() == label).map(|state| state.name());
    let access = || AccessState::ALL.iter().find(|state| state.label() == label).map(|state| state.name());
    job.or_else(batch).or_else(access).map_or_else(|| visible(label), str::to_owned)
}

/// The question that a confirmation asks.
pub(super) fn title(action: ActionKind, target: &Target) -> String {
    let on = subject_in_words(target);
    match action {
        ActionKind::SetPriority => format!("Set the priority of {on}?"),
        ActionKind::ReportAgain => format!("Have {on} report again?"),
        ActionKind::BreakLock => format!("Break the lock {on}?"),
        ActionKind::CleanUp => format!("Purge {on}?"),
        ActionKind::Resume
        | ActionKind::Hold
        | ActionKind::Release
        | ActionKind::Fail
        | ActionKind::Delete
        | ActionKind::Purge
        | ActionKind::Pause
        | ActionKind::Unpause
        | ActionKind::Repair => format!("{} {on}?", action.title()),
    }
}

/// Whether it cannot be taken back.
pub(super) fn is_grave(action: ActionKind) -> bool {
    match action {
        ActionKind::Delete | ActionKind::Purge | ActionKind::CleanUp | ActionKind::BreakLock => true,
        ActionKind::Resume
        | ActionKind::Hold
        | ActionKind::Release
        | ActionKind::Fail
        | ActionKind::SetPriority
        | ActionKind::ReportAgain
        | ActionKind::Pause
        | ActionKind::Unpause
        | ActionKind::Repair => false,
    }
}

/// What an action does, in a sentence or two.
pub(super) fn means(action: ActionKind, target: &Target) -> &'static str {
    let is_job = matches!(target, Target::Job(_));
    let is_batch = matches!(target, Target::Batch(_));
    match action {
        ActionKind::Resume if is_job => "It goes back to work where it stopped, and its retry count rises by one.",
        ActionKind::Resume => "It goes back to Pending, and a daemon takes it again.",
        ActionKind::Hold if is_job => "No daemon takes it until somebody releases it.",
        ActionKind::Hold => {
            "Its pending jobs become held when a daemon comes to them, and wait until somebody releases them."
        }
        ActionKind::Release if is_job => "It becomes pending again, and a daemon takes it when its turn comes.",
        ActionKind::Release if is_batch => "It becomes pending again, and a daemon makes its jobs.",
        ActionKind::Release => {
            "Its jobs are taken again. Those that are held already stay so, unless they are released with it."
        }
        ActionKind::Fail => "It is set Failed with the reason as its message, and its batch counts it as failed.",
        ActionKind::SetPriority => {
            "0 is the most urgent, 99 the least. Its place in its queue changes in the same moment."
        }
        ActionKind::ReportAgain => "A daemon reports to its depositor once more how each of its jobs ended.",
        ActionKind::Delete if is_batch => {
            "All its jobs are deleted with it and its znodes are removed. It cannot be taken back."
        }
        ActionKind::Delete => "It is set Deleted and will never be done. It cannot be taken back.",
        ActionKind::Purge => "Its znodes are removed with all that they say. It cannot be taken back.",
        ActionKind::CleanUp => {
            "The znodes of every batch that is Completed or Deleted are removed, with those of its jobs. It cannot be \
             taken back."
        }
        ActionKind::BreakLock => "The lock is removed, and whoever comes next may work on what it guards.",
        ActionKind::Pause => "The daemons take nothing from it until it is unpaused. What they are at, they finish.",
        ActionKind::Unpause => "The daemons take from it again.",
        ActionKind::Repair => "What is written follows from what is there now.",
    }
}

/// What force does to an action; empty where nothing is to be forced.
pub(super) fn force(action: ActionKind, target: &Target) -> &'static str {
    match action {
        ActionKind::BreakLock => "Break it though it is no fault: it is certain that nobody works under it",
        ActionKind::Release if matches!(target, Target::Batch(_)) => "Release it though its collection is held",
        ActionKind::Repair => "Repair it though it is locked: it is certain that nobody works on it",
        ActionKind::Resume
        | ActionKind::Hold
        | ActionKind::Release
        | ActionKind::Fail
        | ActionKind::SetPriority
        | ActionKind::ReportAgain
        | ActionKind::Delete
        | ActionKind::Purge
        | ActionKind::CleanUp
        | ActionKind::Pause
        | ActionKind::Unpause => "",
    }
}

/// Fills in what a form begins with: the priority that a job has.
pub(super) fn fill(state: &State, action: &mut Action) {
    if let (ActionKind::SetPriority, Target::Job(id), None) = (action.kind, &action.target, action.priority) {
        let present = state.shared.store.job(*id).and_then(|job| job.priority);
        action.priority = present.or(Some(Priority::MAX));
    }
}
