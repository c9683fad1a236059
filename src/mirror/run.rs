//! The mirror's task: from one session to the next.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::follow::{Closed, Follower};
use super::metrics::{Cause, Metrics};
use super::read::Estimates;
use super::store::{Store, Writer};
use queuekeeper_zookeeper::{ConnectError, Connection, SessionEnd, Sessions};

/// Mirrors the tree until `shutdown`.
///
/// `drift_interval` says how often the image is compared with the tree; `None` for never.
///
/// # Errors
/// When the very first connection fails in a way that trying again will not repair, such as a certificate file that
/// cannot be read. After that it never ends by itself.
pub async fn run(
    sessions: Sessions,
    writer: Writer,
    metrics: Metrics,
    drift_interval: Option<Duration>,
    shutdown: CancellationToken,
) -> Result<(), ConnectError> {
    let mut sessions = sessions.without_ephemerals();
    let report = report(writer.store(), sessions.subscribe());
    let chroot = sessions.config().servers.chroot().unwrap_or("/").to_owned();
    let nodes = writer.store().nodes();
    let mut follower = Follower {
        writer,
        metrics,
        drift_interval,
        chroot,
        unknown_states: Vec::new(),
        estimates: Estimates::default(),
        looked: None,
        closed: Closed::default(),
    };
    let follow = async {
        let mut cause = Cause::Start;
        loop {
            let client = sessions.establish().await?;
            let _lent = nodes.lend(&client);
            let end = tokio::select! {
                end = sessions.follow(&client) => Some(end),
                () = Box::pin(follower.session(&client, cause)) => None,
            };
            cause = if end == Some(SessionEnd::Replaced) { Cause::Reconnect } else { Cause::Expired };
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        () = report => Ok(()),
        ended = follow => ended,
    }
}

/// Keeps telling the readers how we stand with ZooKeeper.
async fn report(store: Store, mut connection: watch::Receiver<Connection>) {
    loop {
        let (session, problem) = match &*connection.borrow_and_update() {
            Connection::Connected { session, .. } => (Some(session.to_string()), None),
            Connection::Connecting { last_error: Some(error), .. } => (None, Some(error.to_string())),
            Connection::Connecting { last_error: None, .. } => (None, Some("connecting to ZooKeeper".to_owned())),
            Connection::Disconnected { .. } => (None, Some("the connection to ZooKeeper is lost".to_owned())),
            Connection::Ended { .. } => (None, Some("the session with ZooKeeper has ended".to_owned())),
        };
        store.set_connection(session, problem, Timestamp::now());
        if connection.changed().await.is_err() {
            return;
        }
    }
}
