//! `queuekeeper lock`: one lock.

use clap::Args;

use super::UsageError;
use super::act::ActArgs;
use super::actions::{act_on_one, break_lock};
use super::client::ClientArgs;
use super::output::without_csv;
use super::verbs::{self, ParameterArgs};
use crate::actions::{ActionKind, LockAction, Target, TargetKind};

/// Break one lock
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct LockArgs {
    /// The lock: its path, as `queuekeeper locks` lists it
    #[arg(value_name = "PATH")]
    path: String,

    /// The action
    #[arg(value_name = "ACTION", value_parser = verbs::parser(TargetKind::Lock))]
    action: ActionKind,

    #[command(flatten)]
    parameters: ParameterArgs<LockAction>,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl LockArgs {
    /// Breaks it.
    ///
    /// # Errors
    /// When it does not exist, is not a fault, or cannot be broken.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let target = format!("lock:{}", self.path).parse();
        let Ok(Target::Lock(path)) = target else {
            let why = "not the path of a lock; `queuekeeper locks` lists them";
            return Err(UsageError(format!("{}: {why}", crate::views::show::brief(&self.path, 128))).into());
        };
        match self.action {
            ActionKind::BreakLock => break_lock(&self.client, &self.act, path, &self.parameters).await,
            kind => {
                let action = verbs::action(kind, Target::Lock(path), self.parameters.of(kind)?)?;
                act_on_one(&self.client, &self.act, action).await
            }
        }
    }
}
