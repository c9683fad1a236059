//! `queuekeeper status`: is it flowing, and if not, where and why?

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::UsageError;
use super::client::ClientArgs;
use super::exit::CommandError;
use super::faults::{lasting, unconfirmed};
use super::output::{Column, Screen, Table};
use super::serve::volume::VolumeArgs;
use super::words::{ASSUMED, ago, count, moment, size, some};
use crate::alerts::{Foreign, RulesStatus, foreign};
use crate::config::ConfigFile;
use crate::metrics::storage::Storage;
use crate::mirror::words::counted;
use crate::views::faults::{FaultFilter, FaultList, Unconfirmed};
use crate::views::overview::{Overview, Recent, Severity};
use crate::views::{PageQuery, Source};
use queuekeeper_zookeeper::coordination::Coordination;

/// Show whether the queue flows, and if not, where and why
#[derive(Clone, Debug, Args)]
pub(super) struct StatusArgs {
    /// The configuration file of the server, which has the rules that act on alerts. Without it, only the state of
    /// rules in ZooKeeper is known
    #[arg(long = "config.file", value_name = "FILE", help_heading = "Rules")]
    file: Option<PathBuf>,

    #[command(flatten)]
    volume: VolumeArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl StatusArgs {
    /// Shows it.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let file = self.file.as_deref().map(ConfigFile::read).transpose();
        let file = file.map_err(|error| UsageError::flag("--config.file", error))?;
        let rules = file.as_ref().map(ConfigFile::rules);
        let volume = self.volume.clone().volume().map(|volume| Storage::measured(volume.path, volume.threshold));
        let (overview, faults, now) = self
            .client
            .ask(async |link| {
                let store = link.store(true).await?;
                let seen = Coordination::over(link.client.clone()).read().await;
                let now = Timestamp::now();
                let (standing, foreign) = match &seen {
                    Ok(seen) => {
                        (Some(RulesStatus::read(seen, rules, |at| store.own_time(at), now)), foreign(seen, now))
                    }
                    Err(error) => (None, (Foreign::unread(error).into_iter().collect(), 0)),
                };
                let source = Source { storage: volume.as_ref(), ..link.source(&store) };
                let faults =
                    source.faults(&FaultFilter::default(), &PageQuery::default(), now).map_err(CommandError::from)?;
                let summary = source.summary(now).map_err(CommandError::from)?;
                let recent = Recent { automation: standing, foreign, ..source.recent(now) };
                Ok((source.overview(&summary, &recent, now), faults, now))
            })
            .await?;
        let unseen = unseen(volume.is_some(), rules.is_some());
        self.client.output.show(&overview, |screen| show(&overview, &faults, &unseen, now, screen))
    }
}

/// What only the overview of a running server shows.
fn unseen(has_volume: bool, has_rules: bool) -> String {
    let mut unseen = Vec::new();
    if !has_volume {
        unseen.push("working storage (set --storage.path)");
    }
    if !has_rules {
        unseen.push("the rules that act on alerts (set --config.file)");
    }
    unseen.push("how fast jobs move");
    let last = unseen.pop().unwrap_or_default();
    let all = if unseen.is_empty() { last.to_owned() } else { format!("{}, and {last}", unseen.join(", ")) };
    format!("Not included: {all}. A running server (queuekeeper serve) shows all of it.")
}

fn show(overview: &Overview, faults: &FaultList, unseen: &str, now: Timestamp, screen: &mut Screen) {
    screen.say(&format!("{}.", overview.verdict.sentence));
    screen.say(&format!(
        "{} in {} at {}, {} unfinished.",
        counted(overview.jobs, "job", "jobs"),
        counted(overview.batches, "batch", "batches"),
        overview.status.servers,
        count(overview.unfinished)
    ));
    attention(overview, &faults.unconfirmed, now, screen);
    screen.gap();
    unconfirmed(&faults.unconfirmed, screen);
    screen.say(unseen);
    screen.gap();
    states(overview, now, screen);
    others(overview, now, screen);
    if !overview.status.clock_measured {
        screen.gap();
        screen.say(ASSUMED);
    }
}

fn attention(overview: &Overview, unconfirmed: &[Unconfirmed], now: Timestamp, screen: &mut Screen) {
    screen.gap();
    if overview.attention.is_empty() {
        screen.say(if lasting(unconfirmed).next().is_none() {
            "Nothing needs attention."
        } else {
            "Nothing is confirmed to need attention."
        });
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
