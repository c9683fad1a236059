//! Counts that are kept in the order of their size.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::hash::Hash;

use hashbrown::HashMap;

/// How many there are of each, and which have the most.
#[derive(Debug)]
pub(super) struct Tally<K> {
    counts: HashMap<K, u64>,
    most: BTreeSet<(Reverse<u64>, K)>,
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self { counts: HashMap::new(), most: BTreeSet::new() }
    }
}

impl<K: Copy + Eq + Hash + Ord> Tally<K> {
    /// The tally of items that are named once each.
    pub(super) fn of(counts: impl Iterator<Item = (K, u64)>) -> Self {
        let counts: HashMap<K, u64> = counts.filter(|(_, count)| *count > 0).collect();
        let most = counts.iter().map(|(item, count)| (Reverse(*count), *item)).collect();
        Self { counts, most }
    }

    pub(super) fn add(&mut self, item: K, by: i64) {
        let count = self.counts.entry(item).or_default();
        self.most.remove(&(Reverse(*count), item));
        *count = count.wrapping_add_signed(by);
        if *count == 0 {
            self.counts.remove(&item);
        } else {
            self.most.insert((Reverse(*count), item));
        }
    }

    /// How many have any.
    pub(super) fn len(&self) -> u64 {
        self.counts.len() as u64
    }

    /// Each with its count, the largest first.
    pub(super) fn largest(&self) -> impl Iterator<Item = (K, u64)> {
        self.most.iter().map(|(count, item)| (*item, count.0))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_tally_counts_as_a_plain_map(
            start in proptest::collection::btree_map(0u8..9, 0u64..4, 0..9),
            steps in proptest::collection::vec((0u8..9, -2i64..4), 0..60),
        ) {
            let mut tally = Tally::of(start.iter().map(|(item, count)| (*item, *count)));
            let mut plain: BTreeMap<u8, u64> = start;
            for (item, by) in steps {
                let count = plain.entry(item).or_default();
                // There are never fewer than none.
                let by = by.max(-i64::try_from(*count).unwrap());
                *count = count.strict_add_signed(by);
                tally.add(item, by);
                let mut sorted: Vec<_> = plain.iter().filter(|(_, count)| **count > 0).map(|(item, count)| (*item, *count)).collect();
                sorted.sort_by_key(|(item, count)| (Reverse(*count), *item));
                prop_assert_eq!(tally.len(), sorted.len() as u64);
                prop_assert_eq!(tally.largest().collect::<Vec<_>>(), sorted);
            }
        }
    }

    #[test]
    fn what_has_none_is_not_counted_and_the_largest_come_first() {
        let mut tally = Tally::of([("a", 2), ("b", 0), ("c", 3)].into_iter());
        assert_eq!((tally.len(), tally.largest().collect::<Vec<_>>()), (2, vec![("c", 3), ("a", 2)]));
        tally.add("b", 4);
        tally.add("c", -3);
        assert_eq!((tally.len(), tally.largest().collect::<Vec<_>>()), (2, vec![("b", 4), ("a", 2)]));
    }
}
