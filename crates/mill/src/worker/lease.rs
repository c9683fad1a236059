//! The lease of a task that is being processed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::tasks::TakenTask;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// For how long a task is a worker's, from its last sign of progress.
    pub lease: Duration,
    /// After how long without progress a worker gives up.
    pub stall: Duration,
    /// How long before the end of its lease a worker ends its own requests: longer than one that was sent may take to
    /// have its effect.
    pub margin: Duration,
    /// The first wait after all queues were empty; it doubles to the longest one.
    pub shortest_wait: Duration,
    /// The longest wait while all queues are empty.
    pub longest_wait: Duration,
    /// How long tasks may take to end once the worker is to stop.
    pub grace: Duration,
}

impl Default for Times {
    /// A lease of five minutes, two without progress, one as the margin; waits of one to eight minutes; 30 s to stop.
    fn default() -> Self {
        Self {
            lease: Duration::from_mins(5),
            stall: Duration::from_mins(2),
            margin: Duration::from_mins(1),
            shortest_wait: Duration::from_mins(1),
            longest_wait: Duration::from_mins(8),
            grace: Duration::from_secs(30),
        }
    }
}

/// What a processor has of its lease. Clones are of the same one.
#[derive(Clone, Debug)]
pub struct Lease {
    progress: Arc<AtomicU64>,
    ended: CancellationToken,
}

impl Lease {
    /// A lease without an end.
    #[must_use]
    pub fn unlimited() -> Self {
        Self { progress: Arc::default(), ended: CancellationToken::new() }
    }

    /// Says that the work goes on: bytes came, a page was listed. Without it, the work is ended after the time for a
    /// stall.
    pub fn progressed(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Cancelled when the task may not be worked on any longer; what was begun must have no effect afterwards.
    #[must_use]
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Extends the lease while there is progress. It ends, and the answer is why, when there was none for too long, or
    /// when the task is not ours any more. Until then, what goes on is ended in time before the lease does.
    pub(super) async fn keep(
        &self,
        catalogue: &Catalogue,
        task: &TakenTask,
        times: Times,
        taken: Instant,
    ) -> &'static str {
        let _ended = self.ended.clone().drop_guard();
        let mut seen = (self.progress.load(Ordering::Relaxed), taken);
        let mut until = taken + times.lease.saturating_sub(times.margin);
        let every = times.lease / 5;
        let mut look = taken + every;
        loop {
            sleep_until(look.min(until)).await;
            let now = Instant::now();
            let progress = self.progress.load(Ordering::Relaxed);
            if progress != seen.0 {
                seen = (progress, now);
            } else if now.duration_since(seen.1) >= times.stall {
                return "there was no progress for too long";
            }
            // The lease begins before the request is sent, at the latest.
            match catalogue.extend_task(task, times.lease).await {
                Ok(true) => until = now + times.lease.saturating_sub(times.margin),
                Ok(false) => return "another worker has it, because its lease had ended",
                // It is tried again at the next look, while there is time.
                Err(_) if Instant::now() < until => {}
                Err(_) => return "its lease could not be extended",
            }
            look = now + every;
        }
    }
}
