//! What orders are in words.

use crate::actions::{Action, Order, Subject};
use crate::web::State;
use crate::web::show::visible;
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::path::{AccessQueue, Queue};
use queuekeeper_queue::state::{AccessState, BatchState, JobState, State as _};

/// A subject in words.
pub(in crate::web::pages) fn subject_in_words(subject: &Subject) -> String {
    match subject {
        Subject::Job(id) => id.to_string(),
        Subject::Batch(id) => id.to_string(),
        Subject::Request(AccessQueue::Small, id) => format!("{id} of the small queue"),
        Subject::Request(AccessQueue::Large, id) => format!("{id} of the large queue"),
        Subject::Queue(Queue::Ingest) => "the ingest queue".to_owned(),
        Subject::Queue(Queue::AccessSmall) => "the small access queue".to_owned(),
        Subject::Queue(Queue::AccessLarge) => "the large access queue".to_owned(),
        Subject::Collection(mnemonic) => format!("the collection {}", visible(mnemonic)),
        Subject::Lock(path) => visible(&path.to_string()),
        Subject::Fault(fault, path) => format!("{} at {}", fault.title(), visible(&path.to_string())),
        Subject::Batches => "all batches that are done with".to_owned(),
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
pub(super) fn title(action: Action, subject: &Subject) -> String {
    let on = subject_in_words(subject);
    match action {
        Action::SetPriority => format!("Set the priority of {on}?"),
        Action::ReportAgain => format!("Have {on} report again?"),
        Action::BreakLock => format!("Break the lock {on}?"),
        Action::CleanUp => format!("Purge {on}?"),
        Action::Resume
        | Action::Hold
        | Action::Release
        | Action::Fail
        | Action::Delete
        | Action::Purge
        | Action::Pause
        | Action::Unpause
        | Action::Mend => format!("{} {on}?", action.title()),
    }
}

/// Whether it cannot be taken back.
pub(super) fn is_grave(action: Action) -> bool {
    match action {
        Action::Delete | Action::Purge | Action::CleanUp | Action::BreakLock => true,
        Action::Resume
        | Action::Hold
        | Action::Release
        | Action::Fail
        | Action::SetPriority
        | Action::ReportAgain
        | Action::Pause
        | Action::Unpause
        | Action::Mend => false,
    }
}

/// What an action does, in a sentence or two.
pub(super) fn means(action: Action, subject: &Subject) -> &'static str {
    let is_job = matches!(subject, Subject::Job(_));
    let is_batch = matches!(subject, Subject::Batch(_));
    match action {
        Action::Resume if is_job => "It goes back to work where it stopped, and its retry count rises by one.",
        Action::Resume => "It goes back to Pending, and a daemon takes it again.",
        Action::Hold if is_job => "No daemon takes it until somebody releases it.",
        Action::Hold => {
            "Its pending jobs become held when a daemon comes to them, and wait until somebody releases them."
        }
        Action::Release if is_job => "It becomes pending again, and a daemon takes it when its turn comes.",
        Action::Release if is_batch => "It becomes pending again, and a daemon makes its jobs.",
        Action::Release => {
            "Its jobs are taken again. Those that are held already stay so, unless they are released with it."
        }
        Action::Fail => "It is set Failed with the reason as its message, and its batch counts it as failed.",
        Action::SetPriority => "0 is the most urgent, 99 the least. Its place in its queue changes in the same moment.",
        Action::ReportAgain => "A daemon reports to its depositor once more how each of its jobs ended.",
        Action::Delete if is_batch => {
            "All its jobs are deleted with it and its znodes are removed. It cannot be taken back."
        }
        Action::Delete => "It is set Deleted and will never be done. It cannot be taken back.",
        Action::Purge => "Its znodes are removed with all that they say. It cannot be taken back.",
        Action::CleanUp => {
            "The znodes of every batch that is Completed or Deleted are removed, with those of its jobs. It cannot be \
             taken back."
        }
        Action::BreakLock => "The lock is removed, and whoever comes next may work on what it guards.",
        Action::Pause => "The daemons take nothing from it until it is unpaused. What they are at, they finish.",
        Action::Unpause => "The daemons take from it again.",
        Action::Mend => "What is written follows from what is there now.",
    }
}

/// What force does to an order; empty where nothing is to be forced.
pub(super) fn force(action: Action, subject: &Subject) -> &'static str {
    match action {
        Action::BreakLock => "Break it though it is no fault: it is certain that nobody works under it",
        Action::Release if matches!(subject, Subject::Batch(_)) => "Release it though its collection is held",
        Action::Mend => "Mend it though it is locked: it is certain that nobody works on it",
        Action::Resume
        | Action::Hold
        | Action::Release
        | Action::Fail
        | Action::SetPriority
        | Action::ReportAgain
        | Action::Delete
        | Action::Purge
        | Action::CleanUp
        | Action::Pause
        | Action::Unpause => "",
    }
}

/// Fills in what a form begins with: the priority that a job has.
pub(super) fn fill(state: &State, order: &mut Order) {
    if let (Action::SetPriority, Subject::Job(id), None) = (order.action, &order.subject, order.priority) {
        let present = state.shared.store.job(*id).and_then(|job| job.priority);
        order.priority = present.or(Some(Priority::MAX));
    }
}
