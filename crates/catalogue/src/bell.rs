//! What says that there may be something to do: an event, a task.
//!
//! Within a process every change that others wait for rings. On PostgreSQL the other processes hear it by `NOTIFY`, at most once a
//! second from each process: who is notified looks at once, and again when that second is over, since what came in it was not
//! announced. On SQLite they look at the size and the time of the write-ahead log. It is only a help: who waits looks again after
//! some time in any case.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// How often a process announces something at most.
pub(crate) const ANNOUNCE: Duration = Duration::from_secs(1);

/// What all clones of a catalogue ring.
pub(crate) struct Bell {
    rung: watch::Sender<u64>,
    announced: std::sync::Mutex<Option<Instant>>,
}

impl Bell {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { rung: watch::Sender::new(0), announced: std::sync::Mutex::default() })
    }

    /// What hears it from now on, in this process.
    pub(crate) fn rings(&self) -> Rings {
        Rings(self.rung.subscribe())
    }

    pub(crate) fn ring(&self) {
        self.rung.send_modify(|count| *count = count.wrapping_add(1));
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

/// Hears each time that there may be something to do.
pub struct Rings(watch::Receiver<u64>);

impl Rings {
    /// Waits until it has rung since the last time.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
