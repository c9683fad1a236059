//! How often and after which waits a request is repeated that is safe to repeat.

use std::time::Duration;

use rand::RngExt as _;
use tokio::time::Instant;

/// The bounds of repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How many attempts there are at most, the first one included; at least 1.
    pub attempts: u32,
    /// How long the waits and the attempts after the first one may take together: when it has passed, no other attempt
    /// begins. The first attempt does not count, however slow it was, and neither does what passes between the end of a
    /// wait and the beginning of an attempt.
    pub within: Duration,
    /// The longest wait after the first failure; it doubles with each one.
    pub first: Duration,
    /// The longest wait at all, unless the store requests a longer one.
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
    /// The wait after some failures, where `part` is from 0 to 1: at least half of the longest one, so that clients
    /// that failed together do not come back together.
    #[must_use]
    pub fn wait(&self, failures: u32, part: f64) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        let longest = self.first.saturating_mul(doubled).min(self.most);
        let factor = 0.5 + 0.5 * part.clamp(0.0, 1.0);
        Duration::try_from_secs_f64(longest.as_secs_f64() * factor).unwrap_or(longest)
    }
}

/// The attempts of one request.
#[derive(Clone, Debug)]
pub struct Attempts {
    policy: RetryPolicy,
    failures: u32,
    /// What counts of the time so far.
    spent: Duration,
    began: Instant,
}

impl Attempts {
    /// Attempts of which the first one begins now.
    #[must_use]
    pub fn new(policy: RetryPolicy) -> Self {
        Self { policy, failures: 0, spent: Duration::ZERO, began: Instant::now() }
    }

    /// Begins an attempt: what has passed since the last wait, such as the time in a queue, does not count.
    pub fn begin(&mut self) {
        self.began = Instant::now();
    }

    /// How long the attempts that are left take at most, if each takes so long.
    #[must_use]
    pub fn left(&self, each: Duration) -> Duration {
        let failures = self.failures.max(1)..self.policy.attempts;
        let all = failures.fold(Duration::ZERO, |all, failures| {
            all.saturating_add(self.policy.wait(failures, 1.0)).saturating_add(each)
        });
        all.min(self.policy.within.saturating_sub(self.spent).saturating_add(each))
    }

    /// The wait before the next attempt after one that failed; `None` where there is no other one. A wait that the
    /// store requests is kept, and ends the attempts where it leads beyond their time.
    pub fn after_failure(&mut self, requested: Option<Duration>) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        if self.failures > 1 {
            self.spent = self.spent.saturating_add(self.began.elapsed());
        }
        let wait = self.policy.wait(self.failures, rand::rng().random());
        let wait = requested.map_or(wait, |requested| wait.max(requested));
        self.spent = self.spent.saturating_add(wait);
        let is_last = self.failures >= self.policy.attempts || self.spent > self.policy.within;
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
    async fn attempts_end_by_number_by_time_and_by_a_requested_wait_that_leads_beyond_it() {
        let mut attempts = Attempts::new(POLICY);
        assert!((0..3).all(|_| attempts.after_failure(None).is_some()));
        assert_eq!(attempts.after_failure(None), None);

        let mut attempts = Attempts::new(POLICY);
        assert_eq!(attempts.after_failure(Some(Duration::from_secs(9))), Some(Duration::from_secs(9)));
        assert_eq!(attempts.after_failure(Some(Duration::from_secs(2))), None);
        assert_eq!(Attempts::new(POLICY).after_failure(Some(Duration::MAX)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_first_attempt_is_followed_by_another_one_and_time_in_a_queue_does_not_count() {
        let mut attempts = Attempts::new(POLICY);
        tokio::time::advance(Duration::from_hours(1)).await;
        assert!(attempts.after_failure(None).is_some());
        tokio::time::advance(Duration::from_hours(1)).await;
        attempts.begin();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(attempts.after_failure(None).is_some());
        attempts.begin();
        tokio::time::advance(POLICY.within).await;
        assert_eq!(attempts.after_failure(None), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_is_bounded_by_the_attempts_and_by_their_time() {
        let mut attempts = Attempts::new(POLICY);
        assert_eq!(attempts.left(Duration::ZERO), Duration::from_secs(1 + 2 + 3));
        assert_eq!(attempts.left(Duration::from_secs(9)), POLICY.within + Duration::from_secs(9));
        while attempts.after_failure(None).is_some() {}
        assert_eq!(attempts.left(Duration::from_secs(9)), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn bounds_that_are_larger_than_any_clock_are_no_limits() {
        let most = Duration::MAX;
        let mut attempts = Attempts::new(RetryPolicy { attempts: u32::MAX, within: most, first: most, most });
        assert!(attempts.after_failure(None).is_some_and(|wait| wait >= most / 3));
        assert!(attempts.after_failure(Some(most)).is_some());
    }
}
