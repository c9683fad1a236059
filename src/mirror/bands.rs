//! An ordered set that knows at any time how many of its items lie above each of a few moving marks.

use std::ops::RangeInclusive;

use super::ranked::Ranked;

/// Items ordered by a number (an instant in milliseconds, a size in bytes), distinguished by a second one.
///
/// The age of a job changes while nothing happens, so jobs by age cannot be counted as changes come in; counting them
/// anew for every scrape would cost more the longer the queue is. This keeps, for each mark, the number of items above
/// it. Only for a mark that has moved is that counted anew, from where it is in the order.
#[derive(Clone, Debug)]
pub(super) struct Bands<const N: usize> {
    items: Ranked<(i64, u32)>,
    marks: [i64; N],
    above: [usize; N],
}

impl<const N: usize> Default for Bands<N> {
    fn default() -> Self {
        Self { items: Ranked::default(), marks: [i64::MAX; N], above: [0; N] }
    }
}

impl<const N: usize> Bands<N> {
    /// A set of these items. Building it from all of them at once is faster and packs them tighter than inserting.
    pub(super) fn of(items: Vec<(i64, u32)>) -> Self {
        Self { items: Ranked::of(items), ..Self::default() }
    }

    pub(super) fn insert(&mut self, at: i64, id: u32) {
        if self.items.insert((at, id)) {
            self.shift(at, 1);
        }
    }

    pub(super) fn remove(&mut self, at: i64, id: u32) {
        if self.items.remove((at, id)) {
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
        self.items.iter()
    }

    /// The items in order, which know their positions.
    pub(super) fn items(&self) -> &Ranked<(i64, u32)> {
        &self.items
    }

    /// The items of a range of numbers, both ends included, lowest number first.
    pub(super) fn range(&self, numbers: RangeInclusive<i64>) -> impl Iterator<Item = (i64, u32)> {
        let (low, high) = numbers.into_inner();
        self.items.behind(move |(at, _)| *at < low).take_while(move |(at, _)| *at <= high)
    }

    /// The lowest number, such as the instant of the oldest item.
    pub(super) fn first(&self) -> Option<i64> {
        self.items.first().map(|(at, _)| at)
    }

    /// The highest number, such as the instant of the youngest item.
    pub(super) fn last(&self) -> Option<i64> {
        self.items.last().map(|(at, _)| at)
    }

    /// How many items lie above each of these marks.
    pub(super) fn above(&self, marks: [i64; N]) -> [usize; N] {
        let mut above = self.above;
        for ((above, old), new) in above.iter_mut().zip(self.marks).zip(marks) {
            if new != old {
                *above = self.items.len() - self.items.rank(|(at, _)| *at <= new);
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
    use std::collections::BTreeSet;

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
