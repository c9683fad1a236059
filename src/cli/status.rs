//! `queuekeeper status`: is it flowing, and if not, where and why?

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;

use super::UsageError;
use super::client::ClientArgs;
use super::exit::CommandError;
use super::faults::{Looked, lasting, unconfirmed};
use super::output::{Column, Screen, Table, without_csv};
use super::serve::volume::VolumeArgs;
use super::words::{ASSUMED, ago, count, moment, size, some};
use crate::alerts::{Foreign, Rules, RulesStatus, foreign};
use crate::config::{ConfigFile, PrometheusDuration};
use crate::metrics::working_storage::MeasuredStorage;
use crate::views::faults::{FaultFilter, FaultList, Unconfirmed};
use crate::views::mill::open_bit_errors;
use crate::views::overview::{OpenBitErrors, Overview, Recent, Severity, StateFigures, VerdictKind, rounded};
use crate::views::{PageQuery, ViewError, ViewSource};
use crate::words::{about, counted};
use queuekeeper_zookeeper::coordination::{Coordination, CoordinationError, Snapshot};

mod watch;

/// Show whether the queue is moving, and if not, where and why
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct StatusArgs {
    /// Show it repeatedly until Ctrl-C, in place on a terminal
    #[arg(short, long, help_heading = None::<&str>)]
    watch: bool,

    /// The interval of --watch, at least 100ms
    #[arg(long, value_name = "DURATION", default_value = "2s", requires = "watch", help_heading = None::<&str>)]
    interval: PrometheusDuration,

    #[command(flatten)]
    client: ClientArgs,

    /// The configuration file of the server, which has the rules that act on alerts, and the catalogue with the open
    /// bit errors of the mill. Without it, only the state of rules in ZooKeeper is known
    #[arg(long = "config.file", value_name = "FILE", help_heading = "Rules")]
    file: Option<PathBuf>,

    #[command(flatten)]
    volume: VolumeArgs,
}

impl StatusArgs {
    /// Shows it, once or until a signal.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let file = self.file.as_deref().map(ConfigFile::read).transpose();
        let file = file.map_err(|error| UsageError::flag("--config.file", error))?;
        if self.watch { watch::watch(self, file).await } else { self.once(file.as_ref()).await }
    }

    async fn once(self, file: Option<&ConfigFile>) -> anyhow::Result<()> {
        let (rules, bit_errors) = (file.map(ConfigFile::rules), bit_errors(file).await);
        let volume =
            self.volume.clone().volume().map(|volume| MeasuredStorage::read_once(volume.path, volume.threshold));
        let (found, now) = self
            .client
            .ask(async |link| {
                let store = link.store(true).await?;
                let seen = Coordination::over(link.client.clone()).read().await;
                let now = Timestamp::now();
                let source = ViewSource { storage: volume.as_ref(), ..link.source(&store) };
                let beside = Beside { seen: Some(seen.as_ref()), rules, bit_errors };
                Ok((Found::new(&source, beside, now).map_err(CommandError::from)?, now))
            })
            .await?;
        // A single walk does not show how fast jobs move.
        let included = Included { storage: volume.is_some(), rules: rules.is_some(), rates: false };
        self.client.output.show(&found.overview, |screen| show(&found, included, now, screen))
    }
}

/// For how long the queue has to be watched before the number of finished jobs says something.
const TELLING_SECONDS: u64 = 10;

/// What there is beside the mirror.
struct Beside<'a> {
    /// What is below /queuekeeper; `None` before it was read.
    seen: Option<Result<&'a Snapshot, &'a CoordinationError>>,
    /// The rules of the configuration file.
    rules: Option<&'a Rules>,
    /// The open bit errors of its catalogue.
    bit_errors: OpenBitErrors,
}

/// The open bit errors of the catalogue in a configuration file that has a mill, too. Neither is changed.
async fn bit_errors(file: Option<&ConfigFile>) -> OpenBitErrors {
    let with_mill = file.filter(|file| file.mill().is_some());
    let Some(url) = with_mill.and_then(|file| file.stores().catalogue()) else { return OpenBitErrors::NotRead };
    let unknown = |error| OpenBitErrors::Unknown(format!("the catalogue cannot be read: {error}"));
    let catalogue = match Catalogue::open_as_is(url.expose()).await {
        Ok(catalogue) => catalogue,
        Err(error) => return unknown(error),
    };
    let open = open_bit_errors(&catalogue).await;
    catalogue.close().await;
    open.unwrap_or_else(unknown)
}

/// What is to be shown.
struct Found {
    overview: Overview,
    faults: FaultList,
}

impl Found {
    /// # Errors
    /// Before the first walk.
    fn new(source: &ViewSource<'_>, beside: Beside<'_>, now: Timestamp) -> Result<Self, ViewError> {
        let Beside { seen, rules, bit_errors } = beside;
        let (automation, foreign) = match seen {
            None => (None, (Vec::new(), 0)),
            Some(Ok(seen)) => {
                (Some(RulesStatus::read(seen, rules, |at| source.store.own_time(at), now)), foreign(seen, now))
            }
            Some(Err(error)) => (None, (Foreign::unread(error).into_iter().collect(), 0)),
        };
        let faults = source.faults(&FaultFilter::default(), &PageQuery::default(), now)?;
        let summary = source.summary(now)?;
        let recent = Recent { automation, foreign, bit_errors, ..source.recent(now) };
        Ok(Self { overview: source.overview(&summary, &recent, now), faults })
    }
}

/// What is known beside the queue.
#[derive(Clone, Copy, Debug)]
struct Included {
    storage: bool,
    rules: bool,
    /// How fast jobs move, and what lasts.
    rates: bool,
}

impl Included {
    /// What only the overview of a running server shows; empty where nothing is missing.
    fn missing(self) -> String {
        let all = [
            (self.storage, "working storage (set --storage.path)"),
            (self.rules, "the rules that act on alerts, and bit errors of the mill (set --config.file)"),
            (self.rates, "how fast jobs move (set --watch)"),
        ];
        let missing: Vec<_> = all.into_iter().filter(|(is_included, _)| !is_included).map(|(_, name)| name).collect();
        let Some((last, others)) = missing.split_last() else { return String::new() };
        let all = match others {
            [] => (*last).to_owned(),
            [one] => format!("{one} and {last}"),
            others => format!("{}, and {last}", others.join(", ")),
        };
        format!("Not included: {all}. A running server (queuekeeper serve) shows all of it.")
    }
}

fn show(found: &Found, included: Included, now: Timestamp, screen: &mut Screen) {
    let Found { overview, faults } = found;
    screen.say(&format!("{}.", overview.verdict.sentence));
    if !included.rates && overview.verdict.kind == VerdictKind::Unknown {
        screen.say("A single read cannot show whether the queue is moving; --watch can.");
    }
    screen.say(&format!(
        "{} in {} at {}, {} under way.",
        counted(overview.jobs, "job", "jobs"),
        counted(overview.batches, "batch", "batches"),
        overview.status.servers,
        count(overview.under_way)
    ));
    if included.rates && overview.watched_seconds >= TELLING_SECONDS {
        screen.say(&finished(overview));
    }
    if included.rates {
        // Where it is drawn in place, what does not fit is not shown.
        screen.gap();
        states(overview, now, screen);
    }
    attention(overview, &faults.unconfirmed, now, screen);
    screen.gap();
    unconfirmed(&faults.unconfirmed, if included.rates { Looked::Watched } else { Looked::Once }, screen);
    let missing = included.missing();
    if !missing.is_empty() {
        screen.say(&missing);
        screen.gap();
    }
    if !included.rates {
        states(overview, now, screen);
        screen.gap();
    }
    others(overview, now, screen);
    if !overview.status.clock_measured {
        screen.gap();
        screen.say(ASSUMED);
    }
}

/// The jobs that finished lately.
fn finished(overview: &Overview) -> String {
    let completed = counted(overview.completed_1h, "job", "jobs");
    let watched = match overview.watched() {
        watched if watched.starts_with("in ") => watched,
        watched => format!("in the {watched}"),
    };
    format!("{completed} completed and {} failed {watched}.", count(overview.failed_1h))
}

fn attention(overview: &Overview, unconfirmed: &[Unconfirmed], now: Timestamp, screen: &mut Screen) {
    screen.gap();
    if overview.attention.is_empty() {
        screen.say(if lasting(unconfirmed).next().is_none() {
            "The queue needs no attention."
        } else {
            "Nothing has been confirmed to need attention."
        });
    }
    for item in &overview.attention {
        let mark = match item.severity {
            Severity::Bad => "!! ",
            Severity::Warn => "!  ",
        };
        let oldest = if item.is_oldest { "the oldest " } else { "" };
        let since = item.since.map(|since| format!(", {oldest}since {}", moment(Some(since), now))).unwrap_or_default();
        screen.item(mark, &format!("{}{since}", item.title));
        for text in [&item.text, &item.fix].into_iter().filter(|text| !text.is_empty()) {
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
        Column::number("LEFT/H").if_filled(),
        Column::new("").if_filled(),
    ]);
    for state in overview.states.iter().filter(|state| state.is_on_path || state.count > 0) {
        table.row([
            state.state.to_owned(),
            count(state.count),
            some(state.locked),
            some(state.retried),
            ago(state.oldest_entered, now),
            size(state.space_needed_bytes),
            rate(state),
            if state.is_stopped { "stopped".to_owned() } else { String::new() },
        ]);
    }
    screen.table(&table);
}

/// How many jobs leave a state an hour. None leaves the last states by itself, so that there 0 says nothing.
fn rate(state: &StateFigures) -> String {
    let is_worked_on = state.is_on_path && !state.is_final;
    match state.left_per_hour {
        Some(per_hour) if per_hour > 0.0 => about(rounded(per_hour)),
        Some(_) if is_worked_on => "0".to_owned(),
        Some(_) | None => String::new(),
    }
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
        let of = format!("locks: {}", locks.title.to_lowercase());
        table.row([of, String::new(), count(locks.count), ago(locks.oldest_created, now)]);
    }
    screen.table(&table);
}
