//! Why the copies of an item are not what they are to be.

use jiff::Timestamp;
use queuekeeper_catalogue::index::IndexedItem;
use queuekeeper_catalogue::tasks::{OpenTask, TaskKind, TaskState};
use queuekeeper_mill::account::Account;
use queuekeeper_mill::policy::Policy;
use queuekeeper_store::{SpaceName, StoreName};

use super::{differs, pairs};
use crate::views::mill::spaces::Standing;
use crate::views::show::{as_sentence, machine};

/// An item, and all that decides why it is not done.
pub(super) struct Looked<'a> {
    pub(super) account: &'a Account,
    pub(super) policy: &'a Policy,
    pub(super) space: &'a SpaceName,
    pub(super) item: &'a IndexedItem,
    pub(super) tasks: &'a [OpenTask],
    pub(super) standing: &'a Standing,
}

impl Looked<'_> {
    /// Why the copies are not what they are to be.
    pub(super) fn causes(&self, now: Timestamp) -> Vec<String> {
        let mut causes = Vec::new();
        if self.policy.pairs(self.space).is_empty() {
            let why = if self.policy.ignored.contains(self.space) {
                "the policy ignores it"
            } else {
                "no policy names a copy of it"
            };
            causes.push(format!("The space {} is not copied: {why}.", self.space));
        }
        for (source, destination) in pairs(self.account, self.policy, self.space) {
            let task = self.tasks.iter().find(|task| {
                task.task.subject.kind == TaskKind::Duplicate
                    && task.task.subject.destination.as_ref() == Some(destination)
            });
            let differs = differs(self.item, source, destination);
            match task {
                Some(task) => causes.push(Self::of_task(task, destination, now)),
                None if differs => causes.push(self.without_task(source, destination)),
                None => {}
            }
        }
        for task in self.tasks.iter().filter(|task| task.task.subject.kind == TaskKind::Audit) {
            let store = task.task.subject.destination.as_ref().map(ToString::to_string).unwrap_or_default();
            causes.push(format!("A change in {store} waits to be looked at; it asks for the copies then."));
        }
        causes
    }

    fn of_task(open: &OpenTask, destination: &StoreName, now: Timestamp) -> String {
        let last = open.task.errors.last().map(|error| as_sentence(&error.error)).unwrap_or_default();
        match (open.state, &open.worker, open.visible) {
            (TaskState::Held, ..) => {
                format!("The brake holds the copy in {destination} until an admin releases or drops it: {last}")
            }
            (TaskState::Dead, ..) => {
                format!("The copy in {destination} failed three times and is a dead letter: {last}")
            }
            (TaskState::Waiting, Some(worker), Some(end)) if end > now => {
                format!("{worker} works on the copy in {destination}, attempt {}.", open.attempts)
            }
            (TaskState::Waiting, _, Some(at)) if at > now && !last.is_empty() => {
                format!("The copy in {destination} failed, and is tried again at {}: {last}", machine(at))
            }
            (TaskState::Waiting, _, Some(at)) if at > now => {
                format!("The copy in {destination} is looked at again at {}: it is not due before.", machine(at))
            }
            (TaskState::Waiting, ..) => {
                format!("The copy in {destination} waits in {} for a worker.", open.task.home.as_str())
            }
        }
    }

    fn without_task(&self, source: &StoreName, destination: &StoreName) -> String {
        let morsel = self.standing.morsel(&self.account.name, self.space, source.as_str(), destination.as_str());
        match morsel {
            Some(morsel) if morsel.error.is_some() => {
                let why = as_sentence(morsel.error.as_deref().unwrap_or_default());
                format!("{destination} has not what {source} has, and the loop cannot go through the space: {why}")
            }
            Some(morsel) if morsel.marker.as_ref().is_none_or(|marker| *marker < self.item.key) => {
                format!(
                    "{destination} has not what {source} has; the loop that is under way has not come to this key yet."
                )
            }
            Some(_) | None => {
                format!(
                    "{destination} has not what {source} has, and no task is open for that; the next loop asks for it."
                )
            }
        }
    }
}
