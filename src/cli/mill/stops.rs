//! `queuekeeper mill stop-repairs` and `resume-repairs`.

use clap::Args;

use super::session::{MillActArgs, MillSession};
use crate::actions::mill::StopChange;
use crate::cli::exit::CommandError;
use crate::cli::output;

/// Stop automatic repairs in a store, or in all of them
///
/// No process starts a repair automatically any more; automatic repairs that were requested wait unless they are already
/// writing, and users can still start repairs. The mill itself stops automatic repairs in a store after three consecutive
/// failures, or when 25 copies were found to be wrong within an hour.
#[derive(Clone, Debug, Args)]
pub(super) struct StopRepairsArgs {
    #[command(flatten)]
    stopped: StoppedArgs,
}

/// Resume automatic repairs in a store, or in all of them
///
/// Name the store of the stop as mill errors shows it: a stop of all stores and that of one store are separate.
#[derive(Clone, Debug, Args)]
pub(super) struct ResumeRepairsArgs {
    #[command(flatten)]
    stopped: StoppedArgs,
}

#[derive(Clone, Debug, Args)]
struct StoppedArgs {
    /// The store; without it, all stores
    #[arg(value_name = "STORE", default_value = "", hide_default_value = true)]
    store: String,

    #[command(flatten)]
    act: MillActArgs,
}

impl StopRepairsArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.stopped.run(StopChange::Stop).await
    }
}

impl ResumeRepairsArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.stopped.run(StopChange::Resume).await
    }
}

impl StoppedArgs {
    async fn run(self, change: StopChange) -> anyhow::Result<()> {
        let Self { store, act } = self;
        act.with_session(async |session| apply(session, change, &store).await).await
    }
}

async fn apply(session: &MillSession, change: StopChange, store: &str) -> anyhow::Result<()> {
    let MillSession { actions, actor, reason, .. } = session;
    actions.change_stop(change, store, actor, reason).await.map_err(CommandError::from)?;
    let name = if store.is_empty() { "all stores" } else { store };
    output::write(&match change {
        StopChange::Stop => format!("automatic repairs in {name} are stopped\n"),
        StopChange::Resume => format!("automatic repairs in {name} are resumed, where they are configured\n"),
    })
}
