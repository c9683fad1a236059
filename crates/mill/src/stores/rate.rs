//! So much a second.

use std::num::NonZeroU64;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::worker::Lease;

/// How often a wait is reported as progress, at least.
const SIGN: Duration = Duration::from_secs(10);

/// The longest time that one take costs, in seconds.
const LONGEST: f64 = 86_400.0;

/// So much a second for all callers together: what is taken is paid for by those who take after it. What was not taken
/// is not saved up.
#[derive(Debug)]
pub(super) struct Rate {
    a_second: f64,
    /// When all is paid for that was taken so far.
    paid: Mutex<Option<Instant>>,
}

impl Rate {
    pub(super) fn new(a_second: NonZeroU64) -> Self {
        Self { a_second: a_second.get() as f64, paid: Mutex::new(None) }
    }

    /// Waits until what was taken before is paid for, and takes so much.
    pub(super) async fn take(&self, amount: u64, lease: &Lease) {
        let at = self.promise(amount, Instant::now());
        loop {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            sleep(left.min(SIGN)).await;
            lease.progressed();
        }
    }

    /// When so much may be taken that is requested now.
    fn promise(&self, amount: u64, now: Instant) -> Instant {
        let mut paid = self.paid.lock();
        let at = paid.map_or(now, |paid| paid.max(now));
        *paid = Some(at + Duration::from_secs_f64((amount as f64 / self.a_second).min(LONGEST)));
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_in_all_so_much_a_second_and_nothing_is_saved_up() {
        let rate = Rate::new(NonZeroU64::new(100).unwrap());
        let began = Instant::now();
        let after = |now: Instant, amount| rate.promise(amount, now).duration_since(began).as_millis();
        // Callers at the same time are promised half a second each.
        assert_eq!([0; 4].map(|_| after(began, 50)), [0, 500, 1000, 1500]);
        let later = began + Duration::from_hours(1);
        assert_eq!([0; 3].map(|_| after(later, 1)), [3_600_000, 3_600_010, 3_600_020]);
        // Where it is late, it does not wait for what would have been.
        assert_eq!(after(later + Duration::from_secs(1), u64::MAX), 3_601_000);
        assert_eq!(after(later, 1), 3_601_000 + 86_400_000);
    }
}
