//! Whether the session that holds our locks may still be relied on.
//!
//! Once a server has not answered for the session's time-out, the locks may be another's. So nothing outside of
//! ZooKeeper is begun later than two thirds of that time after its last answer: what is begun then has a third of it to
//! be under way, and what is written is fenced by its own keys beyond that.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use queuekeeper_store::WriteGuard;
use tokio::time::Instant;
use zookeeper_client::Client;

/// The fence of one session; clones share it.
#[derive(Clone, Debug)]
pub struct Fence {
    answered: Arc<Mutex<Instant>>,
    limit: Duration,
    heartbeat: Duration,
}

impl Fence {
    /// The fence of a session with this time-out that was answered just now.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self { answered: Arc::new(Mutex::new(Instant::now())), limit: timeout * 2 / 3, heartbeat: timeout / 6 }
    }

    /// Returns when something outside of ZooKeeper may be begun: at once, while the server answers. It never returns
    /// where the session is over; its workers are cancelled.
    pub async fn pass(&self) {
        while self.answered.lock().elapsed() > self.limit {
            tokio::time::sleep(self.heartbeat / 4).await;
        }
    }

    /// Keeps asking the server, until it is dropped.
    pub async fn keep(&self, client: &Client) {
        loop {
            // An answer proves the session as of when it was asked for.
            let asked = Instant::now();
            if client.check_stat("/").await.is_ok() {
                *self.answered.lock() = asked;
            }
            tokio::time::sleep_until(asked + self.heartbeat).await;
        }
    }
}

/// Of a store to which nothing is written while the session may be over.
impl WriteGuard for Fence {
    fn pass(&self) -> BoxFuture<'_, Result<(), String>> {
        Self::pass(self).map(Ok).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nothing_is_begun_when_the_server_has_not_answered_for_two_thirds_of_the_timeout() {
        let fence = Fence::new(Duration::from_secs(9));
        fence.pass().await;
        tokio::time::advance(Duration::from_millis(6_001)).await;
        let waited = tokio::time::timeout(Duration::from_mins(1), fence.pass()).await;
        assert!(waited.is_err());
        *fence.answered.lock() = Instant::now();
        fence.pass().await;
    }
}
