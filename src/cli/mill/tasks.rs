//! `queuekeeper mill tasks`, `retry` and `drop`: what waits for a person.

use clap::Args;
use queuekeeper_catalogue::tasks::{Decided, Decision, KnownTask, TaskError};
use serde_json::{Value, json};

use super::PlaceArgs;
use crate::cli::actor::actor;
use crate::cli::exit::{CommandError, NOT_FOUND};
use crate::cli::output::{self, OutputArgs, Screen, without_csv};
use crate::server;
use crate::views::show::visible;

/// How many tasks of an account are shown.
const MOST: u32 = 1000;

/// Show dead letters, or what is held, with why
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct TasksArgs {
    #[command(flatten)]
    place: PlaceArgs,

    #[command(flatten)]
    output: OutputArgs,

    /// Show what is held by the brake instead of dead letters
    #[arg(long)]
    held: bool,
}

/// Let dead letters or held tasks be processed again
///
/// What a task was held for is allowed by that, this once.
#[derive(Clone, Debug, Args)]
pub(super) struct RetryArgs {
    #[command(flatten)]
    decided: DecidedArgs,
}

/// Remove dead letters or held tasks: what they would do is not done
#[derive(Clone, Debug, Args)]
pub(super) struct DropArgs {
    #[command(flatten)]
    decided: DecidedArgs,
}

/// Which tasks.
#[derive(Clone, Debug, Args)]
struct DecidedArgs {
    /// Numbers of tasks, as mill tasks shows them
    #[arg(value_name = "NUMBER", required = true)]
    numbers: Vec<u64>,

    /// Why; it is recorded, with who decided it
    #[arg(long, value_name = "TEXT")]
    reason: String,

    #[command(flatten)]
    place: PlaceArgs,
}

impl TasksArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let (file, config) = self.place.read()?;
        let catalogue = server::mill::catalogue(file.stores()).await?;
        let mut tasks = Vec::new();
        for account in config.accounts.values() {
            if self.held {
                for store in account.stores.values() {
                    tasks.extend(catalogue.held_tasks(&account.name, store, 0, MOST).await?);
                }
            } else {
                tasks.extend(catalogue.dead_letters(&account.name, 0, MOST).await?);
            }
        }
        catalogue.close().await;
        let answer = json!({ "tasks": tasks.iter().map(task_json).collect::<Vec<_>>() });
        self.output.show(&answer, |screen: &mut Screen| {
            for task in &tasks {
                screen.entry(&task_line(task));
            }
        })?;
        if tasks.is_empty() {
            output::note(if self.held { "nothing is held" } else { "there are no dead letters" });
        }
        Ok(())
    }
}

fn task_json(task: &KnownTask) -> Value {
    let KnownTask { id, home, subject, source, errors, created } = task;
    let error = |error: &TaskError| json!({ "time": error.time, "worker": error.worker, "error": error.error });
    json!({
        "number": id,
        "queue": home.as_str(),
        "kind": subject.kind.as_str(),
        "account": subject.account,
        "space": subject.space,
        "key": subject.key.as_ref().map(ToString::to_string),
        "key_encoded": subject.key.as_ref().map(queuekeeper_store::Key::encoded),
        "source": source,
        "destination": subject.destination,
        "created": created,
        "errors": errors.iter().map(error).collect::<Vec<_>>(),
    })
}

/// One line: what it would do, and why it is not done.
fn task_line(task: &KnownTask) -> String {
    let KnownTask { id, subject, source, errors, .. } = task;
    let store =
        |name: &Option<queuekeeper_store::StoreName>| name.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    let key = subject.key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
    let why = errors.last().map_or("", |error| error.error.as_str());
    let (kind, account, space) = (subject.kind.as_str(), &subject.account, &subject.space);
    let stores = format!("{} to {}", store(source), store(&subject.destination));
    visible(&format!("{id} {kind} {account}: {space}{key} {stores}: {why}"))
}

impl RetryArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.decided.run(Decided::Retry, "waits for a worker").await
    }
}

impl DropArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.decided.run(Decided::Drop, "was dropped").await
    }
}

impl DecidedArgs {
    async fn run(self, what: Decided, done: &str) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let (file, _) = self.place.read()?;
        let catalogue = server::mill::catalogue(file.stores()).await?;
        let user = actor().name;
        let decision = Decision { what, user: &user, reason: &self.reason };
        let mut missing = Vec::new();
        for number in self.numbers {
            if catalogue.decide_task(number, &decision).await? {
                output::write(&format!("task {number} {done}\n"))?;
            } else {
                missing.push(number.to_string());
            }
        }
        catalogue.close().await;
        if missing.is_empty() {
            return Ok(());
        }
        let why = format!("neither a dead letter nor held: {}", missing.join(", "));
        Err(CommandError::new(NOT_FOUND, why).into())
    }
}
