//! The ZooKeeper connection of actions, separate from the mirror's so that no large response delays them.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use zookeeper_client::SessionState;

use super::refusal::Refusal;
use queuekeeper_queue::Queue;
use queuekeeper_zookeeper::{ConnectError, Sessions, within};

/// How long a server may take to catch up with its leader.
const SYNC_LIMIT: Duration = Duration::from_secs(5);

/// The queue, while it is connected.
#[derive(Clone, Debug)]
pub(super) struct Connected(watch::Receiver<Option<Queue>>);

/// The connection.
#[derive(Debug)]
pub(super) struct Connection {
    queue: watch::Sender<Option<Queue>>,
}

impl Connection {
    pub(super) fn new() -> (Self, Connected) {
        let (sender, receiver) = watch::channel(None);
        (Self { queue: sender }, Connected(receiver))
    }

    /// Connects, and connects again when a session ends, until `shutdown`.
    ///
    /// # Errors
    /// As [`Sessions::establish`].
    pub(super) async fn run(self, sessions: Sessions, shutdown: CancellationToken) -> Result<(), ConnectError> {
        let mut sessions = sessions.without_ephemerals();
        let keep = async {
            loop {
                let client = sessions.establish().await?;
                // It may be another server than before, and would make a current precondition look outdated.
                if let Err(error) = within(SYNC_LIMIT, client.sync("/")).await {
                    tracing::warn!("the ZooKeeper server for actions does not catch up with its leader: {error}");
                }
                let queue = Queue::new(client.clone()).with_acl(sessions.config().acl.as_slice());
                self.queue.send_replace(Some(queue));
                sessions.follow(&client).await;
                self.queue.send_replace(None);
            }
        };
        shutdown.run_until_cancelled(keep).await.unwrap_or(Ok(()))
    }
}

impl Connected {
    /// A connection whose session the caller watches.
    pub(super) fn to(queue: Queue) -> Self {
        Self(watch::channel(Some(queue)).1)
    }

    /// The queue of the present session, which may just be connecting again.
    pub(super) fn queue(&self) -> Result<Queue, Refusal> {
        self.0.borrow().clone().ok_or_else(not_connected)
    }

    /// The same for who would rather be refused at once than wait for a connection.
    pub(super) fn queue_at_hand(&self) -> Result<Queue, Refusal> {
        let queue = self.queue()?;
        let is_connected = queue.client().state() == SessionState::SyncConnected;
        if is_connected { Ok(queue) } else { Err(not_connected()) }
    }
}

fn not_connected() -> Refusal {
    Refusal::Unavailable("ZooKeeper is not connected; nothing was done, try again".to_owned())
}
