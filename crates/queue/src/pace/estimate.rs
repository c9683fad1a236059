//! How much the answers to reads bring, before they are there.
//!
//! No request of ZooKeeper's gives the sizes of many znodes, and a znode may have 1 MiB: 2,048 reads under way at once
//! may be two gigabytes, which a server has to hold in memory beside the tree. What is left is to learn from answers.
//! **That is safe only where reads of one kind are made in random order**: then those answered are a fair sample of
//! those to come, however the tree is arranged. In any other order small ones may come first.

use std::ops::AddAssign;

/// How large a znode's data may be, by the servers' default (`jute.maxbuffer`).
pub const LARGEST_DATA: u64 = 1 << 20;

/// How many answers are remembered. What is older counts less and less, as the tree may have changed.
const REMEMBERED: f64 = 4096.0;

/// How many standard deviations above its mean an answer is counted with. Large values are few and far from the mean:
/// with this many, a request that is expected to have room for two of them is hardly ever sent.
const DEVIATIONS: f64 = 4.0;

/// What some reads are expected to bring together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    bytes: f64,
    variance: f64,
}

impl Expected {
    /// So many bytes.
    #[must_use]
    pub fn exactly(bytes: f64) -> Self {
        Self { bytes, variance: 0.0 }
    }

    /// The mean, in bytes.
    #[must_use]
    pub fn bytes(self) -> f64 {
        self.bytes
    }

    /// The most, in bytes, but for chance.
    #[must_use]
    pub fn most(self) -> f64 {
        self.bytes + DEVIATIONS * self.variance.sqrt()
    }

    /// What so many reads like these bring.
    #[must_use]
    pub fn times(self, reads: usize) -> Self {
        Self { bytes: self.bytes * reads as f64, variance: self.variance * reads as f64 }
    }
}

impl AddAssign for Expected {
    fn add_assign(&mut self, more: Self) {
        self.bytes += more.bytes;
        self.variance += more.variance;
    }
}

/// How large the answer to a read of one kind is expected to be.
///
/// One answer of the largest size is always counted in the mean, beside those that were seen. So the reads that are
/// expected to bring as much as that grow in number with those that were made: from one, to one more than there were
/// answers. How much answers differ is known only from those that were seen.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    largest: f64,
    answers: f64,
    bytes: f64,
    squares: f64,
}

impl Estimate {
    /// Nothing is known yet but how large an answer can be.
    #[must_use]
    pub fn at_most(bytes: u64) -> Self {
        Self { largest: bytes as f64, answers: 0.0, bytes: 0.0, squares: 0.0 }
    }

    /// What an answer is expected to bring.
    #[must_use]
    pub fn expected(&self) -> Expected {
        let seen = self.answers.max(1.0);
        let mean = self.bytes / seen;
        Expected {
            bytes: (self.largest + self.bytes) / (1.0 + self.answers),
            variance: (self.squares / seen - mean * mean).max(0.0),
        }
    }

    /// How many reads bring no more than so many bytes, but for chance; at least one.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of reads, cut")]
    pub fn reads_within(&self, bytes: f64) -> usize {
        let Expected { bytes: mean, variance } = self.expected();
        // n with n * mean + d * sqrt(n) = bytes.
        let deviation = DEVIATIONS * variance.sqrt();
        let root = ((deviation * deviation + 4.0 * mean * bytes).sqrt() - deviation) / (2.0 * mean);
        ((root * root) as usize).max(1)
    }

    /// Takes note of an answer.
    pub fn saw(&mut self, bytes: u64) {
        self.answers += 1.0;
        self.bytes += bytes as f64;
        self.squares += (bytes as f64).powi(2);
        self.remember(REMEMBERED);
    }

    /// Trusts what was seen no more than so many answers: for other znodes, of which no sample was seen.
    pub fn remember(&mut self, answers: f64) {
        if self.answers > answers {
            self.bytes *= answers / self.answers;
            self.squares *= answers / self.answers;
            self.answers = answers;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;
    use rand::seq::SliceRandom as _;

    use super::*;

    /// The same in each run: what happens once in thousands of orders is a failure of the test otherwise.
    const SEED: u64 = 17;

    /// Makes reads of these sizes in random order, as many at once as are expected to bring no more than `budget`, and
    /// gives the most that was under way, and how often answers were awaited.
    fn most_under_way(mut sizes: Vec<u64>, budget: f64, order: &mut StdRng) -> (u64, usize) {
        sizes.shuffle(order);
        let (mut estimate, mut most, mut rounds) = (Estimate::at_most(LARGEST_DATA), 0, 0);
        while !sizes.is_empty() {
            let mut count = 1;
            while (count + 1) as f64 * estimate.expected().bytes() <= budget {
                count += 1;
            }
            let round = sizes.split_off(sizes.len().saturating_sub(count));
            most = most.max(round.iter().sum());
            rounds += 1;
            for bytes in round {
                estimate.saw(bytes);
            }
        }
        (most, rounds)
    }

    #[test]
    fn however_many_are_large_little_is_under_way_and_small_ones_are_soon_read_by_the_thousand() {
        const BUDGET: u64 = 8 << 20;
        let mut order = StdRng::seed_from_u64(SEED);
        for (small, large) in [(0, 400), (5_000, 400), (20_000, 400), (20_000, 40), (200, 200)] {
            let sizes = [vec![150; small], vec![LARGEST_DATA; large]].concat();
            let (most, _) = most_under_way(sizes, BUDGET as f64, &mut order);
            // By the budget, but for chance. By the order of the sizes, it would be all of the large ones.
            assert!(most < 6 * BUDGET, "{most} bytes of {small} small and {large} large ones");
        }
        let (most, rounds) = most_under_way(vec![150; 200_000], BUDGET as f64, &mut order);
        assert!(most <= BUDGET && rounds < 30, "{most} bytes in {rounds} rounds");
    }

    #[test]
    fn a_request_hardly_ever_has_room_for_two_large_values_among_small_ones() {
        const ANSWER: f64 = 524_288.0;
        let mut order = StdRng::seed_from_u64(SEED);
        for (small, large) in [(3_000, 100), (20_000, 400), (20_000, 40), (20_000, 4), (200, 200)] {
            let mut sizes = [vec![150; small], vec![LARGEST_DATA; large]].concat();
            sizes.shuffle(&mut order);
            let (mut estimate, mut with_two, mut rest) = (Estimate::at_most(LARGEST_DATA), 0, sizes.as_slice());
            while !rest.is_empty() {
                let (request, later) = rest.split_at(estimate.reads_within(ANSWER).min(rest.len()));
                with_two += u32::from(request.iter().filter(|bytes| **bytes == LARGEST_DATA).count() > 1);
                for bytes in request {
                    estimate.saw(*bytes);
                }
                rest = later;
            }
            // By the mean alone, of 400 among 20,000 every other one would have two.
            assert!(with_two <= 3, "{with_two} requests with two of {large} large values beside {small} small ones");
        }
    }

    #[test]
    fn as_many_reads_are_within_a_size_as_are_expected_to_bring_it_but_for_chance() {
        let mut estimate = Estimate::at_most(1_000);
        assert_eq!((estimate.reads_within(999.0), estimate.reads_within(2_000.0)), (1, 2));
        for bytes in [100, 300, 100, 300] {
            estimate.saw(bytes);
        }
        // A mean of 1,800 / 5 and a standard deviation of 100.
        let of = |reads| estimate.expected().times(reads);
        assert!((of(9).bytes() - 3_240.0).abs() < 1e-6 && (of(9).most() - 4_440.0).abs() < 1e-6, "{:?}", of(9));
        assert_eq!((estimate.reads_within(4_439.0), estimate.reads_within(4_441.0)), (8, 9));
        let exactly = Expected::exactly(240.0);
        assert_eq!((exactly.bytes(), exactly.most()), (240.0, 240.0));
        let mut sum = of(4);
        sum += of(5);
        assert!((sum.most() - of(9).most()).abs() < 1e-6, "{sum:?}");
        // Forgetting some changes the mean, by the largest, and not how much they differ.
        estimate.remember(2.0);
        let one = estimate.expected();
        assert!((one.most() - one.bytes() - 400.0).abs() < 1e-6, "{one:?}");
    }

    #[test]
    fn one_large_value_makes_requests_small_until_far_more_than_are_remembered_were_small() {
        let mut estimate = Estimate::at_most(LARGEST_DATA);
        let mut reads_after = |count: usize, bytes| {
            for _ in 0..count {
                estimate.saw(bytes);
                estimate.remember(256.0);
            }
            estimate.reads_within(524_288.0)
        };
        assert!(reads_after(256, 150) > 64);
        assert!((2..6).contains(&reads_after(1, LARGEST_DATA)));
        assert!((6..32).contains(&reads_after(256, 150)));
        assert!(reads_after(1_024, 150) > 64);
    }

    #[test]
    fn an_estimate_is_the_mean_of_what_was_seen_and_of_one_answer_of_the_largest_size() {
        let mut estimate = Estimate::at_most(1_000);
        let is = |estimate: &Estimate, bytes: f64| (estimate.expected().bytes() - bytes).abs() < 1e-9;
        assert!(is(&estimate, 1_000.0));
        estimate.saw(100);
        assert!(is(&estimate, 550.0), "{}", estimate.expected().bytes());
        estimate.saw(400);
        assert!(is(&estimate, 500.0), "{}", estimate.expected().bytes());
        estimate.remember(2.0);
        assert!(is(&estimate, 500.0), "{}", estimate.expected().bytes());
        // Half of what was seen.
        estimate.remember(1.0);
        assert!(is(&estimate, 625.0), "{}", estimate.expected().bytes());
    }

    #[test]
    fn what_is_forgotten_leaves_a_little_and_an_estimate_never_gains_by_it() {
        let mut estimate = Estimate::at_most(LARGEST_DATA);
        for _ in 0..10_000 {
            estimate.saw(100);
        }
        let learnt = estimate.expected().bytes();
        estimate.remember(16.0);
        assert!(
            estimate.expected().bytes() > LARGEST_DATA as f64 / 17.0 && learnt < 1_000.0,
            "{} after {learnt}",
            estimate.expected().bytes()
        );
        let mut new = Estimate::at_most(LARGEST_DATA);
        new.remember(16.0);
        assert!((new.expected().bytes() - LARGEST_DATA as f64).abs() < 1.0);
    }
}
