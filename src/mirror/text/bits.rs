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

    fn insert(&mut self, at: usize) {
        if self.words.len() <= at / 64 {
            self.words.resize(at / 64 + 1, 0);
        }
        self.words[at / 64] |= 1 << (at % 64);
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
}

impl FromIterator<usize> for Bits {
    fn from_iter<T: IntoIterator<Item = usize>>(numbers: T) -> Self {
        let mut bits = Self::default();
        numbers.into_iter().for_each(|at| bits.insert(at));
        bits
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_are_a_set(numbers in proptest::collection::vec(0usize..300, 0..200)) {
            let bits: Bits = numbers.iter().copied().collect();
            let plain: BTreeSet<_> = numbers.into_iter().collect();
            prop_assert!((0..400).all(|at| bits.has(at) == plain.contains(&at)));
            prop_assert_eq!(bits.is_empty(), plain.is_empty());
            prop_assert_eq!(bits.len(), plain.len());
            prop_assert!(bits.iter().eq(plain.iter().copied()));
            for at in 0..300 {
                prop_assert!((0..64).all(|bit| (bits.window(at) >> bit & 1 == 1) == plain.contains(&(at + bit))));
            }
        }
    }

    #[test]
    fn there_is_a_bit_for_each_number_up_to_the_largest() {
        for (largest, words) in [(0, 1), (63, 1), (64, 2), (200, 4)] {
            assert_eq!([0, largest].into_iter().collect::<Bits>().words.len(), words, "{largest}");
        }
    }
}
