//! The background part of actions.

use tokio_util::sync::CancellationToken;

use super::accept::Actions;
use super::audit::{Audit, AuditWriter};
use super::clock::Clock;
use super::metrics::Metrics;
use super::session::Connection;
use crate::mirror::MirrorStore;
use queuekeeper_queue::fault::Limits;
use queuekeeper_zookeeper::{ConnectError, Sessions};

/// The connection of actions and the writer of the audit trail. Awaited by its owner.
#[derive(Debug)]
pub struct ActionRunner {
    actions: Actions,
    connection: Connection,
    writer: AuditWriter,
}

impl Actions {
    /// Actions of a server: over a connection of its own, which the returned runner maintains, and with the mirror's
    /// knowledge of paths and states.
    #[must_use]
    pub fn new(
        store: MirrorStore,
        limits: Limits,
        (audit, writer): (Audit, AuditWriter),
        metrics: Metrics,
    ) -> (Self, ActionRunner) {
        let (connection, connected) = Connection::new();
        let actions = Self::with(connected, (Some(store), Clock::Mirror), limits, audit, metrics);
        (actions.clone(), ActionRunner { actions, connection, writer })
    }
}

impl ActionRunner {
    /// Runs until `shutdown`. Actions in progress are then finished and recorded.
    ///
    /// # Errors
    /// As [`Sessions::establish`].
    pub async fn run(self, sessions: Sessions, shutdown: CancellationToken) -> Result<(), ConnectError> {
        let end = CancellationToken::new();
        let ended = async {
            shutdown.cancelled().await;
            self.actions.end().await;
            end.cancel();
        };
        let connected = async {
            let connected = self.connection.run(sessions, end.clone()).await;
            // If the writer has ended already, there is nothing more to wait for.
            end.cancel();
            connected
        };
        let until = async {
            tokio::select! {
                () = ended => {}
                () = end.cancelled() => {}
            }
        };
        let (connected, (), ()) = tokio::join!(connected, self.writer.run(end.clone()), until);
        connected
    }
}
