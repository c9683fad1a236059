//! `queuekeeper store hold`, `release` and `held`: stores in which no more objects are stored.

use clap::Args;
use jiff::Timestamp;
use queuekeeper_store::StoreName;
use serde::Serialize;
use utoipa::ToSchema;

use crate::actions::{ActionKind, ActionParameters, Target, TargetKind};
use crate::cli::act::ActArgs;
use crate::cli::actions::act_on_one;
use crate::cli::client::ClientArgs;
use crate::cli::exit::CommandError;
use crate::cli::output::{Column, Screen, Table};
use crate::cli::verbs;
use crate::cli::words::ago;

/// `queuekeeper store hold`.
#[derive(Clone, Debug, Args)]
#[command(about = summary(ActionKind::Hold), long_about = help_of_hold())]
pub(super) struct HoldArgs {
    #[command(flatten)]
    named: NamedArgs,
}

/// `queuekeeper store release`.
#[derive(Clone, Debug, Args)]
#[command(about = summary(ActionKind::Release))]
pub(super) struct ReleaseArgs {
    #[command(flatten)]
    named: NamedArgs,
}

/// Show which stores are held, since when, by whom and why
#[derive(Clone, Debug, Args)]
pub(super) struct HeldArgs {
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Clone, Debug, Args)]
struct NamedArgs {
    /// The name of the store in the configuration of the daemons
    #[arg(value_name = "STORE")]
    store: StoreName,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

fn summary(kind: ActionKind) -> &'static str {
    verbs::summary(TargetKind::Store, kind)
}

fn help_of_hold() -> String {
    let summary = summary(ActionKind::Hold);
    format!(
        "{summary}\n\nThey finish the objects that they are storing; other jobs whose objects belong in it wait in \
         Storing. Other stores are not affected."
    )
}

/// A store that is held.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct Held {
    /// Its name.
    store: String,
    /// Since when it is held.
    since: Timestamp,
    /// By whom; empty if that is not recorded.
    by: String,
    /// Why; empty if that is not recorded.
    reason: String,
}

impl HoldArgs {
    /// Holds it.
    ///
    /// # Errors
    /// When that is refused.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.named.act(ActionKind::Hold).await
    }
}

impl ReleaseArgs {
    /// Releases it.
    ///
    /// # Errors
    /// When that is refused.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.named.act(ActionKind::Release).await
    }
}

impl NamedArgs {
    async fn act(self, kind: ActionKind) -> anyhow::Result<()> {
        let action = verbs::action(kind, Target::Store(self.store), ActionParameters::default())?;
        act_on_one(&self.client, &self.act, action).await
    }
}

impl HeldArgs {
    /// Shows them.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let held = self.client.ask(async |link| Ok(link.queue().held_stores().await.map_err(CommandError::from)?));
        let held = held.await?.into_iter();
        let held: Vec<_> =
            held.map(|(store, pause)| Held { store, since: pause.since, by: pause.who, reason: pause.why }).collect();
        let now = Timestamp::now();
        self.client.output.list(&held, &held, |screen: &mut Screen| {
            if held.is_empty() {
                screen.say("No store is held.");
            }
            let mut table =
                Table::new([Column::new("STORE"), Column::number("FOR"), Column::rest("BY"), Column::rest("WHY")]);
            for one in &held {
                table.row([one.store.clone(), ago(Some(one.since), now), one.by.clone(), one.reason.clone()]);
            }
            screen.table(&table);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_on_a_store_has_a_command_of_its_own_with_its_summary() {
        let command = crate::cli::command();
        let store = command.find_subcommand("store").unwrap();
        for spec in TargetKind::Store.actions() {
            let command = store.find_subcommand(spec.kind.command()).unwrap();
            assert_eq!(command.get_about().unwrap().to_string(), spec.summary);
            let long = command.get_long_about().map(ToString::to_string);
            assert!(long.is_none_or(|long| long.starts_with(spec.summary)), "{}", spec.kind);
        }
    }
}
