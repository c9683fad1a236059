//! `queuekeeper mill held`, `dead-letters`, `retry` and `drop`: what waits for a person.

use clap::Args;
use jiff::Timestamp;

use super::ConfigArgs;
use super::session::{MillActArgs, MillSession};
use crate::actions::mill::{Decided, TaskDecision};
use crate::cli::exit::{CommandError, IN_PART, NOT_FOUND};
use crate::cli::output::{self, Column, OutputArgs, Table, without_csv};
use crate::cli::words::{ago, count};
use crate::views::mill::{DeadFilter, HeldFilter, TaskItem};

/// List held deletions and overwrites with reasons
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct HeldArgs {
    /// Tasks of this account; without it, of the first account that has any
    #[arg(long, value_name = "ACCOUNT", default_value = "")]
    account: String,

    /// Tasks that would change something in this store
    #[arg(long, value_name = "STORE", default_value = "")]
    destination: String,

    /// Tasks with a number above this
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,

    #[command(flatten)]
    place: ConfigArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Show the tasks that failed three times, by their errors
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct DeadLettersArgs {
    /// Tasks of this account; without it, of the first account that has any
    #[arg(long, value_name = "ACCOUNT", default_value = "")]
    account: String,

    /// Tasks with a number above this
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,

    #[command(flatten)]
    place: ConfigArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Retry dead letters, or release held tasks
///
/// A held task may then exceed the limit once.
#[derive(Clone, Debug, Args)]
pub(super) struct RetryArgs {
    #[command(flatten)]
    decided: DecidedArgs,
}

/// Remove dead letters or held tasks without executing them
#[derive(Clone, Debug, Args)]
pub(super) struct DropArgs {
    #[command(flatten)]
    decided: DecidedArgs,
}

/// Which tasks.
#[derive(Clone, Debug, Args)]
struct DecidedArgs {
    /// Numbers of tasks, as mill held and mill dead-letters show them
    #[arg(value_name = "NUMBER", required = true)]
    numbers: Vec<u64>,

    #[command(flatten)]
    act: MillActArgs,
}

impl HeldArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let (mill, catalogue) = self.place.open().await?;
        let (account, destination) = (self.account, self.destination);
        let list = mill.held(&HeldFilter { account, destination, after: self.after, ..HeldFilter::default() }).await;
        catalogue.close().await;
        let list = list.map_err(CommandError::from)?;
        self.output.show(&list, |screen| {
            for group in &list.groups {
                screen.say(&format!("{} in {}: {} held", group.account, group.destination, count(group.held)));
            }
            screen.table(&table(&list.tasks));
        })?;
        if list.groups.is_empty() {
            output::note("nothing is held");
        } else if let Some(after) = list.next {
            output::note(&format!("there are more: --after {after}"));
        }
        Ok(())
    }
}

impl DeadLettersArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let (mill, catalogue) = self.place.open().await?;
        let list = mill.dead_letters(&DeadFilter { account: self.account, after: self.after }).await;
        catalogue.close().await;
        let list = list.map_err(CommandError::from)?;
        self.output.show(&list, |screen| {
            for (account, dead) in &list.accounts {
                screen.say(&format!("{account}: {} dead", count(*dead)));
            }
            for group in &list.groups {
                screen.gap();
                let number = group.tasks.len() as u64;
                screen.entry(&format!("{} {} {}", count(number), group.kind, group.error));
                let numbers: Vec<_> = group.tasks.iter().map(u64::to_string).collect();
                screen.entry_beneath(&format!("numbers: {}", numbers.join(" ")));
                screen.table(&attempts(&group.examples));
            }
        })?;
        if list.accounts.is_empty() {
            output::note("there are no dead letters");
        } else if list.groups.is_empty() {
            let above = if self.after > 0 { " with higher numbers" } else { "" };
            output::note(&format!("there are no dead letters of {}{above}", list.account));
        } else if let Some(after) = list.next {
            output::note(&format!("there are more: --after {after}"));
        }
        Ok(())
    }
}

/// What tasks would do, and why it is not done.
fn table(tasks: &[TaskItem]) -> Table {
    let now = Timestamp::now();
    let mut table = Table::new([
        Column::number("NUMBER"),
        Column::new("KIND"),
        Column::rest("ITEM"),
        Column::new("FROM"),
        Column::new("TO"),
        Column::number("FOR"),
        Column::rest("WHY"),
    ]);
    for task in tasks {
        let last = task.errors.last();
        let [item, source, destination] = names(task);
        table.row([
            task.number.to_string(),
            task.kind.to_owned(),
            item,
            source,
            destination,
            ago(Some(last.map_or(task.created, |error| error.time)), now),
            last.map(|error| error.error.clone()).unwrap_or_default(),
        ]);
    }
    table
}

/// Dead letters with each of their failed attempts, the oldest first.
fn attempts(tasks: &[TaskItem]) -> Table {
    let now = Timestamp::now();
    let mut table = Table::new([
        Column::number("NUMBER"),
        Column::rest("ITEM"),
        Column::new("FROM"),
        Column::new("TO"),
        Column::number("FAILED AGO"),
        Column::new("WORKER"),
        Column::rest("WHY"),
    ]);
    for task in tasks {
        let [item, source, destination] = names(task);
        let mut named = [task.number.to_string(), item, source, destination];
        for attempt in &task.errors {
            // Of a task's further attempts, its name is not repeated.
            let [number, item, source, destination] = std::mem::take(&mut named);
            let failed = ago(Some(attempt.time), now);
            table.row([number, item, source, destination, failed, attempt.worker.clone(), attempt.error.clone()]);
        }
    }
    table
}

/// What a task is about, and the stores that it copies from and to.
fn names(task: &TaskItem) -> [String; 3] {
    let key = task.key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
    let store = |store: &Option<String>| store.clone().unwrap_or_else(|| "-".to_owned());
    [format!("{}/{}{key}", task.account, task.space), store(&task.source), store(&task.destination)]
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
    async fn run(self, decided: Decided, done: &str) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        self.act.with_session(async |session| self.decide(session, decided, done).await).await
    }

    /// Decides of held tasks and of dead letters: each is an action of its own.
    async fn decide(&self, session: &MillSession, decided: Decided, done: &str) -> anyhow::Result<()> {
        let MillSession { actions, actor, reason, .. } = session;
        let undecided = actions.undecided(&self.numbers).await.map_err(CommandError::from)?;
        let waiting: Vec<u64> = undecided.values().flatten().copied().collect();
        let mut missing: Vec<_> = self.numbers.iter().filter(|number| !waiting.contains(number)).copied().collect();
        for (of, numbers) in undecided {
            let decision = TaskDecision { decided, of };
            let entry = actions.decide(decision, &numbers, actor, reason).await.map_err(CommandError::from)?;
            for number in numbers {
                let target = TaskDecision::target(number);
                if entry.not_done.iter().any(|(on, _)| *on == target) {
                    missing.push(number);
                } else {
                    output::write(&format!("task {number} {done}\n"))?;
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let code = if missing.len() < self.numbers.len() { IN_PART } else { NOT_FOUND };
        let missing: Vec<_> = missing.iter().map(u64::to_string).collect();
        let why = format!("neither a dead letter nor held: {}", missing.join(", "));
        Err(CommandError::new(code, why).into())
    }
}
