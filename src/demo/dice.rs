//! Reproducible randomness: every choice of the demo follows from its seed.

use std::hash::{DefaultHasher, Hash, Hasher};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use uuid::Uuid;

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

    /// So many bytes.
    pub(super) fn fill(&mut self, bytes: usize) -> Vec<u8> {
        let mut filled = vec![0; bytes];
        self.rng.fill(filled.as_mut_slice());
        filled
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

    /// A random UUID.
    pub(super) fn uuid(&mut self) -> Uuid {
        uuid::Builder::from_random_bytes(self.rng.random()).into_uuid()
    }
}
