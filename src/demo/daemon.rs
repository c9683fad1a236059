//! What all simulated daemons have in common: a session of their own, and another when it is lost.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::world::World;
use queuekeeper_queue::{Error, Queue};

/// The pause after a session was lost or could not be had.
const RECONNECT: Duration = Duration::from_millis(500);

/// A program that works on the queue.
pub(super) trait Daemon: Send + 'static {
    /// What it is called in the log.
    fn name(&self) -> &'static str;

    /// Works in one session, until something goes wrong that a new session may repair.
    ///
    /// # Errors
    /// With what went wrong. All its work is given up then: the locks of it end with the session.
    fn work(&mut self, queue: Queue) -> impl Future<Output = Result<Infallible, Error>> + Send;
}

/// How long the end of the last session is waited for.
const CLOSE_LIMIT: Duration = Duration::from_millis(500);

/// Keeps a daemon at work until `shutdown`.
pub(super) async fn keep(mut daemon: impl Daemon, world: Arc<World>, shutdown: CancellationToken) {
    let mut session = None;
    let life = async {
        loop {
            match world.zookeeper.connect().await {
                Ok(client) => {
                    session = Some(client.state_watcher());
                    let Err(error) = daemon.work(Queue::new(client)).await;
                    // A lost connection is the mirror's to tell: a dozen daemons lose it together.
                    if is_lost(&error) {
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
    // The client library closes a session in the background, and would complain of a server that is gone before that.
    if let Some(mut session) = session {
        let closed = async { while !session.changed().await.is_terminated() {} };
        if tokio::time::timeout(CLOSE_LIMIT, closed).await.is_err() {
            tracing::debug!(daemon = daemon.name(), "a simulated daemon's session did not close in time");
        }
    }
}

/// Whether a daemon cannot go on in its session: it would not know which of its locks it still has, and could not
/// release them. Whatever the client library calls such a failure, it is one of reading or writing as such.
fn is_lost(error: &Error) -> bool {
    match error {
        Error::Read { .. } | Error::Commit { .. } | Error::Unknown { .. } => true,
        Error::Conflict(_)
        | Error::Missing(_)
        | Error::Decode { .. }
        | Error::Transition { .. }
        | Error::NotShown { .. }
        | Error::Invalid { .. } => false,
    }
}

/// Turns what others may cause by working on the same thing into nothing: what it was about is given up.
///
/// # Errors
/// Failures to read or write, which no daemon can go on after in the same session.
pub(super) fn unless_lost<T>(what: &'static str, outcome: Result<T, Error>) -> Result<Option<T>, Error> {
    match outcome {
        Ok(done) => Ok(Some(done)),
        Err(error) if is_lost(&error) => Err(error),
        Err(error) => {
            tracing::debug!(%error, "{what} was given up");
            Ok(None)
        }
    }
}
