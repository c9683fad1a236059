//! What all simulated daemons have in common: a session of their own, and another when it is lost.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::world::World;
use crate::queue::{Error, Queue};

/// The pause after a session was lost or could not be had.
const RECONNECT: Duration = Duration::from_millis(500);

/// A program that works on the queue.
pub(super) trait Daemon: Send + 'static {
    /// What it is called in the log.
    fn name(&self) -> &'static str;

    /// Works in one session, until something goes wrong that a new session may mend.
    ///
    /// # Errors
    /// With what went wrong. All its work is given up then: the locks of it end with the session.
    fn work(&mut self, queue: Queue) -> impl Future<Output = Result<Infallible, Error>> + Send;
}

/// Keeps a daemon at work until `shutdown`.
pub(super) async fn keep(mut daemon: impl Daemon, world: Arc<World>, shutdown: CancellationToken) {
    let life = async {
        loop {
            match world.zookeeper.connect().await {
                Ok(client) => {
                    let Err(error) = daemon.work(Queue::new(client)).await;
                    // A lost connection is the mirror's to tell: a dozen daemons lose it together.
                    if error.is_connection() {
                        tracing::debug!(daemon = daemon.name(), %error, "a simulated daemon lost its session");
                    } else {
                        tracing::warn!(daemon = daemon.name(), %error, "a simulated daemon begins anew");
                    }
                }
                Err(error) => tracing::debug!(daemon = daemon.name(), %error, "a simulated daemon has no session"),
            }
            tokio::time::sleep(RECONNECT).await;
        }
    };
    shutdown.run_until_cancelled(life).await;
}

/// Turns what others may cause by working on the same thing into nothing: what it was about is given up.
///
/// # Errors
/// Failures of the connection, which no daemon can go on after.
pub(super) fn unless_lost<T>(what: &'static str, outcome: Result<T, Error>) -> Result<Option<T>, Error> {
    match outcome {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.is_connection() => Err(error),
        Err(error) => {
            tracing::debug!(%error, "{what} was given up");
            Ok(None)
        }
    }
}
