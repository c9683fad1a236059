//! `queuekeeper failures`: failed jobs in groups of one cause.

use clap::Args;
use jiff::Timestamp;

use super::client::ClientArgs;
use super::output::{Column, Screen, Table, note};
use super::paging::Paging;
use super::words::{ago, count};
use crate::views::failures::{FailureList, FailureSort};

/// List failed jobs grouped by cause, largest group first
#[derive(Clone, Debug, Args)]
pub(super) struct FailuresArgs {
    #[command(flatten)]
    sort: FailureSort,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    client: ClientArgs,
}

impl FailuresArgs {
    /// Lists them.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let list = self.client.ask(async |link| {
            let store = link.store(false).await?;
            let source = link.source(&store);
            Ok(self.paging.take(|page| source.failures(self.sort, page))?)
        });
        let list = list.await?;
        self.client.output.list(&list, &list.items, |screen| show(&list, screen))?;
        if !self.client.output.is_json() {
            if list.total == 0 {
                note("no job has failed");
            } else {
                Paging::report(&list, "group", "groups");
            }
        }
        Ok(())
    }
}

fn show(list: &FailureList, screen: &mut Screen) {
    let now = Timestamp::now();
    let mut table = Table::new([
        Column::new("GROUP"),
        Column::number("JOBS"),
        Column::new("FAILED IN"),
        Column::number("FIRST"),
        Column::number("LATEST"),
        Column::rest("MESSAGE"),
    ]);
    for group in &list.items {
        table.row([
            group.group.clone(),
            count(group.count),
            group.failed_in.to_owned(),
            ago(group.oldest, now),
            ago(group.newest, now),
            group.pattern.clone(),
        ]);
    }
    screen.table(&table);
}
