//! `queuekeeper batches`: batches by any filter.

use clap::Args;
use jiff::Timestamp;

use super::UsageError;
use super::act::ActArgs;
use super::client::ClientArgs;
use super::output::{Column, Screen, Table};
use super::paging::Paging;
use super::verbs;
use super::words::{ago, count, some, yes};
use crate::actions::{ActionKind, ActionParameters, Target, TargetKind};
use crate::views::batches::{BatchFilter, BatchItem, BatchList};
use crate::views::query::Parameters as _;

/// List batches, or clean up
#[derive(Clone, Debug, Args)]
pub(super) struct BatchesArgs {
    /// The action [default: list them]
    #[arg(value_name = "ACTION", value_parser = verbs::parser(TargetKind::Batches))]
    action: Option<ActionKind>,

    #[command(flatten)]
    filter: BatchFilter,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl BatchesArgs {
    /// Lists them, or cleans up.
    ///
    /// # Errors
    /// When the queue cannot be read, or there is no such collection.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self.action {
            None => self.list().await,
            Some(kind) => {
                if self.filter.is_filtered() {
                    let why = "clean-up purges every finished batch and does not accept filters";
                    return Err(UsageError(why.to_owned()).into());
                }
                self.act.check(self.client.output)?;
                let action = verbs::action(kind, Target::Batches, ActionParameters::default())?;
                // With the mirror, the batch of each job does not have to be read from ZooKeeper.
                self.client
                    .ask(async |link| {
                        let store = link.store(false).await?;
                        let (act, output) = (&self.act, self.client.output);
                        act.with_session(link, Some(store), output, async |session| session.action(action).await).await
                    })
                    .await
            }
        }
    }

    async fn list(&self) -> anyhow::Result<()> {
        let list = self.client.ask(async |link| {
            let store = link.store(false).await?;
            let source = link.source(&store);
            Ok(self.paging.take(|page| source.batches(&self.filter, page))?)
        });
        let list = list.await?;
        self.client.output.list(&list, &list.items, |screen| show(&list, screen))?;
        if !self.client.output.is_json() {
            Paging::report(&list, "batch", "batches");
        }
        Ok(())
    }
}

fn show(list: &BatchList, screen: &mut Screen) {
    let now = Timestamp::now();
    let mut table = Table::new([
        Column::new("BATCH"),
        Column::new("STATE"),
        Column::number("FOR"),
        Column::number("JOBS"),
        Column::number("OPEN"),
        Column::number("FAILED"),
        Column::new("LOCK").if_wide(),
        Column::rest("COLLECTION").if_wide(),
        Column::rest("SUBMITTER").if_wide(),
        Column::new("UUID").if_wide(),
        Column::rest("FILE"),
    ]);
    for batch in &list.items {
        table.row([
            batch.id.clone(),
            state(batch),
            ago(batch.entered, now),
            count(batch.jobs.total),
            some(batch.jobs.processing.unwrap_or(0).into()),
            some(batch.jobs.failed.unwrap_or(0).into()),
            yes(batch.locked),
            batch.collection.clone(),
            batch.submitter.clone(),
            batch.uuid.clone(),
            batch.filename.clone(),
        ]);
    }
    screen.table(&table);
}

/// Its state; the text of its status if that is not a state.
pub(super) fn state(batch: &BatchItem) -> String {
    batch.status_text.as_ref().map_or_else(|| batch.state.to_owned(), |text| format!("{} ({text})", batch.state))
}
