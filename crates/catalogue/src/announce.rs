//! How a catalogue notifies those who wait in its process, and announces to other processes that there is work.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use sqlx::postgres::PgListener;
use tokio::time::sleep;

use crate::catalogue::Catalogue;
use crate::database::value::values;
use crate::notify::{ANNOUNCE, Notifications};

/// The channel of `NOTIFY`.
const CHANNEL: &str = "queuekeeper";

/// How often the write-ahead log is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// How long to wait before the server is connected to again.
const CONNECT_AGAIN: Duration = Duration::from_secs(10);

impl Catalogue {
    /// The notifications from now on, of this process; those of other processes by [`Self::listen`].
    #[must_use]
    pub fn notifications(&self) -> Notifications {
        self.notifier.notifications()
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
