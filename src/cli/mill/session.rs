//! What actions on the mill need: the catalogue, the audit trail, and the user.

use clap::Args;
use queuekeeper_catalogue::Catalogue;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::ConfigArgs;
use crate::actions::audit::Audit;
use crate::actions::mill::MillActions;
use crate::actions::{Actor, Reason};
use crate::cli::UsageError;
use crate::cli::actor::{AuditArgs, actor};
use crate::cli::exit::{CommandError, FAILED};
use crate::config::MillConfig;
use crate::server;

/// The options of commands that execute actions on the mill.
#[derive(Clone, Debug, Args)]
pub(super) struct MillActArgs {
    /// The reason, which is recorded in the audit file and in the catalogue
    #[arg(long, value_name = "TEXT")]
    reason: String,

    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    audit: AuditArgs,
}

/// Actions on the mill.
pub(super) struct MillSession {
    pub(super) actions: MillActions,
    pub(super) actor: Actor,
    pub(super) reason: Reason,
    catalogue: Catalogue,
    written: CancellationToken,
    writer: AbortOnDropHandle<()>,
}

impl MillActArgs {
    pub(super) fn new(reason: String, config: ConfigArgs, audit: AuditArgs) -> Self {
        Self { reason, config, audit }
    }

    /// The accounts of the mill.
    pub(super) fn config(&self) -> Result<MillConfig, UsageError> {
        self.config.read().map(|(_file, config)| config)
    }

    /// Opens the catalogue and the audit trail, executes something, and waits until it is recorded.
    pub(super) async fn with_session<T>(
        &self,
        work: impl AsyncFnOnce(&MillSession) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let reason = Reason::new(&self.reason).map_err(|error| UsageError::flag("--reason", error))?;
        let (file, config) = self.config.read()?;
        let (audit, writer) = Audit::open(self.audit.destination()?)
            .map_err(|error| CommandError::new(FAILED, format!("{error}; nothing was done")))?;
        let catalogue = server::catalogue::open(file.stores()).await?;
        let written = CancellationToken::new();
        let writer = AbortOnDropHandle::new(tokio::spawn(writer.run(written.clone())));
        let parts = server::mill::changed(&catalogue, &config, file.stores());
        let actions = MillActions::recorded_by(audit, parts);
        let session = MillSession { actions, actor: actor(), reason, catalogue, written, writer };
        let outcome = work(&session).await;
        session.close().await;
        outcome
    }
}

impl MillSession {
    async fn close(self) {
        self.written.cancel();
        // It has written everything, or reported why not.
        let _ = self.writer.await;
        self.catalogue.close().await;
    }
}
