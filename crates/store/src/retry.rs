//! How often and after which waits a request is repeated that is safe to repeat.

use std::time::Duration;

use rand::RngExt as _;
use tokio::time::Instant;

/// The bounds of repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How many attempts there are at most, the first one included; at least 1.
    pub attempts: u32,
    /// After which time from the first attempt no other one begins.
    pub within: Duration,
    /// The longest wait after the first failure; it doubles with each one.
    pub first: Duration,
    /// The longest wait at all, unless the store asks for a longer one.
    pub most: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 8,
            within: Duration::from_mins(2),
            first: Duration::from_millis(200),
            most: Duration::from_secs(20),
        }
    }
}

impl RetryPolicy {
    /// The wait after some failures, where `part` is from 0 to 1: at least half of the longest one, so that clients that
    /// failed together do not come back together.
    #[must_use]
    pub fn wait(&self, failures: u32, part: f64) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        let longest = self.first.saturating_mul(doubled).min(self.most);
        longest.mul_f64(0.5 + 0.5 * part.clamp(0.0, 1.0))
    }
}

/// The attempts of one request.
#[derive(Clone, Debug)]
pub struct Attempts {
    policy: RetryPolicy,
    failures: u32,
    end: Instant,
}

impl Attempts {
    /// Attempts that begin now.
    #[must_use]
    pub fn new(policy: RetryPolicy) -> Self {
        Self { policy, failures: 0, end: Instant::now() + policy.within }
    }

    /// The wait before the next attempt after one that failed; `None` where there is no other one. A store's own wish is
    /// kept to, and ends the attempts where it leads beyond their time.
    pub fn after_failure(&mut self, wish: Option<Duration>) -> Option<Duration> {
        self.failures += 1;
        let wait = self.policy.wait(self.failures, rand::rng().random());
        let wait = wish.map_or(wait, |wish| wait.max(wish));
        let is_last = self.failures >= self.policy.attempts || Instant::now().checked_add(wait)? > self.end;
        (!is_last).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        attempts: 4,
        within: Duration::from_secs(10),
        first: Duration::from_secs(1),
        most: Duration::from_secs(3),
    };

    #[test]
    fn waits_double_up_to_the_longest_and_are_spread_over_their_upper_half() {
        let longest = [1, 2, 3].map(|failures| POLICY.wait(failures, 1.0).as_secs());
        assert_eq!(longest, [1, 2, 3]);
        assert_eq!(POLICY.wait(2, 0.0), Duration::from_secs(1));
        assert_eq!(POLICY.wait(u32::MAX, 1.0), Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_end_by_number_by_time_and_by_a_wish_that_leads_beyond_it() {
        let mut attempts = Attempts::new(POLICY);
        assert!((0..3).all(|_| attempts.after_failure(None).is_some()));
        assert_eq!(attempts.after_failure(None), None);

        let mut attempts = Attempts::new(POLICY);
        assert_eq!(attempts.after_failure(Some(Duration::from_secs(9))), Some(Duration::from_secs(9)));
        assert_eq!(attempts.after_failure(Some(Duration::from_secs(11))), None);
        assert_eq!(attempts.after_failure(Some(Duration::MAX)), None);

        let mut attempts = Attempts::new(POLICY);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(attempts.after_failure(None), None);
    }
}
