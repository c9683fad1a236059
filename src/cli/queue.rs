//! `queuekeeper queue`: which queues are paused, by whom and why.

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::act::ActArgs;
use super::actions::act_on_one;
use super::client::ClientArgs;
use super::exit::CommandError;
use super::stops::{Stop, show};
use super::verbs;
use crate::actions::{ActionKind, ActionParameters, Target, TargetKind};

use queuekeeper_queue::path::QueueName;

/// Show which queues are paused; pause or unpause one
#[derive(Clone, Debug, Args)]
pub(super) struct QueueArgs {
    /// The action [default: list them]
    #[arg(value_name = "ACTION", requires = "queue", value_parser = verbs::parser(TargetKind::Queue))]
    action: Option<ActionKind>,

    /// The queue
    #[arg(value_name = "QUEUE", value_parser = PossibleValuesParser::new(QueueName::ALL.iter().map(|queue| queue.name())))]
    queue: Option<String>,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl QueueArgs {
    /// Shows them, or executes an action on one.
    ///
    /// # Errors
    /// When they cannot be read, or the action is refused.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let named = self.queue.as_deref().and_then(QueueName::from_name);
        let (Some(kind), Some(queue)) = (self.action, named) else { return self.list().await };
        let action = verbs::action(kind, Target::Queue(queue), ActionParameters::default())?;
        act_on_one(&self.client, &self.act, action).await
    }

    async fn list(&self) -> anyhow::Result<()> {
        let stops = self.client.ask(async |link| {
            let mut stops = Vec::new();
            for queue in QueueName::ALL {
                stops.push(Stop::new(queue.name(), link.queue().paused(*queue).await.map_err(CommandError::from)?));
            }
            Ok(stops)
        });
        show(&stops.await?, self.client.output, "QUEUE")
    }
}
