//! `queuekeeper status`: is it flowing, and if not, where and why?

use clap::Args;
use jiff::Timestamp;

use super::client::ClientArgs;
use super::exit::Ending;
use super::faults::unconfirmed;
use super::output::{Column, Screen, Table};
use super::words::{ASSUMED, ago, count, moment, size, some};
use crate::alerts::{Foreign, foreign};
use crate::coordination::Coordination;
use crate::mirror::words::counted;
use crate::web::views::faults::FaultList;
use crate::web::views::overview::{Overview, Severity};

/// What the overview of a running server shows besides.
const UNSEEN: &str = "Not looked at: working storage, how fast jobs move, and what the rules for alerts do. A running \
                      server (queuekeeper serve) shows these.";

/// Show whether the queue flows, and if not, where and why
#[derive(Clone, Debug, Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    client: ClientArgs,
}

impl StatusArgs {
    /// Shows it.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (overview, faults, now) = self
            .client
            .ask(async |link| {
                let answers = link.walk(true).await?;
                let seen = Coordination::over(link.client.clone()).read().await;
                let now = Timestamp::now();
                let foreign = match &seen {
                    Ok(seen) => foreign(seen, now),
                    Err(error) => (Foreign::unread(error).into_iter().collect(), 0),
                };
                let faults = answers.faults(&Vec::new(), now).map_err(Ending::from)?;
                Ok((answers.overview(foreign, now).map_err(Ending::from)?, faults, now))
            })
            .await?;
        self.client.output.show(&overview, |screen| show(&overview, &faults, now, screen))
    }
}

fn show(overview: &Overview, faults: &FaultList, now: Timestamp, screen: &mut Screen) {
    screen.say(&format!(
        "{} in {} at {}, {} not done.",
        counted(overview.jobs, "job", "jobs"),
        counted(overview.batches, "batch", "batches"),
        overview.status.servers,
        count(overview.unfinished)
    ));
    attention(overview, now, screen);
    screen.gap();
    unconfirmed(&faults.unconfirmed, screen);
    screen.say(UNSEEN);
    screen.gap();
    states(overview, now, screen);
    others(overview, now, screen);
    if !overview.status.clock_measured {
        screen.gap();
        screen.say(ASSUMED);
    }
}

fn attention(overview: &Overview, now: Timestamp, screen: &mut Screen) {
    screen.gap();
    if overview.attention.is_empty() {
        screen.say("Nothing needs attention.");
    }
    for item in &overview.attention {
        let mark = match item.severity {
            Severity::Bad => "!!",
            Severity::Warn => "! ",
        };
        let oldest = if item.is_oldest { "the oldest " } else { "" };
        let since = item.since.map(|since| format!(", {oldest}since {}", moment(Some(since), now))).unwrap_or_default();
        screen.say(&format!("{mark} {}{since}", item.title));
        for text in [&item.text, &item.remedy].into_iter().filter(|text| !text.is_empty()) {
            screen.beneath(text);
        }
    }
}

fn states(overview: &Overview, now: Timestamp, screen: &mut Screen) {
    let mut table = Table::new([
        Column::new("STATE"),
        Column::number("JOBS"),
        Column::number("LOCKED"),
        Column::number("RETRIED"),
        Column::number("OLDEST"),
        Column::number("SPACE"),
        Column::new(""),
    ]);
    for state in overview.states.iter().filter(|state| state.is_on_path || state.count > 0) {
        table.row([
            state.state.to_owned(),
            count(state.count),
            some(state.locked),
            some(state.retried),
            ago(state.oldest_entered, now),
            size(state.space_needed_bytes),
            if state.is_stopped { "stopped".to_owned() } else { String::new() },
        ]);
    }
    screen.table(&table);
}

fn others(overview: &Overview, now: Timestamp, screen: &mut Screen) {
    let mut table = Table::new([
        Column::new("BATCHES, REQUESTS, LOCKS"),
        Column::new("STATE"),
        Column::number("COUNT"),
        Column::number("OLDEST"),
    ]);
    for batches in overview.batch_states.iter().filter(|batches| batches.count > 0) {
        let oldest = ago(batches.oldest_entered, now);
        table.row(["batches".to_owned(), batches.state.to_owned(), count(batches.count), oldest]);
    }
    for requests in overview.access.iter().filter(|requests| requests.items.count > 0) {
        let (items, of) = (&requests.items, format!("{} access requests", requests.queue));
        table.row([of, items.state.to_owned(), count(items.count), ago(items.oldest_entered, now)]);
    }
    for locks in overview.locks.iter().filter(|locks| locks.count > 0) {
        let of = format!("locks: {}", locks.name);
        table.row([of, String::new(), count(locks.count), ago(locks.oldest_created, now)]);
    }
    screen.gap();
    screen.table(&table);
}
