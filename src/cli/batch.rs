//! `queuekeeper batch`: one batch.

use clap::Args;
use jiff::Timestamp;

use super::act::ActArgs;
use super::batches::state;
use super::client::{ClientArgs, Link};
use super::exit::{CommandError, NOT_FOUND};
use super::job::explain;
use super::output::{Screen, without_csv};
use super::verbs::{self, ParameterArgs};
use super::words::{count, moment};
use crate::actions::{ActionKind, BatchAction, Target, TargetKind};
use crate::insight::Forecast;
use crate::views::batches::BatchStanding;
use crate::views::parameter::BatchName;
use crate::views::show::brief;
use queuekeeper_queue::id::BatchId;

/// Show the progress of a batch, or execute an action on it
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct BatchArgs {
    /// The batch: bid and ten digits, its number, or the UUID of its submission
    #[arg(value_name = "BATCH")]
    batch: String,

    /// The action [default: show the batch]
    #[arg(value_name = "ACTION", value_parser = verbs::parser(TargetKind::Batch))]
    action: Option<ActionKind>,

    #[command(flatten)]
    parameters: ParameterArgs<BatchAction>,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl BatchArgs {
    /// Shows it, or executes an action on it.
    ///
    /// # Errors
    /// When the queue cannot be read, there is no such batch, or the action is refused.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.parameters.check(self.action)?;
        match self.action {
            None => self.show().await,
            Some(kind) => self.act(kind).await,
        }
    }

    async fn act(&self, kind: ActionKind) -> anyhow::Result<()> {
        self.act.check(self.client.output)?;
        self.client
            .ask(async |link| {
                let batch = self.id(link).await?;
                let action = verbs::action(kind, Target::Batch(batch), self.parameters.of(kind)?)?;
                self.act
                    .with_session(link, None, self.client.output, async |session| session.action(action).await)
                    .await
            })
            .await
    }

    /// The batch of that name, which may be the UUID of its submission.
    async fn id(&self, link: &Link) -> anyhow::Result<BatchId> {
        if let Some(id) = numbered(&self.batch) {
            return Ok(id);
        }
        let found = link.queue().find_batch(&self.batch).await.map_err(CommandError::from)?;
        let name = brief(&self.batch, 64);
        Ok(found.ok_or_else(|| {
            CommandError::new(
                NOT_FOUND,
                format!("there is no batch {name}: expected an id such as bid0000000042, or a UUID"),
            )
        })?)
    }

    async fn show(&self) -> anyhow::Result<()> {
        let standing = self.client.ask(async |link| {
            let store = link.store(true).await?;
            let now = Timestamp::now();
            let name = numbered(&self.batch).map_or_else(|| self.batch.clone(), |id| id.to_string());
            Ok((link.source(&store).batch(&name, now).map_err(CommandError::from)?, now))
        });
        let (standing, now) = standing.await?;
        self.client.output.show(&standing, |screen| show(&standing, now, screen))
    }
}

/// A batch by its id, or by the number in it.
fn numbered(name: &str) -> Option<BatchId> {
    name.parse().ok().map(|BatchName(id)| id)
}

fn show(standing: &BatchStanding, now: Timestamp, screen: &mut Screen) {
    let batch = &standing.batch;
    screen.fact("Batch", &batch.id);
    screen.fact("State", &state(batch));
    screen.fact("Since", &moment(batch.entered, now));
    screen.fact("Created", &moment(batch.created, now));
    screen.fact("Message", &batch.message);
    if batch.locked {
        let session = batch.session.as_ref().map_or("no session".to_owned(), |session| format!("session {session}"));
        screen.fact("Locked", &format!("by {session}, since {}", moment(standing.locked_since, now)));
    }
    screen.fact("UUID", &batch.uuid);
    screen.fact("Collection", &batch.collection);
    screen.fact("Submitter", &batch.submitter);
    screen.fact("File", &batch.filename);
    screen.fact("Title", &batch.title);
    let jobs = &batch.jobs;
    let outcome = |name: &str, jobs: Option<u32>| {
        jobs.filter(|jobs| *jobs > 0).map(|jobs| format!("{} {name}", count(jobs.into()))).into_iter()
    };
    let outcomes: Vec<_> = outcome("not done", jobs.processing)
        .chain(outcome("failed", jobs.failed))
        .chain(outcome("completed", jobs.completed))
        .chain(outcome("deleted", jobs.deleted))
        .collect();
    let of = if outcomes.is_empty() { String::new() } else { format!(": {}", outcomes.join(", ")) };
    screen.fact("Jobs", &format!("{}{of}", count(jobs.total)));
    let states: Vec<_> = standing.states.iter().map(|state| format!("{} {}", state.jobs, state.state)).collect();
    screen.fact("Their states", &states.join(", "));
    let at = standing.outlook.instants();
    let by_clock = if at.is_empty() { String::new() } else { format!(", {at}") };
    // A single walk does not show how fast jobs finish.
    if standing.outlook.forecast != Forecast::Unknown {
        screen.fact("Ends", &format!("{}{by_clock}", standing.outlook.ends));
    }
    for fault in &standing.faults {
        screen.fact("Fault", &format!("{}: {} {}", fault.fault, fault.how, fault.fix));
    }
    if let Some(diagnosis) = &standing.diagnosis {
        screen.gap();
        explain(diagnosis, now, screen);
    }
}
