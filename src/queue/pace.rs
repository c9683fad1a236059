//! How many reads of znodes go into one request where their order is given.
//!
//! A znode may hold 1 MiB, and a server has all answers that are under way in memory beside the tree. What was read in a
//! given order is no sample of what follows: large values may stand behind thousands of small ones.

/// The pace of reading: few reads are under way, by number, so the first large values after small ones are that many at
/// most. Their answer makes the next requests small at once, and small answers let them grow again.
#[derive(Clone, Copy, Debug)]
pub(super) struct InOrder {
    bytes_a_read: f64,
}

impl InOrder {
    /// How many reads a request has at most.
    const READS: usize = 64;

    /// How large an answer should be, in bytes, by the size of those before it.
    const ANSWER_BYTES: f64 = 2_097_152.0;

    /// What a read is taken to bring while nothing is known.
    const BYTES_A_READ: f64 = 65_536.0;

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

impl Default for InOrder {
    fn default() -> Self {
        Self { bytes_a_read: Self::BYTES_A_READ }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_requests_grow_slowly_and_are_small_after_the_first_large_answer() {
        let mut pace = InOrder::default();
        assert!(pace.reads() < InOrder::READS);
        for _ in 0..20 {
            pace.saw(64, 64 * 150);
        }
        assert_eq!(pace.reads(), InOrder::READS);
        pace.saw(64, 64 << 20);
        assert_eq!(pace.reads(), 2);
        pace.saw(2, 300);
        assert!(pace.reads() < 4);
    }
}
