//! `queuekeeper access`: access requests.

use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::Timestamp;

use super::client::ClientArgs;
use super::output::{Column, Screen, Table};
use super::paging::{Asked, Paging};
use super::words::{ago, size, yes};
use crate::mirror::lists::RequestOrder;
use crate::mirror::{AGE_LABELS, state_label};
use crate::queue::path::AccessQueue;
use crate::queue::state::{AccessState, State as _};
use crate::web::Pairs;
use crate::web::views::access::AccessList;

/// List access requests, or do something to one of them
#[derive(Clone, Debug, Args)]
pub struct AccessArgs {
    /// Of this queue
    #[arg(value_name = "QUEUE", value_parser = PossibleValuesParser::new(AccessQueue::ALL.iter().map(|queue| queue.name())))]
    queue: Option<String>,

    #[command(flatten)]
    filter: AccessFilter,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Which requests")]
struct AccessFilter {
    /// In this state
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(states()))]
    state: Option<String>,

    /// So long in its state: a band, named by its end
    #[arg(long, value_name = "AGE", value_parser = PossibleValuesParser::new(AGE_LABELS))]
    age: Option<String>,

    /// With this text in id or token
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,

    /// In this order [default: waiting]
    #[arg(long, value_name = "ORDER", value_parser = PossibleValuesParser::new(RequestOrder::ALL.iter().map(|order| order.label())))]
    sort: Option<String>,
}

fn states() -> Vec<&'static str> {
    AccessState::ALL.iter().copied().map(Some).chain([None]).map(state_label).collect()
}

impl AccessArgs {
    /// Lists them.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub async fn run(self) -> anyhow::Result<()> {
        let list = self.client.ask(async |link| {
            let answers = link.walk(false).await?;
            let now = Timestamp::now();
            Ok(self.paging.take(self.asked(), |asked| answers.access(asked, now))?)
        });
        let list = list.await?;
        self.client.output.show(&list, |screen| show(&list, screen))?;
        if !self.client.output.is_json() {
            Paging::tell(&list, "request", "requests");
        }
        Ok(())
    }

    fn asked(&self) -> Pairs {
        let filter = &self.filter;
        Asked::default()
            .with("queue", self.queue.as_ref())
            .with("state", filter.state.as_ref())
            .with("age", filter.age.as_ref())
            .with("text", filter.text.as_ref())
            .with("sort", filter.sort.as_ref())
            .pairs()
    }
}

fn show(list: &AccessList, screen: &mut Screen) {
    let now = Timestamp::now();
    let mut table = Table::new([
        Column::new("QUEUE"),
        Column::new("REQUEST"),
        Column::new("STATE"),
        Column::number("FOR"),
        Column::number("SIZE"),
        Column::new("LOCK"),
        Column::rest("TOKEN"),
        Column::rest("MESSAGE"),
    ]);
    for request in &list.items {
        let odd = request.odd_status.as_ref();
        table.row([
            request.queue.to_owned(),
            request.id.clone(),
            odd.map_or_else(|| request.state.to_owned(), |odd| format!("{} ({odd})", request.state)),
            ago(request.entered, now),
            size(request.requested_bytes),
            yes(request.locked),
            request.token.clone(),
            request.message.clone(),
        ]);
    }
    screen.table(&table);
}
