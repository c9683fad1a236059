//! How many workers a daemon has. Where `--workers` gives it two bounds, it gets more while jobs wait for one, and fewer
//! while some are idle.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::info;

use super::session::Session;
use crate::daemon::Daemon;

/// The workers of a daemon in a session, a permit for each.
#[derive(Debug)]
pub(super) struct Workers {
    permits: Arc<Semaphore>,
    bounds: RangeInclusive<usize>,
    number: AtomicUsize,
    /// Whether a job has waited for one since the number was looked at last.
    is_awaited: AtomicBool,
}

impl Workers {
    /// As many as the lower bound says.
    pub(super) fn new(bounds: RangeInclusive<usize>) -> Self {
        let number = *bounds.start();
        let (permits, number) = (Arc::new(Semaphore::new(number)), AtomicUsize::new(number));
        Self { permits, bounds, number, is_awaited: AtomicBool::new(false) }
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

    /// Sets the number anew by what was seen since the last call; the answer is the number where that has changed.
    fn adjust(&self) -> Option<usize> {
        let number = self.number.load(Ordering::Relaxed);
        let is_awaited = self.is_awaited.swap(false, Ordering::Relaxed);
        let wanted = wanted(number, &self.bounds, is_awaited, self.permits.available_permits());
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

/// Counts the workers that there are in the beginning, where their numbers follow the load.
pub(super) fn count(session: &Session) {
    let services = &session.services;
    if services.settings.most_workers.is_empty() {
        return;
    }
    for (daemon, workers) in session.all_workers() {
        services.metrics.set_workers(daemon, workers.number.load(Ordering::Relaxed));
    }
}

/// Waits until the load has changed numbers of workers; the answer is how many there are now.
pub(super) async fn follow_load(session: &Session) -> Vec<(Daemon, usize)> {
    let services = &session.services;
    if services.settings.most_workers.is_empty() {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(services.settings.adjust_workers).await;
        let changed: Vec<(Daemon, usize)> =
            session.all_workers().filter_map(|(daemon, workers)| Some((daemon, workers.adjust()?))).collect();
        for (daemon, number) in &changed {
            info!(%daemon, workers = number, "the number of workers follows the load");
            services.metrics.set_workers(*daemon, *number);
        }
        if !changed.is_empty() {
            return changed;
        }
    }
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
}
