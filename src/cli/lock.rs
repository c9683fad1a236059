//! `queuekeeper lock`: one lock.

use clap::{Args, ValueEnum};

use super::UsageError;
use super::act::ActArgs;
use super::actions::break_lock;
use super::client::ClientArgs;
use super::output::without_csv;
use super::verbs::ParameterArgs;
use crate::actions::{LockAction, Target};

/// Break one lock
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct LockArgs {
    /// The lock: its path, as `queuekeeper locks` lists it
    #[arg(value_name = "PATH")]
    path: String,

    /// The action
    #[arg(value_name = "ACTION")]
    action: LockVerb,

    #[command(flatten)]
    parameters: ParameterArgs<LockAction>,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LockVerb {
    /// Remove a lock that would not be released otherwise
    Break,
}

impl LockArgs {
    /// Breaks it.
    ///
    /// # Errors
    /// When it does not exist, is not a fault, or cannot be broken.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let LockVerb::Break = self.action;
        let target = format!("lock:{}", self.path).parse();
        let Ok(Target::Lock(path)) = target else {
            let why = "not the path of a lock; `queuekeeper locks` lists them";
            return Err(UsageError(format!("{}: {why}", crate::views::show::brief(&self.path, 128))).into());
        };
        break_lock(&self.client, &self.act, path, &self.parameters).await
    }
}
