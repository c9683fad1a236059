//! `queuekeeper batch`: one batch.

use clap::Args;
use jiff::Timestamp;

use super::batches::state;
use super::client::ClientArgs;
use super::exit::Ending;
use super::job::explain;
use super::output::Screen;
use super::words::{count, moment, number};
use crate::web::views::batches::BatchStanding;

/// Show how far one batch is, or do something to it
#[derive(Clone, Debug, Args)]
pub struct BatchArgs {
    /// The batch: bid and ten digits, or the UUID of its submission
    #[arg(value_name = "BATCH")]
    batch: String,

    #[command(flatten)]
    client: ClientArgs,
}

impl BatchArgs {
    /// Shows it.
    ///
    /// # Errors
    /// When the queue cannot be read, or there is no such batch.
    pub async fn run(self) -> anyhow::Result<()> {
        let now = Timestamp::now();
        let standing = self.client.ask(async |link| {
            let answers = link.walk(true).await?;
            Ok(answers.batch(&self.batch, now).map_err(Ending::from)?)
        });
        let standing = standing.await?;
        self.client.output.show(&standing, |screen| show(&standing, now, screen))
    }
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
    screen.fact("Ends", &number(standing.ends.map(|ends| ends.strftime("%Y-%m-%d %H:%M UTC"))));
    for fault in &standing.faults {
        screen.fact("Fault", &format!("{}: {} {}", fault.fault, fault.how, fault.remedy));
    }
    if let Some(diagnosis) = &standing.diagnosis {
        screen.gap();
        explain(diagnosis, now, screen);
    }
}
