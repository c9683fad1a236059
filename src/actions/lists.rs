//! The lists that are frozen and not executed yet, and how many of them are kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::action::Action;
use super::audit::ActionId;
use super::kind::ActionKind;
use super::parameters::ActionParameters;
use super::refusal::Refusal;
use super::target::Target;
use crate::words::length;

/// How many items a list may have.
pub const MAX_ITEMS: usize = 250_000;

/// How many lists are kept that are not executed yet.
const MAX_FROZEN: usize = 64;

/// How many lists of one actor are kept. Their older ones make room for the next, and no other actor's.
const MAX_LISTS_PER_ACTOR: usize = 16;

/// How many items all lists, and those of one actor, may have together: a list of every job takes several megabytes.
const MAX_FROZEN_ITEMS: usize = 4 * MAX_ITEMS;
const MAX_ITEMS_PER_ACTOR: usize = 2 * MAX_ITEMS;

/// How long a list is kept.
pub const LIST_LIFETIME: Duration = Duration::from_mins(30);

/// An action on each item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BulkAction {
    /// The kind of the action.
    pub kind: ActionKind,
    /// The parameters besides the target.
    pub parameters: ActionParameters,
}

impl BulkAction {
    /// An action without parameters.
    #[must_use]
    pub fn new(kind: ActionKind) -> Self {
        Self { kind, parameters: ActionParameters::default() }
    }

    /// The action on one item whose status has this version.
    ///
    /// # Errors
    /// As [`Requested::new`](super::Requested::new).
    pub fn on(self, target: &Target, version: Option<i32>) -> Result<Action, Refusal> {
        Ok(Action::new(self.kind, target.clone(), self.parameters)?.at_version(version))
    }
}

/// What a list contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOf {
    /// The jobs that match a filter.
    Jobs,
    /// Jobs that were selected one by one.
    ChosenJobs,
    /// Any items that were selected one by one.
    ChosenItems,
    /// Items that show a fault.
    Faults,
}

impl ListOf {
    /// The noun for this many of them.
    #[must_use]
    pub fn words(self, count: usize) -> &'static str {
        match (self, count) {
            (Self::Jobs, 1) => "job",
            (Self::Jobs, _) => "jobs",
            (Self::ChosenJobs, 1) => "selected job",
            (Self::ChosenJobs, _) => "selected jobs",
            (Self::ChosenItems, 1) => "selected item",
            (Self::ChosenItems, _) => "selected items",
            (Self::Faults, 1) => "fault",
            (Self::Faults, _) => "faults",
        }
    }
}

/// The list of jobs that a list was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOrigin {
    /// Its query string; empty for none.
    pub query: String,
    /// Those of its jobs that were left out by name.
    pub left_out: Vec<Target>,
}

/// A frozen list, and the action on each item of it.
#[derive(Clone, Debug)]
pub struct Frozen {
    /// The id of the action when it is executed.
    pub id: ActionId,
    /// When it was frozen.
    pub at: Timestamp,
    /// The actor's name: no other actor may execute it.
    pub actor: String,
    /// The action on each item.
    pub bulk: BulkAction,
    /// What the list contains.
    pub of: ListOf,
    /// Where it was made.
    pub origin: ListOrigin,
    /// The items, each with the version of its status when the list was frozen.
    pub items: Vec<(Target, Option<i32>)>,
}

/// The refusal of a list that the caller does not have: the same for one of another user and for one that is gone.
pub(crate) fn no_list() -> Refusal {
    Refusal::Missing(format!(
        "you have no such list: only the user who created a list can execute it, and it is kept for {}, unless newer lists \
         displace it or the server restarts; if /audit does not show it as executed, create it again",
        length(LIST_LIFETIME)
    ))
}

/// The lists that are not executed yet.
#[derive(Debug, Default)]
pub(super) struct Lists(Mutex<VecDeque<Arc<Frozen>>>);

impl Lists {
    pub(super) fn add(&self, frozen: Arc<Frozen>) {
        let mut lists = self.0.lock();
        let (now, actor) = (frozen.at, frozen.actor.clone());
        lists.retain(|list| now.duration_since(list.at).unsigned_abs() < LIST_LIFETIME);
        lists.push_back(frozen);
        let is_own = |list: &&Arc<Frozen>| list.actor == actor;
        let size = |list: &Arc<Frozen>| list.items.len();
        while lists.iter().filter(is_own).count() > MAX_LISTS_PER_ACTOR
            || lists.iter().filter(is_own).map(size).sum::<usize>() > MAX_ITEMS_PER_ACTOR
        {
            let oldest = lists.iter().position(|list| is_own(&list));
            oldest.map(|oldest| lists.remove(oldest));
        }
        while lists.len() > MAX_FROZEN || lists.iter().map(size).sum::<usize>() > MAX_FROZEN_ITEMS {
            lists.pop_front();
        }
    }

    pub(super) fn get(&self, id: ActionId, now: Timestamp) -> Option<Arc<Frozen>> {
        let lists = self.0.lock();
        let is_it = |list: &&Arc<Frozen>| list.id == id && now.duration_since(list.at).unsigned_abs() < LIST_LIFETIME;
        lists.iter().find(is_it).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_one_actor_do_not_displace_those_of_others_and_all_are_bounded() {
        let (lists, now) = (Lists::default(), Timestamp::UNIX_EPOCH);
        let bulk = BulkAction::new(ActionKind::Resume);
        let freeze = |actor: &str, count: usize| {
            let id = ActionId::new(Timestamp::now());
            let items = vec![(Target::Batches, None); count];
            let frozen = Frozen {
                id,
                at: now,
                actor: actor.to_owned(),
                bulk,
                of: ListOf::Jobs,
                origin: ListOrigin::default(),
                items,
            };
            lists.add(Arc::new(frozen));
            id
        };
        let alices = freeze("alice", 1);
        let mallorys: Vec<_> = (0..100).map(|_| freeze("mallory", 1)).collect();
        assert!(lists.get(alices, now).is_some());
        assert_eq!(mallorys.iter().filter(|id| lists.get(**id, now).is_some()).count(), MAX_LISTS_PER_ACTOR);
        for number in 0..10 {
            let last = freeze("mallory", MAX_ITEMS);
            assert!(lists.get(last, now).is_some());
            assert_eq!(lists.0.lock().len(), if number == 0 { MAX_LISTS_PER_ACTOR + 1 } else { 3 });
        }
        for number in 0..70 {
            freeze(&format!("user{number}"), MAX_ITEMS / 10);
        }
        let items: usize = lists.0.lock().iter().map(|list| list.items.len()).sum();
        assert!(items <= MAX_FROZEN_ITEMS && lists.0.lock().len() <= MAX_FROZEN, "{items}");
    }
}
