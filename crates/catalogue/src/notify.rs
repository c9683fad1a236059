//! Notifications that there may be something to do: an event, a task.
//!
//! Within a process every change that others wait for is notified. On PostgreSQL the other processes hear it by
//! `NOTIFY`, at most once a second from each process: who is notified looks at once, and again when that second is
//! over, since what came in it was not announced. On SQLite they look at the size and the time of the write-ahead log.
//! It is only a help: who waits looks again after some time in any case.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// How often a process announces something at most.
pub(crate) const ANNOUNCE: Duration = Duration::from_secs(1);

/// What notifies all clones of a catalogue.
pub(crate) struct Notifier {
    notified: watch::Sender<u64>,
    announced: std::sync::Mutex<Option<Instant>>,
}

impl Notifier {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { notified: watch::Sender::new(0), announced: std::sync::Mutex::default() })
    }

    /// The notifications from now on, of this process.
    pub(crate) fn notifications(&self) -> Notifications {
        Notifications(self.notified.subscribe())
    }

    pub(crate) fn notify(&self) {
        self.notified.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Whether the other processes are to be notified now.
    pub(crate) fn may_announce(&self) -> bool {
        let Ok(mut announced) = self.announced.lock() else { return false };
        let is_due = announced.is_none_or(|last| last.elapsed() >= ANNOUNCE);
        if is_due {
            *announced = Some(Instant::now());
        }
        is_due
    }
}

/// Receives each time that there may be something to do.
pub struct Notifications(watch::Receiver<u64>);

impl Notifications {
    /// Waits until something was notified since the last time.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
