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

/// So much a second, whoever takes it: what is taken is paid for by those who take after it. What was not taken is not saved up.
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
        let at = self.promise(amount);
        loop {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            sleep(left.min(SIGN)).await;
            lease.progressed();
        }
    }

    fn promise(&self, amount: u64) -> Instant {
        let now = Instant::now();
        let mut paid = self.paid.lock();
        let at = paid.map_or(now, |paid| paid.max(now));
        *paid = Some(at + Duration::from_secs_f64((amount as f64 / self.a_second).min(LONGEST)));
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_taken_by_several_is_in_all_so_much_a_second_and_nothing_is_saved_up() {
        let (rate, lease) = (Rate::new(NonZeroU64::new(100).unwrap()), Lease::unlimited());
        let began = Instant::now();
        let take = async || {
            for _ in 0..5 {
                rate.take(50, &lease).await;
            }
        };
        tokio::join!(take(), take());
        // The last of ten halves of a second begins after nine.
        assert_eq!(began.elapsed().as_millis().div_ceil(10), 450);
        tokio::time::advance(Duration::from_hours(1)).await;
        let began = Instant::now();
        rate.take(1, &lease).await;
        assert!(began.elapsed().is_zero());
        rate.take(1, &lease).await;
        assert!(began.elapsed() >= Duration::from_millis(10));
    }
}
