//! `queuekeeper access`: access requests.

use clap::Args;
use jiff::Timestamp;

use super::UsageError;
use super::act::ActArgs;
use super::actions::act_on_one;
use super::client::ClientArgs;
use super::exit::{CommandError, NOT_FOUND};
use super::output::{Column, Screen, Table};
use super::paging::Paging;
use super::verbs;
use super::words::{ago, size, yes};
use crate::actions::{ActionKind, ActionParameters, Target, TargetKind};
use crate::views::access::{AccessFilter, AccessList};
use crate::views::show::brief;
use queuekeeper_queue::id::RequestId;

/// List access requests, or execute an action on one of them
#[derive(Clone, Debug, Args)]
pub(super) struct AccessArgs {
    #[command(flatten)]
    filter: AccessFilter,

    /// Only this request: qid and ten digits
    #[arg(value_name = "QID", conflicts_with = "text", help_heading = None::<&str>)]
    request: Option<String>,

    /// The action on it [default: list the requests]
    #[arg(
        value_name = "ACTION",
        value_parser = verbs::parser(TargetKind::Request),
        help_heading = None::<&str>
    )]
    action: Option<ActionKind>,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl AccessArgs {
    /// Lists them, or executes an action on one of them.
    ///
    /// # Errors
    /// When the queue cannot be read, there is no such request, or the action is refused.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let id = self.request.as_deref().map(request_id).transpose()?;
        let (Some(kind), Some(id), Some(queue)) = (self.action, id, self.filter.queue) else {
            return self.list(id).await;
        };
        let action = verbs::action(kind, Target::Request(queue.0, id), ActionParameters::default())?;
        act_on_one(&self.client, &self.act, action).await
    }

    async fn list(&self, id: Option<RequestId>) -> anyhow::Result<()> {
        let mut filter = self.filter.clone();
        if let Some(request) = &self.request {
            filter.text = Some(request.parse().map_err(|error| UsageError(format!("{error}")))?);
        }
        let list = self.client.ask(async |link| {
            let store = link.store(false).await?;
            let (source, now) = (link.source(&store), Timestamp::now());
            Ok(self.paging.take(|page| source.access(&filter, page, now))?)
        });
        let list = list.await?;
        if let Some(id) = id.filter(|_| list.items.is_empty()) {
            return Err(CommandError::new(NOT_FOUND, format!("there is no such request {id}")).into());
        }
        self.client.output.list(&list, &list.items, |screen| show(&list, screen))?;
        if !self.client.output.is_json() {
            Paging::report(&list, "request", "requests");
        }
        Ok(())
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
        let text = request.status_text.as_ref();
        table.row([
            request.queue.to_owned(),
            request.id.clone(),
            text.map_or_else(|| request.state.to_owned(), |text| format!("{} ({text})", request.state)),
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
        let text = brief(text, 64);
        UsageError(format!("{text} is not a request id: expected qid and ten digits, such as qid0000000042"))
    })
}
