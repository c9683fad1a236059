//! How much the answers to reads bring, before they are there.
//!
//! No request of ZooKeeper's gives the sizes of many znodes, and a znode may have 1 MiB: 2,048 reads under way at once
//! may be two gigabytes, which a server has to hold in memory beside the tree. What is left is to learn from answers.
//! **That is safe only where reads of one kind are made in random order**: then those answered are a fair sample of
//! those to come, however the tree is arranged. In any other order small ones may come first.

/// How large a znode's data may be, by the servers' default (`jute.maxbuffer`).
pub const LARGEST_DATA: u64 = 1 << 20;

/// How many answers are remembered. What is older counts less and less, as the tree may have changed.
const REMEMBERED: f64 = 4096.0;

/// How large the answer to a read of one kind is expected to be.
///
/// One answer of the largest size is always counted beside those that were seen. So the reads that are expected to
/// bring as much as that grow in number with those that were made: from one, to one more than there were answers.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    largest: f64,
    answers: f64,
    bytes: f64,
}

impl Estimate {
    /// Nothing is known yet but how large an answer can be.
    #[must_use]
    pub fn at_most(bytes: u64) -> Self {
        Self { largest: bytes as f64, answers: 0.0, bytes: 0.0 }
    }

    /// What an answer is expected to bring, in bytes.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        (self.largest + self.bytes) / (1.0 + self.answers)
    }

    /// Takes note of an answer.
    pub fn saw(&mut self, bytes: u64) {
        self.answers += 1.0;
        self.bytes += bytes as f64;
        self.remember(REMEMBERED);
    }

    /// Trusts what was seen no more than so many answers: for other znodes, of which no sample was seen.
    pub fn remember(&mut self, answers: f64) {
        if self.answers > answers {
            self.bytes *= answers / self.answers;
            self.answers = answers;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes reads of these sizes in random order, as many at once as are expected to bring no more than `budget`, and
    /// gives the most that was under way, and how often answers were awaited.
    fn most_under_way(mut sizes: Vec<u64>, budget: f64) -> (u64, usize) {
        use rand::seq::SliceRandom as _;
        sizes.shuffle(&mut rand::rng());
        let (mut estimate, mut most, mut rounds) = (Estimate::at_most(LARGEST_DATA), 0, 0);
        while !sizes.is_empty() {
            let mut count = 1;
            while (count + 1) as f64 * estimate.bytes() <= budget {
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
        for (small, large) in [(0, 400), (5_000, 400), (20_000, 400), (20_000, 40), (200, 200)] {
            let sizes = [vec![150; small], vec![LARGEST_DATA; large]].concat();
            let (most, _) = most_under_way(sizes, BUDGET as f64);
            // By the budget, but for chance. By the order of the sizes, it would be all of the large ones.
            assert!(most < 6 * BUDGET, "{most} bytes of {small} small and {large} large ones");
        }
        let (most, rounds) = most_under_way(vec![150; 200_000], BUDGET as f64);
        assert!(most <= BUDGET && rounds < 30, "{most} bytes in {rounds} rounds");
    }

    #[test]
    fn an_estimate_is_the_mean_of_what_was_seen_and_of_one_answer_of_the_largest_size() {
        let mut estimate = Estimate::at_most(1_000);
        let is = |estimate: &Estimate, bytes: f64| (estimate.bytes() - bytes).abs() < 1e-9;
        assert!(is(&estimate, 1_000.0));
        estimate.saw(100);
        assert!(is(&estimate, 550.0), "{}", estimate.bytes());
        estimate.saw(400);
        assert!(is(&estimate, 500.0), "{}", estimate.bytes());
        estimate.remember(2.0);
        assert!(is(&estimate, 500.0), "{}", estimate.bytes());
        // Half of what was seen.
        estimate.remember(1.0);
        assert!(is(&estimate, 625.0), "{}", estimate.bytes());
    }

    #[test]
    fn what_is_forgotten_leaves_a_little_and_an_estimate_never_gains_by_it() {
        let mut estimate = Estimate::at_most(LARGEST_DATA);
        for _ in 0..10_000 {
            estimate.saw(100);
        }
        let learnt = estimate.bytes();
        estimate.remember(16.0);
        assert!(
            estimate.bytes() > LARGEST_DATA as f64 / 17.0 && learnt < 1_000.0,
            "{} after {learnt}",
            estimate.bytes()
        );
        let mut new = Estimate::at_most(LARGEST_DATA);
        new.remember(16.0);
        assert!((new.bytes() - LARGEST_DATA as f64).abs() < 1.0);
    }
}
