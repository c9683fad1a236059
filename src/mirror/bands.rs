//! An ordered set that knows at any time how many of its items lie above each of a few moving marks.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included};
use std::ops::RangeInclusive;

/// Items ordered by a number (an instant in milliseconds, a size in bytes), told apart by a second one.
///
/// The age of a job changes while nothing happens, so jobs by age cannot be counted as changes come in; counting them
/// anew for every scrape would cost more the longer the queue is. This keeps, for each mark, the number of items above
/// it. A mark that has moved costs one step for each item between its old and its new place, which is what crossed it.
#[derive(Clone, Debug)]
pub(super) struct Bands<const N: usize> {
    items: BTreeSet<(i64, u32)>,
    marks: [i64; N],
    above: [usize; N],
}

impl<const N: usize> Default for Bands<N> {
    fn default() -> Self {
        Self { items: BTreeSet::new(), marks: [i64::MAX; N], above: [0; N] }
    }
}

impl<const N: usize> Bands<N> {
    /// A set of these items. Building it from all of them at once is faster and packs them tighter than inserting.
    pub(super) fn of(items: Vec<(i64, u32)>) -> Self {
        Self { items: items.into_iter().collect(), ..Self::default() }
    }

    pub(super) fn insert(&mut self, at: i64, id: u32) {
        if self.items.insert((at, id)) {
            self.shift(at, 1);
        }
    }

    pub(super) fn remove(&mut self, at: i64, id: u32) {
        if self.items.remove(&(at, id)) {
            self.shift(at, -1);
        }
    }

    fn shift(&mut self, at: i64, by: isize) {
        for (mark, above) in self.marks.iter().zip(&mut self.above) {
            if at > *mark {
                *above = above.wrapping_add_signed(by);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// The items, lowest number first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, u32)> {
        self.items.iter().copied()
    }

    /// The items of a range of numbers, both ends included, lowest number first.
    pub(super) fn range(&self, numbers: RangeInclusive<i64>) -> impl Iterator<Item = (i64, u32)> {
        let (low, high) = numbers.into_inner();
        // A range that ends before it begins is an empty one here; the set itself would panic.
        (low <= high).then(|| self.items.range((low, 0)..=(high, u32::MAX)).copied()).into_iter().flatten()
    }

    /// The lowest number, such as the instant of the oldest item.
    pub(super) fn first(&self) -> Option<i64> {
        self.items.first().map(|(at, _)| *at)
    }

    /// The highest number, such as the instant of the youngest item.
    pub(super) fn last(&self) -> Option<i64> {
        self.items.last().map(|(at, _)| *at)
    }

    /// How many items lie above each of these marks.
    pub(super) fn above(&self, marks: [i64; N]) -> [usize; N] {
        let mut above = self.above;
        for ((above, old), new) in above.iter_mut().zip(self.marks).zip(marks) {
            let between = |low: i64, high: i64| {
                // Every number at `low` is excluded whatever its second part, and every one at `high` included.
                self.items.range((Excluded((low, u32::MAX)), Included((high, u32::MAX)))).count()
            };
            if new > old {
                *above -= between(old, new);
            } else if new < old {
                *above += between(new, old);
            }
        }
        above
    }

    /// Moves the marks, so that [`Bands::above`] has little to count until they have moved on.
    pub(super) fn set_marks(&mut self, marks: [i64; N]) {
        self.above = self.above(marks);
        self.marks = marks;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn marks_count_what_a_plain_count_finds(
            steps in proptest::collection::vec((any::<bool>(), -50i64..50, 0u32..4), 0..200),
            marks in proptest::collection::vec((-60i64..60, -60i64..60), 1..8),
        ) {
            let mut bands = Bands::<2>::default();
            let mut plain = BTreeSet::new();
            let mut marks = marks.into_iter().cycle();
            for (insert, at, id) in steps {
                if insert {
                    bands.insert(at, id);
                    plain.insert((at, id));
                } else {
                    bands.remove(at, id);
                    plain.remove(&(at, id));
                }
                let (a, b) = marks.next().unwrap();
                let expected = [a, b].map(|mark| plain.iter().filter(|(at, _)| *at > mark).count());
                prop_assert_eq!(bands.above([a, b]), expected);
                if id == 0 {
                    bands.set_marks([a, b]);
                    prop_assert_eq!(bands.above([a, b]), expected);
                }
            }
            prop_assert_eq!(bands.len(), plain.len());
            prop_assert_eq!(bands.first(), plain.first().map(|(at, _)| *at));
            prop_assert_eq!(Bands::<1>::of(plain.iter().copied().collect()).above([0]), [plain.iter().filter(|(at, _)| *at > 0).count()]);
        }
    }
}
