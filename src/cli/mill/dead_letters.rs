//! `queuekeeper mill dead-letters`: tasks that failed in every attempt.

use clap::Args;
use jiff::Timestamp;

use super::ConfigArgs;
use super::held::names;
use crate::cli::output::{self, Column, OutputArgs, Table, without_csv};
use crate::cli::words::{ago, count};
use crate::views::mill::{DeadFilter, TaskItem};

/// Show the tasks that failed in every attempt, by their errors
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
    config: ConfigArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl DeadLettersArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let filter = DeadFilter { account: self.account, after: self.after };
        let list = self.config.ask(async |mill| mill.dead_letters(&filter).await).await?;
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
