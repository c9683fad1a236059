//! Common to all made-up people: each has a session, which is replaced when it is lost.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::world::World;
use queuekeeper_queue::{Error, Queue};

/// The pause after a session was lost or could not be established.
const RECONNECT: Duration = Duration::from_millis(500);

/// A user who does something with the queue, or a program that is not ours.
pub(super) trait Person: Send + 'static {
    /// The name in the log.
    fn name(&self) -> &'static str;

    /// Works in one session, until an error that a new session may fix.
    ///
    /// # Errors
    /// The error. All work in progress is abandoned: its locks end with the session.
    fn work(&mut self, queue: Queue) -> impl Future<Output = Result<Infallible, Error>> + Send;
}

/// How long to wait for the last session to close.
const CLOSE_LIMIT: Duration = Duration::from_millis(500);

/// Lets one of them work until `shutdown`, with a new session after each error.
pub(super) async fn keep(mut person: impl Person, world: Arc<World>, shutdown: CancellationToken) {
    let mut session = None;
    let life = async {
        loop {
            match world.zookeeper.connect().await {
                Ok(client) => {
                    session = Some(client.state_watcher());
                    let Err(error) = person.work(Queue::new(client)).await;
                    // A lost connection is logged by the mirror; several people lose it at the same time.
                    if is_lost(&error) {
                        tracing::debug!(person = person.name(), %error, "lost a session of the demo");
                    } else {
                        tracing::warn!(person = person.name(), %error, "began a new session of the demo");
                    }
                }
                Err(error) => tracing::debug!(person = person.name(), %error, "no session of the demo"),
            }
            tokio::time::sleep(RECONNECT).await;
        }
    };
    shutdown.run_until_cancelled(life).await;
    // The client library closes a session in the background, and logs an error if the server is stopped before that.
    if let Some(mut session) = session {
        let closed = async { while !session.changed().await.is_terminated() {} };
        if tokio::time::timeout(CLOSE_LIMIT, closed).await.is_err() {
            tracing::debug!(person = person.name(), "a session of the demo did not close in time");
        }
    }
}

/// Whether work cannot continue in its session. The client library reports such failures as read or write errors.
fn is_lost(error: &Error) -> bool {
    match error {
        Error::Read { .. } | Error::Commit { .. } | Error::Unknown { .. } => true,
        Error::Conflict(_)
        | Error::Missing(_)
        | Error::Decode { .. }
        | Error::Transition { .. }
        | Error::Full { .. }
        | Error::NotShown { .. }
        | Error::Invalid { .. } => false,
    }
}

/// Turns errors that concurrent changes of the same item can cause into `None`: the work on it is abandoned.
///
/// # Errors
/// Read and write errors, after which the session cannot be used.
pub(super) fn unless_lost<T>(what: &'static str, outcome: Result<T, Error>) -> Result<Option<T>, Error> {
    match outcome {
        Ok(done) => Ok(Some(done)),
        Err(error) if is_lost(&error) => Err(error),
        Err(error) => {
            tracing::debug!(%error, "abandoned: {what}");
            Ok(None)
        }
    }
}
