//! The lists that are frozen and not requested yet, and how many of them are remembered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::BulkAction;
use crate::actions::audit::ActionId;
use crate::actions::target::Target;

/// How many items a list may have.
pub const MOST_ITEMS: usize = 250_000;

/// How many lists are remembered that nobody has requested yet.
const MOST_FROZEN: usize = 64;

/// How many of them are one actor's. His older ones make room for the next, and nobody else's.
const MOST_OF_ONE: usize = 16;

/// How many items all of them may have together, and how many one actor's: a list of every job takes some megabytes.
const MOST_FROZEN_ITEMS: usize = 4 * MOST_ITEMS;
const MOST_ITEMS_OF_ONE: usize = 2 * MOST_ITEMS;

/// How long such a list is remembered.
const KEPT_FOR: Duration = Duration::from_mins(30);

/// What a list is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOf {
    /// The jobs that a filter found.
    Jobs,
    /// Jobs that somebody chose one by one.
    ChosenJobs,
    /// Anything that somebody chose one by one.
    ChosenItems,
    /// Items that show a fault.
    Faults,
}

impl ListOf {
    /// So many of them, in words.
    #[must_use]
    pub fn words(self, count: usize) -> &'static str {
        match (self, count) {
            (Self::Jobs, 1) => "job",
            (Self::Jobs, _) => "jobs",
            (Self::ChosenJobs, 1) => "chosen job",
            (Self::ChosenJobs, _) => "chosen jobs",
            (Self::ChosenItems, 1) => "chosen item",
            (Self::ChosenItems, _) => "chosen items",
            (Self::Faults, 1) => "fault",
            (Self::Faults, _) => "faults",
        }
    }
}

/// A frozen list, and what is to be done to each item of it.
#[derive(Clone, Debug)]
pub struct Frozen {
    /// The id of the action that it may become.
    pub id: ActionId,
    /// When it was frozen.
    pub at: Timestamp,
    /// By whom: nobody else may request it.
    pub actor: String,
    /// What is requested on each item.
    pub bulk: BulkAction,
    /// What it is a list of.
    pub of: ListOf,
    /// The items, and the version of each one's status as it was then.
    pub items: Vec<(Target, Option<i32>)>,
}

/// The lists that nobody has requested yet.
#[derive(Debug, Default)]
pub(in crate::actions) struct Lists(Mutex<VecDeque<Arc<Frozen>>>);

impl Lists {
    pub(super) fn add(&self, frozen: Arc<Frozen>) {
        let mut lists = self.0.lock();
        let (now, actor) = (frozen.at, frozen.actor.clone());
        lists.retain(|list| now.duration_since(list.at).unsigned_abs() < KEPT_FOR);
        lists.push_back(frozen);
        let is_own = |list: &&Arc<Frozen>| list.actor == actor;
        let size = |list: &Arc<Frozen>| list.items.len();
        while lists.iter().filter(is_own).count() > MOST_OF_ONE
            || lists.iter().filter(is_own).map(size).sum::<usize>() > MOST_ITEMS_OF_ONE
        {
            let oldest = lists.iter().position(|list| is_own(&list));
            oldest.map(|oldest| lists.remove(oldest));
        }
        while lists.len() > MOST_FROZEN || lists.iter().map(size).sum::<usize>() > MOST_FROZEN_ITEMS {
            lists.pop_front();
        }
    }

    pub(super) fn get(&self, id: ActionId, now: Timestamp) -> Option<Arc<Frozen>> {
        let lists = self.0.lock();
        let is_it = |list: &&Arc<Frozen>| list.id == id && now.duration_since(list.at).unsigned_abs() < KEPT_FOR;
        lists.iter().find(is_it).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::ActionKind;

    #[test]
    fn one_actor_s_lists_crowd_out_no_others_and_all_have_an_end() {
        let (lists, now) = (Lists::default(), Timestamp::UNIX_EPOCH);
        let bulk = BulkAction::new(ActionKind::Resume);
        let freeze = |actor: &str, count: usize| {
            let id = ActionId::new(Timestamp::now());
            let items = vec![(Target::Batches, None); count];
            let frozen = Frozen { id, at: now, actor: actor.to_owned(), bulk, of: ListOf::Jobs, items };
            lists.add(Arc::new(frozen));
            id
        };
        let alices = freeze("alice", 1);
        let mallorys: Vec<_> = (0..100).map(|_| freeze("mallory", 1)).collect();
        assert!(lists.get(alices, now).is_some());
        assert_eq!(mallorys.iter().filter(|id| lists.get(**id, now).is_some()).count(), MOST_OF_ONE);
        for number in 0..10 {
            let last = freeze("mallory", MOST_ITEMS);
            assert!(lists.get(last, now).is_some());
            assert_eq!(lists.0.lock().len(), if number == 0 { MOST_OF_ONE + 1 } else { 3 });
        }
        for number in 0..70 {
            freeze(&format!("user{number}"), MOST_ITEMS / 10);
        }
        let items: usize = lists.0.lock().iter().map(|list| list.items.len()).sum();
        assert!(items <= MOST_FROZEN_ITEMS && lists.0.lock().len() <= MOST_FROZEN, "{items}");
    }
}
