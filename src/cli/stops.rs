//! What stops queues and collections: pauses and holds, as the commands list them.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::output::{Column, OutputArgs, Screen, Table};
use super::words::ago;

/// A queue or a collection, and whether it is stopped.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Stop {
    /// The queue, or the collection.
    name: String,
    /// Since when it is stopped; null while it is not.
    paused_since: Option<Timestamp>,
    /// By whom; empty if that is not recorded.
    by: String,
    /// Why; empty if that is not recorded.
    reason: String,
}

impl Stop {
    pub(super) fn new(name: &str, pause: Option<queuekeeper_queue::Pause>) -> Self {
        let name = name.to_owned();
        match pause {
            Some(pause) => Self { name, paused_since: Some(pause.since), by: pause.who, reason: pause.why },
            None => Self { name, paused_since: None, by: String::new(), reason: String::new() },
        }
    }
}

/// Lists them; `what` is the head of the first column.
pub(super) fn show(stops: &[Stop], output: OutputArgs, what: &'static str) -> anyhow::Result<()> {
    let now = Timestamp::now();
    output.list(&stops, stops, |screen: &mut Screen| {
        if stops.is_empty() {
            screen.say("No collection is held.");
        }
        let mut table = Table::new([
            Column::new(what),
            Column::new("STATE"),
            Column::number("FOR"),
            Column::rest("BY"),
            Column::rest("WHY"),
        ]);
        for stop in stops {
            let state = match (stop.paused_since, what) {
                (None, _) => "not paused",
                (Some(_), "QUEUE") => "paused",
                (Some(_), _) => "held",
            };
            let cells = [
                stop.name.clone(),
                state.to_owned(),
                ago(stop.paused_since, now),
                stop.by.clone(),
                stop.reason.clone(),
            ];
            table.row(cells);
        }
        screen.table(&table);
    })
}
