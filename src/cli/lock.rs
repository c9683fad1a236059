//! `queuekeeper lock`: one lock.

use clap::{Args, ValueEnum};

use super::UsageError;
use super::act::ActArgs;
use super::actions::break_lock;
use super::client::ClientArgs;
use crate::actions::Target;

/// Break one lock
#[derive(Clone, Debug, Args)]
pub(super) struct LockArgs {
    /// The lock: its path, as `queuekeeper locks` lists it
    #[arg(value_name = "PATH")]
    path: String,

    /// What to do
    #[arg(value_name = "ACTION")]
    action: LockAction,

    /// Break it also where it is no fault; its session may be at work
    #[arg(long, help_heading = "Acting")]
    force: bool,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LockAction {
    /// Remove a lock that nobody will release
    Break,
}

impl LockArgs {
    /// Breaks it.
    ///
    /// # Errors
    /// When it is not there, is no fault, or cannot be broken.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let LockAction::Break = self.action;
        let target = format!("lock:{}", self.path).parse();
        let Ok(Target::Lock(path)) = target else {
            let why = "not the path of a lock; `queuekeeper locks` lists them";
            return Err(UsageError(format!("{}: {why}", crate::views::show::brief(&self.path, 128))).into());
        };
        break_lock(&self.client, &self.act, path, self.force).await
    }
}
