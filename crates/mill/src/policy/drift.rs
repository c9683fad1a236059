//! A policy file that was changed beside the editor: what takes effect at once, and what waits for an admin.
//!
//! What such a change adds is done. What it takes away, redirects or ignores is not, until an admin agrees: a user who
//! can write the file cannot end the copies of an account.

use std::collections::BTreeSet;

use queuekeeper_store::SpaceName;

use super::check::faults;
use super::{Pair, Policy, StoreId};

/// What a change beside the editor comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The policy that is in force until an admin agrees to the rest.
    pub in_force: Policy,
    /// What does not take effect yet.
    pub waiting: Vec<WaitingChange>,
}

/// A part of a change that waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitingChange {
    /// The space; `None` for all that are not named.
    pub space: Option<SpaceName>,
    /// The pairs that would end.
    pub ends: BTreeSet<Pair>,
    /// The pairs that would begin in their place.
    pub begins: BTreeSet<Pair>,
}

/// What comes of a policy that was found in place of the one in force. Both can be carried out by an account with these
/// stores.
#[must_use]
pub fn drift(in_force: &Policy, found: &Policy, stores: &BTreeSet<StoreId>) -> Drift {
    let mut waiting = Vec::new();
    let mut merge = |space: Option<&SpaceName>, before: &BTreeSet<Pair>, after: &BTreeSet<Pair>| {
        let merged = merged(before, after, stores);
        if merged != *after {
            let of = |from: &BTreeSet<Pair>, without: &BTreeSet<Pair>| from.difference(without).cloned().collect();
            waiting.push(WaitingChange { space: space.cloned(), ends: of(&merged, after), begins: of(after, &merged) });
        }
        merged
    };
    let mut now = Policy { defaults: merge(None, &in_force.defaults, &found.defaults), ..Policy::default() };
    for space in in_force.named().union(&found.named()).copied().filter(|space| !space.is_reserved()) {
        let pairs = merge(Some(space), in_force.pairs(space), found.pairs(space));
        if pairs.is_empty() && found.ignored.contains(space) {
            now.ignored.insert(space.clone());
        } else if pairs != now.defaults || found.spaces.contains_key(space) {
            now.spaces.insert(space.clone(), pairs);
        }
    }
    Drift { in_force: now, waiting }
}

/// The pairs before, and those of the new ones that go with them.
fn merged(before: &BTreeSet<Pair>, after: &BTreeSet<Pair>, stores: &BTreeSet<StoreId>) -> BTreeSet<Pair> {
    let mut merged = before.clone();
    for pair in after {
        if merged.insert(pair.clone()) && !faults(&merged, stores).is_empty() {
            merged.remove(pair);
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, btree_set};
    use proptest::prelude::*;

    use super::super::check;
    use super::*;

    const SPACES: [&str; 3] = ["a", "b", "c"];

    fn stores() -> BTreeSet<StoreId> {
        (1..=4).map(|number: u8| StoreId(number.to_string())).collect()
    }

    fn pairs() -> impl Strategy<Value = BTreeSet<Pair>> {
        let store = || (1..=4u8).prop_map(|number| StoreId(number.to_string()));
        let pair = (store(), store()).prop_map(|(source, destination)| Pair { source, destination });
        btree_set(pair, 0..4).prop_filter("can be carried out", |pairs| faults(pairs, &stores()).is_empty())
    }

    fn policy() -> impl Strategy<Value = Policy> {
        let space = || prop::sample::select(&SPACES[..]).prop_map(|name| name.parse::<SpaceName>().unwrap());
        (pairs(), btree_map(space(), pairs(), 0..3), btree_set(space(), 0..2))
            .prop_map(|(defaults, spaces, ignored)| Policy { defaults, spaces, ignored })
    }

    proptest! {
        #[test]
        fn nothing_ends_by_a_change_of_the_file_and_all_that_can_begins(before in policy(), found in policy()) {
            let Drift { in_force, waiting } = drift(&before, &found, &stores());
            prop_assert_eq!(check(&in_force, &stores()), vec![]);
            let named: BTreeSet<_> = before.named().union(&found.named()).copied().cloned().collect();
            for name in SPACES {
                let space = name.parse().unwrap();
                let (before, found, now) = (before.pairs(&space), found.pairs(&space), in_force.pairs(&space));
                prop_assert!(now.is_superset(before), "{} of {:?} in {:?}", name, before, now);
                for pair in found.difference(now) {
                    let mut with = now.clone();
                    with.insert(pair.clone());
                    prop_assert!(!faults(&with, &stores()).is_empty());
                }
                prop_assert!(now.iter().all(|pair| before.contains(pair) || found.contains(pair)));
                let waits = waiting.iter().any(|waiting| match &waiting.space {
                    Some(of) => of == &space,
                    None => !named.contains(&space),
                });
                prop_assert_eq!(waits, now != found, "{}", name);
            }
            // What an admin has agreed to is in force as it is.
            prop_assert_eq!(drift(&found, &found, &stores()).waiting, vec![]);
        }
    }
}
