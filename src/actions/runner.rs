//! The background part of actions.

use tokio_util::sync::CancellationToken;

use super::accept::Actions;
use super::audit::AuditWriter;
use super::session::Connection;
use queuekeeper_zookeeper::{ConnectError, Sessions};

/// The connection of actions and the writer of the audit trail. Awaited by its owner.
#[derive(Debug)]
pub struct Runner {
    pub(super) actions: Actions,
    pub(super) connection: Connection,
    pub(super) writer: AuditWriter,
}

impl Runner {
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
