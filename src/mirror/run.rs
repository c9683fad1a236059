//! The mirror's task: from one session to the next.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::follow::{Closed, Follower};
use super::metrics::{Metrics, ReadCause};
use super::read::Estimates;
use super::store::{MirrorStore, Writer};
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
    let mut sessions = sessions.without_ephemerals().despite_missing_chroot();
    let report = report(writer.store(), sessions.subscribe());
    let servers = sessions.config().servers.clone();
    let nodes = writer.store().nodes();
    let mut follower = Follower {
        writer,
        metrics,
        drift_interval,
        servers,
        unknown_states: Vec::new(),
        estimates: Estimates::default(),
        looked: None,
        closed: Closed::default(),
    };
    let follow = async {
        let mut cause = ReadCause::Start;
        loop {
            let client = sessions.establish().await?;
            let _lent = nodes.lend(&client);
            let end = tokio::select! {
                end = sessions.follow(&client) => Some(end),
                () = Box::pin(follower.session(&client, cause)) => None,
            };
            cause = if end == Some(SessionEnd::Replaced) { ReadCause::Reconnect } else { ReadCause::Expired };
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        () = report => Ok(()),
        ended = follow => ended,
    }
}

/// Keeps the readers informed about the connection to ZooKeeper.
async fn report(store: MirrorStore, mut connections: watch::Receiver<Connection>) {
    loop {
        let connection = connections.borrow_and_update().clone();
        let session = match &connection {
            Connection::Connected { session, .. } => Some(session.to_string()),
            Connection::Connecting { .. } | Connection::Disconnected { .. } | Connection::Ended { .. } => None,
        };
        store.set_connection(session, connection.problem(), Timestamp::now());
        if connections.changed().await.is_err() {
            return;
        }
    }
}
