//! A rate limit for the calls of each token.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How many calls a token may send at once. Alertmanager sends one for each group of alerts.
const AT_ONCE: u32 = 200;

/// The interval at which one more call is allowed.
const ONE_EVERY: Duration = Duration::from_millis(500);

/// A token bucket for each caller; their number is limited by that of the tokens.
#[derive(Debug, Default)]
pub(super) struct CallLimiter(Mutex<HashMap<String, Bucket>>);

#[derive(Debug)]
struct Bucket {
    left: u32,
    /// When that was the number.
    at: Instant,
}

impl CallLimiter {
    /// Takes a call of that caller, unless there were too many.
    pub(super) fn take(&self, caller: &str, now: Instant) -> bool {
        let mut buckets = self.0.lock();
        let bucket = buckets.entry(caller.to_owned()).or_insert(Bucket { left: AT_ONCE, at: now });
        let more = now.saturating_duration_since(bucket.at).as_millis() / ONE_EVERY.as_millis();
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        bucket.left = bucket.left.saturating_add(more).min(AT_ONCE);
        bucket.at = if bucket.left == AT_ONCE { now } else { bucket.at + ONE_EVERY * more };
        let Some(left) = bucket.left.checked_sub(1) else { return false };
        bucket.left = left;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_may_send_a_burst_and_then_one_call_for_each_interval() {
        let (pace, began) = (CallLimiter::default(), Instant::now());
        let taken = |caller: &str, now| (0..1_000).filter(|_| pace.take(caller, now)).count();
        assert_eq!(taken("am1", began), AT_ONCE as usize);
        assert_eq!(taken("am2", began), AT_ONCE as usize, "another caller is not affected");
        for (step, expected) in (1..=100).zip([2, 3].into_iter().cycle()) {
            assert_eq!(taken("am1", began + Duration::from_millis(1_250) * step), expected);
        }
        assert_eq!(taken("am1", began + Duration::from_hours(10)), AT_ONCE as usize);
    }
}
