//! Reproducible randomness: every choice of the demo follows from its seed.

use std::hash::{DefaultHasher, Hash, Hasher};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A source of choices. Two with the same seed and name make the same choices in the same order.
#[derive(Debug)]
pub(super) struct Dice {
    rng: StdRng,
}

impl Dice {
    /// The choices for `what`, such as a daemon's name or a batch's number, independent of all others.
    pub(super) fn new(seed: u64, what: impl Hash) -> Self {
        // Made by `new`, this hasher has fixed keys: it hashes alike in every process.
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        Self { rng: StdRng::seed_from_u64(seed ^ hasher.finish()) }
    }

    /// Whether an event with this probability, 0 to 1, happens.
    pub(super) fn happens(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    /// A number from `from` to `to`, both inclusive.
    pub(super) fn between(&mut self, from: u64, to: u64) -> u64 {
        self.rng.random_range(from..=to)
    }

    /// A number from `from` to `to`, exclusive.
    pub(super) fn float(&mut self, from: f64, to: f64) -> f64 {
        self.rng.random_range(from..to)
    }

    /// A number of bytes, log-uniform within the bounds.
    pub(super) fn bytes(&mut self, from: u64, to: u64) -> u64 {
        let exponent = self.float((from.max(1) as f64).ln(), (to.max(from) as f64).ln() + f64::EPSILON);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it lies between two u64")]
        let bytes = exponent.exp() as u64;
        bytes.clamp(from, to)
    }

    /// One of several, with equal probability.
    ///
    /// # Panics
    /// When there are none.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.rng.random_range(0..from.len())]
    }

    /// One of several, with a probability in proportion to its weight.
    ///
    /// # Panics
    /// When there are none, or no weight is above 0.
    pub(super) fn weighted<T: Copy>(&mut self, from: &[(u32, T)]) -> T {
        let mut left = self.rng.random_range(0..from.iter().map(|(weight, _)| weight).sum());
        for (weight, item) in from {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *item,
            }
        }
        unreachable!("the drawn number is below the sum of the weights")
    }

    /// A text of that many lower-case hexadecimal digits.
    pub(super) fn hex(&mut self, digits: usize) -> String {
        (0..digits).map(|_| char::from(*self.pick(b"0123456789abcdef"))).collect()
    }

    /// A random UUID's text.
    pub(super) fn uuid(&mut self) -> String {
        // The digits in between are version 4 and its variant.
        let parts = [8, 4, 3, 3, 12].map(|digits| self.hex(digits));
        format!("{}-{}-4{}-a{}-{}", parts[0], parts[1], parts[2], parts[3], parts[4])
    }

    /// The end of an ARK, in the characters that ARKs use, which contain no vowels.
    pub(super) fn ark_blade(&mut self) -> String {
        (0..8).map(|_| char::from(*self.pick(b"0123456789bcdfghjkmnpqrstvwxz"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_follow_from_seed_and_name_alone() {
        let draw = |seed, what| {
            let mut dice = Dice::new(seed, what);
            (dice.uuid(), dice.bytes(1, 1 << 40), dice.weighted(&[(1, 'a'), (5, 'b')]))
        };
        assert_eq!(draw(1, "x"), draw(1, "x"));
        assert_ne!(draw(1, "x"), draw(2, "x"));
        assert_ne!(draw(1, "x"), draw(1, "y"));
    }

    #[test]
    fn a_draw_stays_within_its_bounds_and_reaches_its_kinds() {
        let mut dice = Dice::new(3, "bounds");
        let mut drawn = [0; 3];
        for _ in 0..2_000 {
            assert!((1 << 20..=1 << 40).contains(&dice.bytes(1 << 20, 1 << 40)));
            assert_eq!(dice.bytes(7, 7), 7);
            drawn[dice.weighted(&[(1, 0), (0, 1), (3, 2)])] += 1;
        }
        assert_eq!(drawn[1], 0);
        assert!(drawn[0] > 300 && drawn[2] > 1_200, "{drawn:?}");
    }
}
