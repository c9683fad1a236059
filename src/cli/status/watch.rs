//! `queuekeeper status --watch`: the same again and again, from a mirror that follows the queue.

use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use zookeeper_client::Client;

use super::{Beside, Found, Included, StatusArgs, show};
use crate::cli::client::source;
use crate::cli::exit::CommandError;
use crate::cli::output::Display;
use crate::cli::{UsageError, on_signal};
use crate::config::ConfigFile;
use crate::metrics::working_storage::MeasuredStorage;
use crate::mirror::{self, MirrorStore};
use crate::views::overview::OpenBitErrors;
use crate::views::status::Status;
use queuekeeper_zookeeper::coordination::{Coordination, CoordinationError, Snapshot};
use queuekeeper_zookeeper::{Config, Sessions};

/// The shortest interval: below it a terminal flickers.
const SHORTEST: Duration = Duration::from_millis(100);

/// How long the first walk may take before it is shown that there is nothing to show yet.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// How often it is looked whether it has ended.
const FIRST_LOOK: Duration = Duration::from_millis(20);

/// How often the open bit errors are read at most.
const BIT_ERRORS: Duration = Duration::from_secs(10);

/// What is known of the rules' state in ZooKeeper; `None` before it was read.
type Rules = Mutex<Option<Result<Snapshot, CoordinationError>>>;

/// Shows it until a signal ends it.
///
/// # Errors
/// When a flag or a file is wrong, or the output cannot be written.
pub(super) async fn watch(args: StatusArgs, file: Option<ConfigFile>) -> anyhow::Result<()> {
    let every = args.interval.get();
    if every < SHORTEST {
        return Err(UsageError::flag("--interval", format!("{} is less than 100ms", args.interval)).into());
    }
    let (config, limits) = args.client.settings()?;
    let (shutdown, signals) = on_signal().context("cannot listen to signals")?;
    let mut display = Display::new(args.client.output, format!("Every {}. Ctrl-C ends it.", args.interval))?;
    if !display.is_in_place() {
        // Messages would be written over what is drawn in place, which has the reason where it is not connected.
        crate::cli::log::begin_plain();
    }
    let volume = args.volume.volume().map(|volume| MeasuredStorage::new(volume.path, volume.threshold));
    let writer = mirror::Writer::with_limits(limits);
    let (store, rules) = (writer.store(), Rules::default());
    // What is drawn first has it.
    let bit_errors = Mutex::new(super::bit_errors(file.as_ref()).await);
    // No client scrapes this process.
    let metrics = mirror::Metrics::register(&mut Registry::default());
    let mirrored = Box::pin(mirror::run(Sessions::new(config.clone()), writer, metrics, None, shutdown.clone()));
    let measured = async {
        if let Some(volume) = volume.clone() {
            volume.poll(shutdown.clone()).await;
        }
        std::future::pending::<()>().await;
    };
    let source = source(&store, volume.as_ref(), &config);
    let shown = async {
        let included = Included { storage: volume.is_some(), rules: file.is_some(), rates: true };
        let mut resized = signal(SignalKind::window_change()).context("cannot listen to signals")?;
        // At first it is neither connected nor is anything read: that is only shown where it lasts.
        let first = async {
            while !store.freshness().is_synced() {
                sleep(FIRST_LOOK).await;
            }
        };
        // What could not be read by then is shown as such.
        let _ = timeout(FIRST_WAIT, first).await;
        let mut tick = interval(every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                _ = resized.recv(), if display.is_in_place() => {}
                () = shutdown.cancelled() => return Ok(()),
            }
            let now = Timestamp::now();
            let found = {
                let (seen, bit_errors) = (rules.lock(), bit_errors.lock().clone());
                let rules = file.as_ref().map(ConfigFile::rules);
                Found::new(&source, Beside { seen: seen.as_ref().map(Result::as_ref), rules, bit_errors }, now)
            };
            let is_open = if let Ok(found) = found {
                display.draw(&found.overview, |screen| show(&found, included, now, screen))?
            } else {
                // There is nothing to show before the first walk.
                let status = source.status(now);
                display.draw(&status, |screen| screen.say(&unread(&status)))?
            };
            if !is_open {
                return Ok(());
            }
        }
    };
    let outcome: anyhow::Result<()> = tokio::select! {
        outcome = shown => outcome,
        ended = mirrored => ended.map_err(|error| CommandError::from(error).into()),
        () = follow_rules(&config, &store, &rules, every) => Ok(()),
        () = follow_bit_errors(file.as_ref(), &bit_errors, every) => Ok(()),
        () = measured => Ok(()),
    };
    drop(display);
    shutdown.cancel();
    signals.await.context("the task that waits for signals failed")?;
    outcome
}

/// Why there is nothing to show yet.
fn unread(status: &Status) -> String {
    let Status { servers, problem, .. } = status;
    match (problem, status.connected) {
        (None, true) => format!("Reading the queue at {servers}."),
        (None, false) => format!("Not connected to ZooKeeper at {servers}."),
        (Some(problem), true) => ended(format!("The queue at {servers} cannot be read: {problem}")),
        (Some(problem), false) => ended(format!("Not connected to ZooKeeper at {servers}: {problem}")),
    }
}

/// A sentence with its full stop; the problem at its end may be a question.
fn ended(text: String) -> String {
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}

/// Reads the rules' state again and again, over a session of its own: the mirror's replaces itself.
async fn follow_rules(config: &Config, store: &MirrorStore, rules: &Rules, every: Duration) {
    let mut client: Option<Client> = None;
    loop {
        if store.freshness().is_connected() {
            if client.as_ref().is_none_or(|client| client.state().is_terminated()) {
                client = config.connect().await.ok();
            }
            if let Some(client) = &client {
                let read = Coordination::over(client.clone()).read().await;
                *rules.lock() = Some(read);
            }
        }
        sleep(every).await;
    }
}

/// Reads the open bit errors again and again, by a connection for each time: that is seldom.
async fn follow_bit_errors(file: Option<&ConfigFile>, bit_errors: &Mutex<OpenBitErrors>, every: Duration) {
    loop {
        sleep(every.max(BIT_ERRORS)).await;
        let read = super::bit_errors(file).await;
        *bit_errors.lock() = read;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_problem_that_is_a_question_gets_no_full_stop() {
        let ended = |text: &str| super::ended(format!("Not connected: {text}"));
        assert_eq!(ended("is the port correct?"), "Not connected: is the port correct?");
        assert_eq!(ended("refused"), "Not connected: refused.");
    }
}
