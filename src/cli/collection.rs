//! `queuekeeper collection`: which collections are held, by whom and why.

use clap::Args;

use super::UsageError;
use super::act::ActArgs;
use super::actions::act_on_one;
use super::client::ClientArgs;
use super::exit::CommandError;
use super::stops::{Stop, show};
use super::verbs::{self, ParameterArgs};
use crate::actions::{Action, ActionKind, CollectionAction, Target, TargetKind};

/// Show which collections are held; hold or release one
#[derive(Clone, Debug, Args)]
pub(super) struct CollectionArgs {
    /// The action [default: list them]
    #[arg(value_name = "ACTION", requires = "name", value_parser = verbs::parser(TargetKind::Collection))]
    action: Option<ActionKind>,

    /// The collection's mnemonic
    #[arg(value_name = "MNEMONIC")]
    name: Option<String>,

    #[command(flatten)]
    parameters: ParameterArgs<CollectionAction>,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl CollectionArgs {
    /// Shows them, or executes an action on one.
    ///
    /// # Errors
    /// When they cannot be read, or the action is refused.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (Some(kind), Some(name)) = (self.action, self.name.as_deref()) else { return self.list().await };
        let parameters = self.parameters.of(kind)?;
        let Ok(target) = format!("collection:{name}").parse::<Target>() else {
            let name = crate::views::show::brief(name, 64);
            return Err(UsageError(format!("{name} is not a valid collection mnemonic")).into());
        };
        let action = verbs::action(kind, target, parameters)?;
        match kind {
            ActionKind::Release => self.release(action).await,
            _ => act_on_one(&self.client, &self.act, action).await,
        }
    }

    /// Releases the collection, and with it its jobs where that is wanted: they are known by a walk.
    async fn release(&self, action: Action) -> anyhow::Result<()> {
        self.act.check(self.client.output)?;
        let (act, output) = (&self.act, self.client.output);
        self.client
            .ask(async |link| {
                let store = link.store(false).await?;
                act.with_session(link, Some(store), output, async |session| session.action(action).await).await
            })
            .await
    }

    async fn list(&self) -> anyhow::Result<()> {
        let stops = self.client.ask(async |link| {
            let queue = link.queue();
            let mut stops = Vec::new();
            for name in queue.held_collections().await.map_err(CommandError::from)? {
                // It may have been released since it was listed.
                let hold = queue.held_collection(&name).await.map_err(CommandError::from)?;
                stops.extend(hold.map(|hold| Stop::new(&name, Some(hold))));
            }
            Ok(stops)
        });
        show(&stops.await?, self.client.output, "COLLECTION")
    }
}
