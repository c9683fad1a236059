//! `queuekeeper mill queues`: the queues, the loops, the workers, and what stands still.

use clap::Args;
use jiff::Timestamp;

use super::ConfigArgs;
use crate::cli::exit::{CommandError, FAILED};
use crate::cli::output::{Column, OutputArgs, Screen, Table, without_csv};
use crate::cli::words::{ago, count};
use crate::views::mill::{ForecastItem, Mill, MillOverview, ProducerItem, no_process};
use crate::views::show::Ago;
use crate::words::{counted, moment, size};

/// Show the queues, the loops and the workers, and what is stalled
///
/// Exits with 1 if something is stalled: dead letters, held tasks, spaces that cannot be scanned, policies that cannot
/// be read or wait for an admin, kinds of tasks without workers, pauses of more than a day, bit errors, or incomplete
/// reports on integrity.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct QueuesArgs {
    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl QueuesArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let view = async |mill: &Mill| {
            let now = Timestamp::now();
            Ok((mill.overview(now).await?, now))
        };
        let (overview, now) = self.config.ask(view).await?;
        self.output.show(&overview, |screen| show(&overview, now, screen))?;
        match overview.problems.first() {
            None => Ok(()),
            Some(problem) => Err(CommandError::new(FAILED, problem.trim_end_matches('.').to_owned()).into()),
        }
    }
}

fn show(overview: &MillOverview, now: Timestamp, screen: &mut Screen) {
    let mut table = Table::new([
        Column::new("QUEUE"),
        Column::number("WAITING"),
        Column::number("IN WORK"),
        Column::number("OLDEST"),
        Column::number("DONE/MIN"),
        Column::number("HELD"),
        Column::number("DEAD"),
        Column::number("PAUSED").if_filled(),
        Column::number("RESTORE").if_filled(),
    ]);
    for queue in &overview.queues {
        table.row([
            queue.queue.to_owned(),
            count(queue.waiting),
            count(queue.in_progress),
            ago(queue.oldest, now),
            format!("{:.1}", queue.done_per_minute),
            count(queue.held),
            count(queue.dead),
            if queue.paused > 0 { count(queue.paused) } else { String::new() },
            if queue.restore > 0 { count(queue.restore) } else { String::new() },
        ]);
    }
    screen.table(&table);
    for producer in &overview.producers {
        screen.gap();
        screen.say(&loop_line(producer, now));
        if let Some(rest) = &producer.forecast {
            screen.entry_beneath(&rest_line(rest));
        }
        let mut parts = Table::new([
            Column::rest("SPACE"),
            Column::new("STORES"),
            Column::number("LOOKED AT"),
            Column::number("OF"),
            Column::rest("ERROR").if_filled(),
        ]);
        for part in &producer.left {
            parts.row([
                format!("{}/{}", part.account, part.space),
                part.stores(),
                count(part.scanned),
                count(part.items.max(part.scanned)),
                if part.is_paused { "paused".to_owned() } else { part.error.clone().unwrap_or_default() },
            ]);
        }
        screen.table(&parts);
    }
    screen.gap();
    if overview.workers.is_empty() {
        screen.say(&format!("{}; start one with queuekeeper mill run", no_process()));
    }
    for process in &overview.workers {
        let kinds = process.kinds.join(", ");
        let running = ago(Some(process.started), now);
        screen.entry(&format!(
            "{}: {} of {} workers busy, running for {running}; {kinds}",
            process.process, process.busy, process.workers
        ));
    }
    for pause in &overview.pauses {
        let since = ago(Some(pause.since), now);
        let tasks = match pause.tasks {
            1 => "1 task waits".to_owned(),
            tasks => format!("{} tasks wait", count(tasks)),
        };
        screen.entry(&format!("{} is paused, for {since}, by {}: {}; {tasks}", pause.what, pause.user, pause.reason));
    }
    for limit in &overview.limits {
        let closed = limit.closed_until.map(|until| format!("; closed until {}", moment(until))).unwrap_or_default();
        screen.entry(&format!("{} in {}: {}{closed}", limit.account, limit.store, limit.limits));
    }
    for budget in &overview.budgets {
        let parts: Vec<_> = budget.parts().map(|part| part.words).collect();
        screen.entry(&format!("{}: {} in the last 24 h", budget.store, parts.join(", ")));
    }
    if !overview.problems.is_empty() {
        screen.gap();
        for problem in &overview.problems {
            screen.item("! ", problem);
        }
        screen.say("queuekeeper mill held, dead-letters, errors and policies show the details.");
    }
}

fn rest_line(rest: &ForecastItem) -> String {
    let cost = rest.cost.as_ref().map(|cost| format!(", {}", cost.words())).unwrap_or_default();
    let items = counted(rest.items, "item", "items");
    let requests = counted(rest.requests, "request", "requests");
    format!("left to check: {items}; {} to read, {requests}{cost}", size(rest.bytes))
}

fn loop_line(producer: &ProducerItem, now: Timestamp) -> String {
    let ProducerItem { producer: name, number, morsels, morsels_left, checking, scanned, items, .. } = producer;
    let until = |at: Option<Timestamp>| {
        at.and_then(|at| std::time::Duration::try_from(at.duration_since(now)).ok()).map(|left| Ago(left).to_string())
    };
    let next = until(producer.next_due).map(|left| format!("; the next one is due in {left}")).unwrap_or_default();
    match (number, morsels_left) {
        (0, _) => format!("{name}: no loop has begun yet"),
        (_, 0) if *checking > 0 => {
            let spaces = if *checking == 1 { "a space".to_owned() } else { format!("{} spaces", count(*checking)) };
            let ends = until(producer.ends).map(|left| format!("; ETA in {left}")).unwrap_or_default();
            format!("{name}: loop {number} has requested all checks, those of {spaces} have not ended{ends}{next}")
        }
        (_, 0) => format!("{name}: loop {number} is done{next}"),
        (_, left) => {
            let ends = until(producer.ends).map(|left| format!("; at this rate it ends in {left}")).unwrap_or_default();
            let (scanned, items) = (count(*scanned), counted((*items).max(*scanned), "item", "items"));
            let morsels = counted(*morsels, "part", "parts");
            format!("{name}: loop {number}, {left} of {morsels} left, {scanned} of {items} scanned{ends}{next}")
        }
    }
}
