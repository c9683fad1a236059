//! What blocks its thread: the disk.
//!
//! Such work goes on where the task that waits for it is cancelled. What it leaves then is looked for once it has
//! ended.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::step::StepError;

/// The work of this process that is under way, by the numbers in which it began.
static RUNNING: LazyLock<watch::Sender<BTreeSet<u64>>> = LazyLock::new(watch::Sender::default);

/// Work under way, until it is dropped.
struct Running(u64);

impl Running {
    fn begin() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        RUNNING.send_if_modified(|running| {
            running.insert(number);
            false
        });
        Self(number)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.send_modify(|running| {
            running.remove(&self.0);
        });
    }
}

/// Does what blocks on the disk.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StepError> {
    let running = Running::begin();
    let work = move || {
        let _running = running;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(StepError::temporary)
}

/// Waits until all such work has ended that is under way now: for ever, where a volume does not answer.
pub(crate) async fn all_ended() {
    let mut running = RUNNING.subscribe();
    let now = running.borrow().clone();
    let ended = running.wait_for(|running| running.is_disjoint(&now)).await;
    ended.map(drop).expect("the sender is never dropped");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_whose_task_was_cancelled_is_waited_for() {
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let (started, mut has_started) = tokio::sync::mpsc::channel(1);
        let work = tokio::spawn(blocking(move || {
            started.blocking_send(()).unwrap();
            wait.recv().unwrap();
        }));
        has_started.recv().await.unwrap();
        work.abort();
        assert!(work.await.unwrap_err().is_cancelled());
        let mut ended = std::pin::pin!(all_ended());
        assert!(futures::poll!(&mut ended).is_pending());
        go_on.send(()).unwrap();
        ended.await;
    }
}
