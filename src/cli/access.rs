//! `queuekeeper access`: access requests.

use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::Timestamp;

use super::UsageError;
use super::act::ActArgs;
use super::actions::act_on_one;
use super::client::ClientArgs;
use super::exit::{CommandError, NOT_FOUND};
use super::output::{Column, Screen, Table};
use super::paging::{Paging, Parameters};
use super::verbs;
use super::words::{ago, size, yes};
use crate::actions::{ActionKind, ActionParameters, Target, TargetKind};
use crate::mirror::lists::RequestOrder;
use crate::mirror::{AGE_LABELS, state_label};
use crate::views::access::AccessList;
use crate::web::Pairs;
use queuekeeper_queue::id::RequestId;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::{AccessState, State as _};

/// List access requests, or do something to one of them
#[derive(Clone, Debug, Args)]
pub(super) struct AccessArgs {
    /// Of this queue
    #[arg(value_name = "QUEUE", value_parser = PossibleValuesParser::new(AccessQueue::ALL.iter().map(|queue| queue.name())))]
    queue: Option<String>,

    /// Only this request: qid and ten digits
    #[arg(value_name = "QID")]
    request: Option<String>,

    /// What to do to it; without it, list
    #[arg(value_name = "ACTION", value_parser = verbs::parser(TargetKind::Request))]
    action: Option<ActionKind>,

    #[command(flatten)]
    filter: AccessFilter,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    act: ActArgs,

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
    #[arg(long, value_name = "TEXT", conflicts_with = "request")]
    text: Option<String>,

    /// In this order [default: waiting]
    #[arg(long, value_name = "ORDER", value_parser = PossibleValuesParser::new(RequestOrder::ALL.iter().map(|order| order.label())))]
    sort: Option<String>,
}

fn states() -> Vec<&'static str> {
    AccessState::ALL.iter().copied().map(Some).chain([None]).map(state_label).collect()
}

impl AccessArgs {
    /// Lists them, or does something to one of them.
    ///
    /// # Errors
    /// When the queue cannot be read, there is no such request, or it stands against what is ordered.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let id = self.request.as_deref().map(request_id).transpose()?;
        let queue = self.queue.as_deref().and_then(AccessQueue::from_name);
        let (Some(kind), Some(id), Some(queue)) = (self.action, id, queue) else { return self.list(id).await };
        let action = verbs::action(kind, Target::Request(queue, id), ActionParameters::default())?;
        act_on_one(&self.client, &self.act, action).await
    }

    async fn list(&self, id: Option<RequestId>) -> anyhow::Result<()> {
        let list = self.client.ask(async |link| {
            let answers = link.walk(false).await?;
            let now = Timestamp::now();
            Ok(self.paging.take(self.asked(), |asked| answers.access(asked, now))?)
        });
        let list = list.await?;
        if let Some(id) = id.filter(|_| list.items.is_empty()) {
            return Err(CommandError::new(NOT_FOUND, format!("there is no such request {id}")).into());
        }
        self.client.output.show(&list, |screen| show(&list, screen))?;
        if !self.client.output.is_json() {
            Paging::report(&list, "request", "requests");
        }
        Ok(())
    }

    fn asked(&self) -> Pairs {
        let filter = &self.filter;
        Parameters::default()
            .with("queue", self.queue.as_ref())
            .with("state", filter.state.as_ref())
            .with("age", filter.age.as_ref())
            .with("text", self.request.as_ref().or(filter.text.as_ref()))
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

fn request_id(text: &str) -> Result<RequestId, UsageError> {
    text.parse().map_err(|_| {
        let text = crate::views::show::brief(text, 64);
        UsageError(format!("{text} is no request's id, which is qid and ten digits, such as qid0000000042"))
    })
}
