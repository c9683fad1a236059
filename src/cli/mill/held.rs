//! `queuekeeper mill held`: deletions and overwrites that the brake holds.

use clap::Args;
use jiff::Timestamp;

use super::ConfigArgs;
use crate::cli::output::{self, Column, OutputArgs, Table, without_csv};
use crate::cli::words::{ago, count};
use crate::views::mill::{HeldFilter, TaskItem};

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
    config: ConfigArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl HeldArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let (account, destination) = (self.account, self.destination);
        let filter = HeldFilter { account, destination, after: self.after, ..HeldFilter::default() };
        let list = self.config.ask(async |mill| mill.held(&filter).await).await?;
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

/// What a task is about, and the stores that it copies from and to.
pub(super) fn names(task: &TaskItem) -> [String; 3] {
    let key = task.key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
    let store = |store: &Option<String>| store.clone().unwrap_or_else(|| "-".to_owned());
    [format!("{}/{}{key}", task.account, task.space), store(&task.source), store(&task.destination)]
}
