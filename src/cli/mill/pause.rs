//! `queuekeeper mill pause` and `resume`.

use clap::Args;

use super::session::{MillActArgs, MillSession};
use crate::actions::mill::{PauseChange, pause_scope};
use crate::cli::exit::CommandError;
use crate::cli::output;

/// Pause the work for an account, a store, or an account in a store
///
/// No process starts a task that reads from it or writes to it; tasks in progress are finished. After mill resume, the
/// waiting tasks are processed.
#[derive(Clone, Debug, Args)]
pub(super) struct PauseArgs {
    #[command(flatten)]
    paused: PausedArgs,
}

/// Resume the work that was paused for an account, a store, or an account in a store
///
/// Name the account and the store of the pause as mill queues shows them.
#[derive(Clone, Debug, Args)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    paused: PausedArgs,
}

/// What is paused.
#[derive(Clone, Debug, Args)]
#[group(id = "paused", required = true, multiple = true, args = ["account", "store"])]
struct PausedArgs {
    /// The account; without it, all accounts
    #[arg(long, value_name = "ACCOUNT", default_value = "", hide_default_value = true)]
    account: String,

    /// The store; without it, all stores of the account
    #[arg(long, value_name = "STORE", default_value = "", hide_default_value = true)]
    store: String,

    #[command(flatten)]
    act: MillActArgs,
}

impl PauseArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.paused.run(PauseChange::Pause).await
    }
}

impl ResumeArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.paused.run(PauseChange::Resume).await
    }
}

impl PausedArgs {
    async fn run(&self, change: PauseChange) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let scope = pause_scope(&self.account, &self.store).map_err(CommandError::from)?;
        self.act
            .with_session(async |MillSession { actions, actor, reason, .. }| {
                actions.change_pause(change, &scope, actor, reason).await.map_err(CommandError::from)?;
                output::write(&match change {
                    PauseChange::Pause => format!("{scope} is paused\n"),
                    PauseChange::Resume => format!("{scope} is resumed\n"),
                })
            })
            .await
    }
}
