//! How many reads of znodes may be under way at once.
//!
//! A znode may hold 1 MiB, and a server has all answers that are under way in memory beside the tree. Where reads are
//! made in a given order, those answered predict nothing about those that follow: large values may stand behind
//! thousands of small ones. So such reads are bounded by their number. Faster is what may be read in random order,
//! whose answers are a sample of the rest: of many znodes that each stand for themselves ([`Estimate`]), and of those
//! that a dump has before it.

mod estimate;

pub use self::estimate::{Estimate, LARGEST_DATA};

/// How many requests are in flight at once. More make nothing faster and only buffer answers.
pub(super) const REQUESTS_IN_FLIGHT: usize = 4;

/// How many values that are read in a given order may be in flight: 16 MiB, if each is as large as a znode can be.
pub(super) const VALUES_IN_FLIGHT: usize = 16;

/// How many bytes of values that are read in random order may be in flight, by what is expected of them.
pub(super) const EXPECTED_BYTES: f64 = 4_194_304.0;

/// Which part of what may be in flight one request may bring, by what is expected. A server writes an answer into one
/// array, doubles it as it grows, and copies it: that takes room in one piece, which large values leave none of on a
/// small heap long before it is full. And what is expected is a mean: a small part exceeds it less often by much.
pub const PART_A_REQUEST: u32 = 8;

/// How many reads of a dump a request has, by the answers to earlier ones that were chosen at random from what comes
/// next. The first large value makes the next requests small at once, and small ones let them grow again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    bytes_a_read: f64,
}

impl Sampled {
    /// How many reads a request has at most.
    const READS: usize = 64;

    /// How large an answer should be, in bytes, by the size of those before it.
    const ANSWER_BYTES: f64 = EXPECTED_BYTES / PART_A_REQUEST as f64;

    /// How many reads the next request may have.
    pub(super) fn reads(self) -> usize {
        (1..=Self::READS).rev().find(|reads| *reads as f64 * self.bytes_a_read <= Self::ANSWER_BYTES).unwrap_or(1)
    }

    /// Takes note of an answer to so many reads.
    pub(super) fn saw(&mut self, reads: usize, bytes: usize) {
        // It falls slowly, and rises at once.
        self.bytes_a_read = (bytes as f64 / reads.max(1) as f64).max(self.bytes_a_read * 0.75);
    }
}

impl Default for Sampled {
    fn default() -> Self {
        Self { bytes_a_read: LARGEST_DATA as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_dump_start_small_grow_slowly_and_are_small_after_the_first_large_answer() {
        let mut pace = Sampled::default();
        assert_eq!(pace.reads(), 1);
        pace.saw(1, 150);
        assert_eq!(pace.reads(), 1);
        for _ in 0..40 {
            pace.saw(64, 64 * 150);
        }
        assert_eq!(pace.reads(), Sampled::READS);
        // An answer should have 512 KiB.
        let at = |bytes_a_read| Sampled { bytes_a_read }.reads();
        assert_eq!((at(131_072.0), at(65_536.0), at(524_288.0)), (4, 8, 1));
        pace.saw(64, 64 << 20);
        assert_eq!(pace.reads(), 1);
    }
}
