//! How many workers a daemon has. Where it is given two bounds, it gets more while jobs wait for one, and fewer while
//! some are idle. The bounds may be changed while it runs.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The workers of a daemon in a session, a permit for each.
#[derive(Debug)]
pub(super) struct Workers {
    permits: Arc<Semaphore>,
    bounds: Mutex<RangeInclusive<usize>>,
    number: AtomicUsize,
    /// Whether a job has waited for one since the number was looked at last.
    is_awaited: AtomicBool,
}

impl Workers {
    /// As many as the lower bound says.
    pub(super) fn new(bounds: RangeInclusive<usize>) -> Self {
        let number = *bounds.start();
        let (permits, number) = (Arc::new(Semaphore::new(number)), AtomicUsize::new(number));
        Self { permits, bounds: Mutex::new(bounds), number, is_awaited: AtomicBool::new(false) }
    }

    /// How many there are.
    pub(super) fn number(&self) -> usize {
        self.number.load(Ordering::Relaxed)
    }

    /// The permits.
    pub(super) fn permits(&self) -> Arc<Semaphore> {
        Arc::clone(&self.permits)
    }

    /// One for a job that waits, as soon as it is free.
    pub(super) async fn of_waiting(&self) -> Option<OwnedSemaphorePermit> {
        if self.permits.available_permits() == 0 {
            self.is_awaited.store(true, Ordering::Relaxed);
        }
        self.permits().acquire_owned().await.ok()
    }

    /// Sets other bounds, and the number where it is not within them; the answer is whether they are others, and how
    /// many workers are to go when they have ended their work.
    pub(super) fn set_bounds(&self, bounds: &RangeInclusive<usize>) -> Option<usize> {
        let before = std::mem::replace(&mut *self.bounds.lock(), bounds.clone());
        if before == *bounds {
            return None;
        }
        let number = self.number.load(Ordering::Relaxed);
        let wanted = number.clamp(*bounds.start(), *bounds.end());
        self.permits.add_permits(wanted.saturating_sub(number));
        let fewer = number.saturating_sub(wanted);
        let busy = fewer - self.permits.forget_permits(fewer);
        self.number.store(wanted, Ordering::Relaxed);
        Some(busy)
    }

    /// Sets the number anew by what was seen since the last call; the answer is the number where that has changed.
    pub(super) fn adjust(&self) -> Option<usize> {
        let number = self.number.load(Ordering::Relaxed);
        let is_awaited = self.is_awaited.swap(false, Ordering::Relaxed);
        let wanted = wanted(number, &self.bounds.lock(), is_awaited, self.permits.available_permits());
        let next = if wanted > number {
            self.permits.add_permits(wanted - number);
            wanted
        } else {
            // One that was taken meanwhile stays.
            number - self.permits.forget_permits(number - wanted)
        };
        self.number.store(next, Ordering::Relaxed);
        (next != number).then_some(next)
    }
}

/// How many there are to be: half more where a job has waited, one less where some are idle.
fn wanted(number: usize, bounds: &RangeInclusive<usize>, is_awaited: bool, idle: usize) -> usize {
    let wanted = if is_awaited { number + number.div_ceil(2) } else { number - idle.min(1) };
    wanted.clamp(*bounds.start(), *bounds.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_follows_the_load_between_its_bounds() {
        let grown: Vec<_> =
            std::iter::successors(Some(1), |number| Some(wanted(*number, &(1..=8), true, 0))).take(6).collect();
        assert_eq!(grown, [1, 2, 3, 5, 8, 8]);
        assert_eq!(wanted(8, &(2..=8), false, 0), 8, "all are at work");
        assert_eq!(wanted(8, &(2..=8), false, 5), 7);
        assert_eq!(wanted(2, &(2..=8), false, 2), 2);
        assert_eq!(wanted(4, &(4..=4), true, 0), 4, "a fixed number stays");
    }

    #[tokio::test]
    async fn a_job_that_waits_gets_the_worker_that_comes() {
        let workers = Workers::new(1..=2);
        let first = workers.of_waiting().await.unwrap();
        assert_eq!(workers.adjust(), None, "no job has waited");
        let (second, number) = tokio::join!(workers.of_waiting(), async {
            tokio::task::yield_now().await;
            workers.adjust()
        });
        assert_eq!(number, Some(2));
        assert_eq!(workers.adjust(), None, "both are at work");
        drop((first, second));
        assert_eq!((workers.adjust(), workers.adjust()), (Some(1), None));
        assert_eq!(workers.permits().available_permits(), 1);
    }

    #[tokio::test]
    async fn bounds_that_are_changed_hold_at_once_and_work_under_way_goes_on() {
        let workers = Workers::new(2..=2);
        let _busy = [workers.of_waiting().await.unwrap(), workers.of_waiting().await.unwrap()];
        assert_eq!(workers.set_bounds(&(2..=2)), None, "they are the same");
        assert_eq!((workers.set_bounds(&(3..=5)), workers.permits().available_permits()), (Some(0), 1));
        // One that is idle is gone, and one at work is to go.
        assert_eq!((workers.set_bounds(&(1..=1)), workers.permits().available_permits()), (Some(1), 0));
        assert_eq!(workers.adjust(), None, "it is within its bounds");
    }
}
