//! `queuekeeper queue` and `queuekeeper collection`: what is paused or held, by whom and why.

use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::UsageError;
use super::act::ActArgs;
use super::actions::act_on_one;
use super::client::ClientArgs;
use super::exit::CommandError;
use super::output::{Column, OutputArgs, Screen, Table};
use super::verbs::{self, ParameterArgs};
use super::words::ago;
use crate::actions::{Action, ActionKind, ActionParameters, CollectionAction, Target, TargetKind};

use queuekeeper_queue::path::Queue;

/// Show which queues are paused; pause or unpause one
#[derive(Clone, Debug, Args)]
pub(super) struct QueueArgs {
    /// The action [default: list them]
    #[arg(value_name = "ACTION", requires = "queue", value_parser = verbs::parser(TargetKind::Queue))]
    action: Option<ActionKind>,

    /// The queue
    #[arg(value_name = "QUEUE", value_parser = PossibleValuesParser::new(Queue::ALL.iter().map(|queue| queue.name())))]
    queue: Option<String>,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

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

/// A queue or a collection, and whether it is stopped.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct Stop {
    /// The queue, or the collection.
    name: String,
    /// Since when it is stopped; null while it is not.
    paused_since: Option<Timestamp>,
    /// By whom; empty if that is not recorded.
    by: String,
    /// Why; empty if that is not recorded.
    reason: String,
}

impl Stop {
    fn new(name: &str, pause: Option<queuekeeper_queue::Pause>) -> Self {
        let name = name.to_owned();
        match pause {
            Some(pause) => Self { name, paused_since: Some(pause.since), by: pause.who, reason: pause.why },
            None => Self { name, paused_since: None, by: String::new(), reason: String::new() },
        }
    }
}

impl QueueArgs {
    /// Shows them, or executes an action on one.
    ///
    /// # Errors
    /// When they cannot be read, or the action is refused.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let named = self.queue.as_deref().and_then(Queue::from_name);
        let (Some(kind), Some(queue)) = (self.action, named) else { return self.list().await };
        let action = verbs::action(kind, Target::Queue(queue), ActionParameters::default())?;
        act_on_one(&self.client, &self.act, action).await
    }

    async fn list(&self) -> anyhow::Result<()> {
        let stops = self.client.ask(async |link| {
            let mut stops = Vec::new();
            for queue in Queue::ALL {
                stops.push(Stop::new(queue.name(), link.queue().paused(*queue).await.map_err(CommandError::from)?));
            }
            Ok(stops)
        });
        show(&stops.await?, self.client.output, "QUEUE")
    }
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

fn show(stops: &[Stop], output: OutputArgs, what: &'static str) -> anyhow::Result<()> {
    let now = Timestamp::now();
    output.list(&stops, stops, |screen: &mut Screen| {
        if stops.is_empty() {
            screen.say("No collection is held.");
        }
        let mut table = Table::new([
            Column::new(what),
            Column::new("STATE"),
            Column::number("FOR"),
            Column::rest("BY"),
            Column::rest("WHY"),
        ]);
        for stop in stops {
            let state = match (stop.paused_since, what) {
                (None, _) => "not paused",
                (Some(_), "QUEUE") => "paused",
                (Some(_), _) => "held",
            };
            let cells = [
                stop.name.clone(),
                state.to_owned(),
                ago(stop.paused_since, now),
                stop.by.clone(),
                stop.reason.clone(),
            ];
            table.row(cells);
        }
        screen.table(&table);
    })
}
