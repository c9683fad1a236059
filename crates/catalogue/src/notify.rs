//! Notifications that there may be something to do: an event, a task.
//!
//! Within a process every change that others wait for is notified. On PostgreSQL the other processes hear it by `NOTIFY`, at most
//! once a second from each process: who is notified looks at once, and again when that second is over, since what came in it was not
//! announced. On SQLite they look at the size and the time of the write-ahead log. It is only a help: who waits looks again after
//! some time in any case.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use sqlx::postgres::PgListener;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::catalogue::Catalogue;
use crate::database::value::values;

/// The channel of `NOTIFY`.
const CHANNEL: &str = "queuekeeper";

/// How often a process announces something at most.
const ANNOUNCE: Duration = Duration::from_secs(1);

/// How often the write-ahead log is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// How long to wait before the server is connected to again.
const CONNECT_AGAIN: Duration = Duration::from_secs(10);

/// What notifies all clones of a catalogue.
pub(crate) struct Notifier {
    notified: watch::Sender<u64>,
    announced: std::sync::Mutex<Option<Instant>>,
}

impl Notifier {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { notified: watch::Sender::new(0), announced: std::sync::Mutex::default() })
    }

    fn notify(&self) {
        self.notified.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Whether the other processes are to be notified now.
    fn may_announce(&self) -> bool {
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

impl Catalogue {
    /// The notifications from now on, of this process; those of other processes by [`Self::listen`].
    #[must_use]
    pub fn notifications(&self) -> Notifications {
        Notifications(self.notifier.notified.subscribe())
    }

    /// Says that there may be something to do, after a transaction that made it so.
    pub(crate) async fn notify(&self) {
        self.notifier.notify();
        if self.database.postgres().is_none() || !self.notifier.may_announce() {
            return;
        }
        // Those who wait look again in any case.
        if let Ok(mut session) = self.database.read().await {
            let _unheard = session.row("SELECT pg_notify($1, '')", values![CHANNEL]).await;
        }
    }

    /// Passes on what other processes notify, until it is dropped.
    pub async fn listen(&self) {
        match (self.database.postgres(), self.database.file()) {
            (Some(pool), _) => loop {
                if let Ok(mut listener) = PgListener::connect_with(pool).await
                    && listener.listen(CHANNEL).await.is_ok()
                {
                    self.hear(&mut listener).await;
                }
                sleep(CONNECT_AGAIN).await;
                // What was announced meanwhile was not heard.
                self.notifier.notify();
            },
            (None, Some(file)) => {
                let mut log = file.get_filename().as_os_str().to_owned();
                log.push("-wal");
                self.watch(log.into()).await;
            }
            (None, None) => {}
        }
    }

    /// Until the connection cannot be made again.
    async fn hear(&self, listener: &mut PgListener) {
        // `None` where the connection was lost: it is made anew, and what was announced meanwhile was not heard.
        while listener.try_recv().await.is_ok() {
            self.notifier.notify();
            sleep(ANNOUNCE).await;
            while listener.next_buffered().is_some() {}
            self.notifier.notify();
        }
    }

    async fn watch(&self, log: PathBuf) {
        let state = async || {
            let metadata = tokio::fs::metadata(&log).await.ok()?;
            Some((metadata.len(), metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH)))
        };
        let mut known = state().await;
        loop {
            sleep(LOOK).await;
            let now = state().await;
            if now != known {
                known = now;
                self.notifier.notify();
            }
        }
    }
}
