//! `queuekeeper serve`: the server beside a queue.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tokio::signal::unix::Signal;
use tokio_util::sync::CancellationToken;

use super::{LogArgs, UsageError, ZooKeeperArgs, on_signal_and_hangups};
use crate::actions::audit::Audit;
use crate::actions::{self, Actions};
use crate::alerts::{self, Alerts};
use crate::config::{Config, ConfigFile, ListenAddress, Mirror, PrometheusDuration};
use crate::metrics::{self, queue, storage};
use crate::mirror::{self, READ_BUDGET_BYTES};
use crate::web as server;
use queuekeeper_zookeeper::Sessions;
use queuekeeper_zookeeper::coordination::{Coordination, CoordinationError};

mod audit;
pub(super) mod faults;
mod tasks;
pub(super) mod volume;
mod web;

/// The most collections that may have series of their own: 13 for each.
const MOST_COLLECTIONS: u16 = 200;

/// Serve the queue as metrics and a status page
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    zookeeper: ZooKeeperArgs,

    #[command(flatten)]
    web: web::WebArgs,

    /// A stale image makes /-/ready fail after this time
    #[arg(
        long = "mirror.stale-after",
        env = "QUEUEKEEPER_MIRROR_STALE_AFTER",
        hide_env_values = true,
        value_name = "DURATION",
        default_value_t = Mirror::STALE_AFTER.into(),
        help_heading = "Mirror"
    )]
    stale_after: PrometheusDuration,

    /// The queue's own series are left out of the metrics after the image was stale for this time
    #[arg(
        long = "mirror.drop-after",
        env = "QUEUEKEEPER_MIRROR_DROP_AFTER",
        hide_env_values = true,
        value_name = "DURATION",
        default_value_t = Mirror::DROP_AFTER.into(),
        help_heading = "Mirror"
    )]
    drop_after: PrometheusDuration,

    /// How often to read the tree again and compare; 0 for never, else at least 10s. Without it, a change of a znode's ACL
    /// is noticed only when something else of the same job, batch or request changes
    #[arg(
        long = "mirror.drift-interval",
        env = "QUEUEKEEPER_MIRROR_DRIFT_INTERVAL",
        hide_env_values = true,
        value_name = "DURATION",
        default_value_t = Mirror::DRIFT_INTERVAL.into(),
        help_heading = "Mirror"
    )]
    drift_interval: PrometheusDuration,

    /// How often to measure the clock of the ZooKeeper servers by a write to /queuekeeper/clock; 0 for never, else at
    /// least 1m
    #[arg(
        long = "mirror.clock-interval",
        env = "QUEUEKEEPER_MIRROR_CLOCK_INTERVAL",
        hide_env_values = true,
        value_name = "DURATION",
        default_value_t = Mirror::CLOCK_INTERVAL.into(),
        help_heading = "Mirror"
    )]
    clock_interval: PrometheusDuration,

    /// How much data the mirror and the pages that show a znode may have in flight at once, in MiB, by the sizes of what
    /// was read before. ZooKeeper keeps it in memory until it is sent. What actions and repairs read is bounded apart
    /// from this
    #[arg(
        long = "mirror.read-budget",
        env = "QUEUEKEEPER_MIRROR_READ_BUDGET",
        hide_env_values = true,
        value_name = "MIB",
        default_value_t = READ_BUDGET_BYTES >> 20,
        value_parser = clap::value_parser!(u64).range(1..=1024),
        help_heading = "Mirror"
    )]
    read_budget: u64,

    #[command(flatten)]
    storage: volume::VolumeArgs,

    /// How many collections get series of their own, the largest; the others are one together, and with 0 there are none
    #[arg(
        long = "metrics.collections",
        env = "QUEUEKEEPER_METRICS_COLLECTIONS",
        hide_env_values = true,
        value_name = "NUMBER",
        default_value_t = 0,
        value_parser = clap::value_parser!(u16).range(0..=i64::from(MOST_COLLECTIONS)),
        help_heading = "Metrics"
    )]
    collections: u16,

    /// File that says who may request something, and where the tokens are; taken up when it changes. Without it nobody may
    #[arg(
        long = "config.file",
        env = "QUEUEKEEPER_CONFIG_FILE",
        hide_env_values = true,
        value_name = "FILE",
        help_heading = "Actions"
    )]
    actions_file: Option<PathBuf>,

    #[command(flatten)]
    audit: audit::AuditArgs,

    #[command(flatten)]
    faults: faults::FaultArgs,

    #[command(flatten)]
    log: LogArgs,
}

impl ServeArgs {
    /// Serves until SIGTERM or SIGINT. SIGHUP has the configuration and the audit file looked at again.
    ///
    /// # Errors
    /// When a flag is wrong ([`UsageError`]), an address cannot be listened on, or a part of the server fails.
    pub async fn run(self) -> anyhow::Result<()> {
        let addresses = self.web.listen_address.clone();
        self.log.begin();
        // Before anything else: a hangup in between would end the process.
        let (shutdown, signals, hangups) = on_signal_and_hangups().context("cannot listen to signals")?;
        let config = self.config()?;
        let listeners = listen(&addresses).await?;
        let outcome = serve_with(volume(&config), config, listeners, Some(hangups), &shutdown).await;
        shutdown.cancel();
        signals.await.context("the task that waits for signals failed")?;
        outcome
    }

    fn config(self) -> Result<Config, UsageError> {
        let mirror = Mirror {
            stale_after: self.stale_after.get(),
            drop_after: self.drop_after.get(),
            drift_interval: Some(self.drift_interval.get()).filter(|interval| !interval.is_zero()),
            clock_interval: Some(self.clock_interval.get()).filter(|interval| !interval.is_zero()),
            read_budget_bytes: self.read_budget << 20,
            fault_limits: self.faults.limits(),
        };
        if mirror.clock_interval.is_some_and(|interval| interval < Duration::from_mins(1)) {
            let why = format!("{} is less than 1m; 0 is never", self.clock_interval);
            return Err(UsageError::flag("--mirror.clock-interval", why));
        }
        if mirror.drift_interval.is_some_and(|interval| interval < Duration::from_secs(10)) {
            let why = format!("{} is less than 10s, which would keep ZooKeeper busy; 0 is never", self.drift_interval);
            return Err(UsageError::flag("--mirror.drift-interval", why));
        }
        let web = self.web.config()?;
        let file = self.actions_file.map(|path| {
            let file = ConfigFile::read(&path)?;
            file.goes_with(web.file.as_ref()).map(|()| file)
        });
        Ok(Config {
            zookeeper: self.zookeeper.config()?,
            web,
            audit: self.audit.destination(),
            file: file.transpose().map_err(|error| UsageError::flag("--config.file", error))?,
            mirror,
            storage: self.storage.volume(),
            collections: usize::from(self.collections),
        })
    }
}

/// Binds every address, all of them or none.
///
/// # Errors
/// Names the address that cannot be listened on, and why.
pub async fn listen(addresses: &[ListenAddress]) -> anyhow::Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    for address in addresses {
        let listener = address.bind().await.with_context(|| {
            format!("cannot listen on {address}; free it, or name another with --web.listen-address")
        })?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Serves a queue on the listeners until `shutdown`, and ends within two seconds of it.
///
/// # Errors
/// When a part of the server fails or ends by itself: without the mirror the others would serve yesterday's picture.
pub async fn serve(config: Config, listeners: Vec<TcpListener>, shutdown: &CancellationToken) -> anyhow::Result<()> {
    serve_beside(volume(&config), config, listeners, shutdown).await
}

fn volume(config: &Config) -> Option<storage::Storage> {
    config.storage.clone().map(|volume| storage::Storage::new(volume.path, volume.threshold))
}

/// The same beside a volume that is there already, such as a simulated one; what `config` says of storage is not used.
///
/// # Errors
/// As [`serve`].
pub async fn serve_beside(
    volume: Option<storage::Storage>,
    config: Config,
    listeners: Vec<TcpListener>,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    serve_with(volume, config, listeners, None, shutdown).await
}

async fn serve_with(
    volume: Option<storage::Storage>,
    config: Config,
    listeners: Vec<TcpListener>,
    hangups: Option<Signal>,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let opened = Audit::open(config.audit.clone());
    let (audit, mut trail) = opened.map_err(|error| UsageError::flag("--audit.file", error))?;
    if config.file.as_ref().is_some_and(|file| !file.rules().rules.is_empty()) {
        trail.open_alerts().map_err(|error| UsageError::flag("--audit.file", error))?;
    }
    let mut tasks = tasks::Tasks::new(shutdown);
    let mut registry = metrics::registry();

    let writer = mirror::Writer::with_limits(config.mirror.fault_limits.clone())
        .with_read_budget(config.mirror.read_budget_bytes);
    let store = writer.store();
    let (coordination, keeper) = Coordination::new(config.zookeeper.acl.clone());
    if let Some(period) = config.mirror.clock_interval {
        let (timekeeper, coordination) = (writer.timekeeper(), coordination.clone());
        tasks.spawn("the clock", move |shutdown| async move {
            let ask = async || coordination.time().await.map_err(|error| no_time(&error));
            timekeeper.run(period, ask, shutdown).await;
            Ok(())
        });
    }
    let sessions = Sessions::new(config.zookeeper.clone());
    let seen = mirror::Metrics::register(&mut registry);
    let drift_interval = config.mirror.drift_interval;
    tasks.spawn("the mirror", move |shutdown| async move {
        Ok(mirror::run(sessions, writer, seen, drift_interval, shutdown).await?)
    });

    if let Some(volume) = volume.clone() {
        tasks.spawn("the measuring of working storage", |shutdown| async {
            volume.poll(shutdown).await;
            Ok(())
        });
    }
    queue::Queue {
        store: store.clone(),
        storage: volume.clone(),
        drop_after: config.mirror.drop_after,
        collections: config.collections,
    }
    .register(&mut registry);

    let tls = config.web.file.as_ref().is_some_and(|file| file.tls().is_some());
    for listener in &listeners {
        let address = listener.local_addr().context("a listener has no address")?;
        tracing::info!(%address, tls, prefix = config.web.route_prefix.as_str(), zookeeper = %config.zookeeper.servers, "listening");
    }
    let (limits, counted) = (config.mirror.fault_limits.clone(), actions::Metrics::register(&mut registry));
    let trail_of_hangups = audit.clone();
    let (actions, runner) = Actions::new(store.clone(), limits, (audit, trail), counted);
    let sessions = Sessions::new(config.zookeeper.clone());
    tasks.spawn("the actions", |shutdown| async { Ok(runner.run(sessions, shutdown).await?) });

    let (space, counted) = (volume.clone(), alerts::Metrics::register(&mut registry));
    let space = move || space.as_ref().and_then(storage::Storage::left_bytes);
    let rules = config.file.as_ref().map(|file| file.rules().clone()).unwrap_or_default();
    let (alerts, runner) = Alerts::new(store.clone(), space, actions.clone(), coordination, rules, counted);
    let (sessions, wanted) = (Sessions::new(config.zookeeper.clone()), alerts.wanted());
    tasks.spawn("the coordination", |shutdown| async { Ok(keeper.run(sessions, wanted, shutdown).await?) });
    tasks.spawn("the rules", |shutdown| async {
        runner.run(shutdown).await;
        Ok(())
    });

    let state = server::State::new(config, store, volume, Some(actions), registry).with_alerts(alerts);
    if let Some(mut hangups) = hangups {
        let state = state.clone();
        tasks.spawn("the reload on SIGHUP", |shutdown| async move {
            while shutdown.run_until_cancelled(hangups.recv()).await.flatten().is_some() {
                tracing::info!("received SIGHUP: looking at the configuration and the audit file again");
                trail_of_hangups.find_again().await;
                state.reload();
            }
            shutdown.cancelled().await;
            Ok(())
        });
    }
    tasks.spawn("the web server", |shutdown| async { Ok(server::run(listeners, state, shutdown).await?) });
    tasks.join().await
}

/// Why the servers' time is not known, as the mirror takes it.
fn no_time(error: &CoordinationError) -> mirror::NoTime {
    let why = error.to_string();
    match error {
        CoordinationError::NotConnected | CoordinationError::Unanswered(_) => mirror::NoTime::Unanswered(why),
        CoordinationError::Changed { .. } | CoordinationError::Crowded { .. } | CoordinationError::Refused { .. } => {
            mirror::NoTime::Refused(why)
        }
    }
}
