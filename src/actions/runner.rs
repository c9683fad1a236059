//! What goes on as long as actions are taken.

use tokio_util::sync::CancellationToken;

use super::audit::AuditWriter;
use super::execute::Actions;
use super::session::Connection;
use queuekeeper_zookeeper::{ConnectError, Sessions};

/// What actions need to go on: their connection, and the writer of the audit trail. Awaited by whoever made it.
#[derive(Debug)]
pub struct Runner {
    pub(super) actions: Actions,
    pub(super) connection: Connection,
    pub(super) writer: AuditWriter,
}

impl Runner {
    /// Keeps actions going until `shutdown`. What is under way then is finished and written down.
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
            // Where it ended by itself, there is nothing more to wait for.
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
