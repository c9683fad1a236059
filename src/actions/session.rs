//! The connection that orders are carried out over: one of its own, so that no large answer holds them up.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use zookeeper_client::Acl;

use super::refusal::Refusal;
use crate::queue::Queue;
use crate::zookeeper::{ConnectError, Sessions};

/// Where orders find the queue.
#[derive(Clone, Debug)]
pub(super) struct Connected(watch::Receiver<Option<Queue>>);

/// Keeps the connection; awaited by whoever made it.
#[derive(Debug)]
pub struct Connection {
    queue: watch::Sender<Option<Queue>>,
    acl: Option<Arc<[Acl]>>,
}

impl Connection {
    /// A connection whose new znodes have an ACL; `None` for the open one.
    pub(super) fn new(acl: Option<Arc<[Acl]>>) -> (Self, Connected) {
        let (sender, receiver) = watch::channel(None);
        (Self { queue: sender, acl }, Connected(receiver))
    }

    /// Connects, and connects anew when a session is over, until `shutdown`.
    ///
    /// # Errors
    /// As [`Sessions::establish`].
    pub async fn run(self, mut sessions: Sessions, shutdown: CancellationToken) -> Result<(), ConnectError> {
        let keep = async {
            loop {
                let client = sessions.establish().await?;
                let queue = Queue::new(client.clone());
                let queue = match &self.acl {
                    Some(acl) => queue.with_acl(Arc::clone(acl)),
                    None => queue,
                };
                self.queue.send_replace(Some(queue));
                sessions.follow(&client).await;
                self.queue.send_replace(None);
            }
        };
        shutdown.run_until_cancelled(keep).await.unwrap_or(Ok(()))
    }
}

impl Connected {
    /// One that is connected for good: whoever made the queue watches its session himself.
    pub(super) fn to(queue: Queue) -> Self {
        Self(watch::channel(Some(queue)).1)
    }

    pub(super) fn queue(&self) -> Result<Queue, Refusal> {
        let none = || Refusal::Unavailable("ZooKeeper is not connected, and nothing was done; try again".to_owned());
        self.0.borrow().clone().ok_or_else(none)
    }
}
