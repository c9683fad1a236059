//! Targets and states in words.

use crate::actions::{ActionKind, Target};
use crate::views::show::visible;
use crate::web::state::State;
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::{AccessState, BatchState, JobState, State as _};

/// A target in words.
pub(in crate::web::pages) fn target_in_words(target: &Target) -> String {
    match target {
        Target::Job(id) => id.to_string(),
        Target::Batch(id) => id.to_string(),
        Target::Request(AccessQueue::Small, id) => format!("{id} of the small queue"),
        Target::Request(AccessQueue::Large, id) => format!("{id} of the large queue"),
        Target::Queue(queue) => format!("the {} queue", queue.in_words()),
        Target::Collection(mnemonic) => format!("the collection {}", visible(mnemonic)),
        Target::Store(name) => format!("the store {name}"),
        Target::Lock(path) => visible(&path.to_string()),
        Target::Fault(fault, path) => format!("{} at {}", fault.title(), visible(&path.to_string())),
        Target::Batches => "all finished batches".to_owned(),
    }
}

/// A state by its label, as people read it.
pub(in crate::web::pages) fn state_name(label: &str) -> String {
    let job = JobState::ALL.iter().find(|state| state.label() == label).map(|state| state.name());
    let batch = || BatchState::ALL.iter().find(|state| state.label() == label).map(|state| state.name());
    let access = || AccessState::ALL.iter().find(|state| state.label() == label).map(|state| state.name());
    job.or_else(batch).or_else(access).map_or_else(|| visible(label), str::to_owned)
}

/// The priority that the form of another one begins with: the one that the job has.
pub(super) fn present_priority(state: &State, kind: ActionKind, target: &Target) -> Option<Priority> {
    match (kind, target) {
        (ActionKind::SetPriority, Target::Job(id)) => {
            state.shared.store.job(*id).and_then(|job| job.priority).or(Some(Priority::MAX))
        }
        _ => None,
    }
}
