//! A set of small numbers as bits.

/// A set of numbers: one bit for each up to the largest.
#[derive(Clone, Debug, Default)]
pub(in crate::mirror) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(in crate::mirror) fn has(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    pub(in crate::mirror) fn insert(&mut self, at: usize) {
        if self.words.len() <= at / 64 {
            self.words.resize(at / 64 + 1, 0);
        }
        self.words[at / 64] |= 1 << (at % 64);
    }

    pub(in crate::mirror) fn remove(&mut self, at: usize) {
        if let Some(word) = self.words.get_mut(at / 64) {
            *word &= !(1 << (at % 64));
        }
    }

    pub(in crate::mirror) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// How many numbers there are.
    pub(in crate::mirror) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The numbers, lowest first.
    pub(in crate::mirror) fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let some = |word: u64| (word != 0).then_some(word);
            let rest = std::iter::successors(some(*word), move |word| some(word & (word - 1)));
            rest.map(move |word| at * 64 + word.trailing_zeros() as usize)
        })
    }

    /// The 64 numbers from `at` on, the first of them as the lowest bit.
    pub(in crate::mirror) fn window(&self, at: usize) -> u64 {
        let word = |at: usize| self.words.get(at).copied().unwrap_or(0);
        let (low, shift) = (word(at / 64), at % 64);
        if shift == 0 { low } else { low >> shift | word(at / 64 + 1) << (64 - shift) }
    }

    /// Whether a number of a range is in the set.
    pub(super) fn meets(&self, range: std::ops::Range<usize>) -> bool {
        let mut at = range.start;
        while at < range.end {
            let window = self.window(at);
            let rest = range.end - at;
            if (if rest < 64 { window & ((1 << rest) - 1) } else { window }) != 0 {
                return true;
            }
            at += 64;
        }
        false
    }

    /// Takes out all numbers from `end` on.
    pub(super) fn truncate(&mut self, end: usize) {
        self.words.truncate(end.div_ceil(64));
        if let Some(last) = self.words.get_mut(end / 64) {
            *last &= (1 << (end % 64)) - 1;
        }
    }

    pub(super) fn shrink(&mut self) {
        self.words.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_are_a_set(steps in proptest::collection::vec((0usize..300, 0u8..6), 0..200)) {
            let mut bits = Bits::default();
            let mut plain = BTreeSet::new();
            for (at, what) in steps {
                match what {
                    0 => {
                        bits.remove(at);
                        plain.remove(&at);
                    }
                    1 => {
                        bits.truncate(at);
                        plain.retain(|other| *other < at);
                    }
                    _ => {
                        bits.insert(at);
                        plain.insert(at);
                    }
                }
                prop_assert!((0..400).all(|at| bits.has(at) == plain.contains(&at)));
                prop_assert_eq!(bits.is_empty(), plain.is_empty());
                prop_assert_eq!(bits.len(), plain.len());
                prop_assert!(bits.iter().eq(plain.iter().copied()));
                prop_assert!((0..64).all(|bit| (bits.window(at) >> bit & 1 == 1) == plain.contains(&(at + bit))));
                prop_assert_eq!(bits.meets(at..at + 70), plain.range(at..at + 70).next().is_some());
            }
        }
    }
}
