//! `queuekeeper mill stop-repairs` and `resume-repairs`.

use clap::Args;
use queuekeeper_catalogue::repair_stops::{how_many, when_stopped};

use super::session::{MillActArgs, MillSession};
use crate::actions::mill::StopChange;
use crate::cli::exit::CommandError;
use crate::cli::output;

/// Stop automatic repairs in a store, or in all of them
#[derive(Clone, Debug, Args)]
#[command(long_about = stop_help())]
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

/// The limits are those of the mill.
fn stop_help() -> String {
    format!(
        "Stop automatic repairs in a store, or in all of them\n\nNo process starts a repair automatically any more; automatic \
         repairs that were requested wait unless they are already writing, and users can still start repairs. The mill itself \
         stops automatic repairs in a store {}. If repair: automatic is configured, it starts repairs {}.",
        when_stopped(),
        how_many()
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_the_limits_of_automatic_repairs() {
        let flat = |page: &str| page.split_whitespace().collect::<Vec<_>>().join(" ");
        let (mill, runbook) =
            (include_str!("../../../docs/mill.md"), include_str!("../../../dashboards/prometheus/runbook.md"));
        for (page, limits) in [(mill, vec![when_stopped(), how_many()]), (runbook, vec![when_stopped()])] {
            for limit in limits {
                assert!(flat(page).contains(&flat(&limit)), "{limit}");
            }
        }
    }
}
