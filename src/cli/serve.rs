//! `queuekeeper serve`: the server beside a queue.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use super::{LogArgs, UsageError, on_signal_and_hangups};
use crate::actions::audit::AuditError;
use crate::config::{Config, ConfigFile, Mirror, PrometheusDuration, Queues};
use crate::mirror::READ_BUDGET_BYTES;
use crate::server::{self, deployments};

mod audit;
mod deposits;
pub(super) mod faults;
mod prometheus;
mod queues;
pub(super) mod volume;
mod web;

/// The maximum number of collections with their own series, 13 for each.
const MOST_COLLECTIONS: u16 = 200;

/// Serve metrics and a status page of the queue
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    queues: queues::QueueArgs,

    #[command(flatten)]
    web: web::WebArgs,

    /// The time after which a stale mirror makes /-/ready fail
    #[arg(
        long = "mirror.stale-after",
        value_name = "DURATION",
        default_value_t = Mirror::STALE_AFTER.into(),
        help_heading = "Mirror"
    )]
    stale_after: PrometheusDuration,

    /// The time after which the series of the queue are no longer exported while the mirror is stale
    #[arg(
        long = "mirror.drop-after",
        value_name = "DURATION",
        default_value_t = Mirror::DROP_AFTER.into(),
        help_heading = "Mirror"
    )]
    drop_after: PrometheusDuration,

    /// How often to compare the mirror with the tree; 0 for never, else at least 10s. Without it, a change of a znode's
    /// ACL is noticed only when something else of the same job, batch or request changes
    #[arg(
        long = "mirror.drift-interval",
        value_name = "DURATION",
        default_value_t = Mirror::DRIFT_INTERVAL.into(),
        help_heading = "Mirror"
    )]
    drift_interval: PrometheusDuration,

    /// How often to measure the clock of the ZooKeeper servers by a write to /queuekeeper/clock; 0 for never, else at
    /// least 1m
    #[arg(
        long = "mirror.clock-interval",
        value_name = "DURATION",
        default_value_t = Mirror::CLOCK_INTERVAL.into(),
        help_heading = "Mirror"
    )]
    clock_interval: PrometheusDuration,

    /// Show the address of the client next to each session, and the name of its host where reverse DNS has one. The
    /// addresses are read from the ZooKeeper servers every 10 s by the command cons, which their
    /// 4lw.commands.whitelist must allow
    #[arg(long = "mirror.session-addresses", help_heading = "Mirror")]
    session_addresses: bool,

    /// The amount of data, in MiB, that the mirror and the pages that show a znode may request at the same time,
    /// estimated from the sizes of earlier reads. ZooKeeper keeps it in memory until it is sent. Actions and repairs
    /// have their own limits
    #[arg(
        long = "mirror.read-budget",
        value_name = "MIB",
        default_value_t = READ_BUDGET_BYTES >> 20,
        value_parser = clap::value_parser!(u64).range(1..=1024),
        help_heading = "Mirror"
    )]
    read_budget: u64,

    #[command(flatten)]
    storage: volume::VolumeArgs,

    #[command(flatten)]
    prometheus: prometheus::PrometheusArgs,

    /// The number of collections with their own series, those with the most unfinished jobs; the others are exported
    /// together. 0 for no series by collection
    #[arg(
        long = "metrics.collections",
        value_name = "NUMBER",
        default_value_t = Config::COLLECTIONS,
        value_parser = clap::value_parser!(u16).range(0..=i64::from(MOST_COLLECTIONS)),
        help_heading = "Metrics"
    )]
    collections: u16,

    /// File of the users' roles and the tokens; reloaded when it changes. Without it, no action is allowed
    #[arg(long = "config.file", value_name = "FILE", help_heading = "Actions")]
    actions_file: Option<PathBuf>,

    #[command(flatten)]
    audit: audit::AuditArgs,

    #[command(flatten)]
    deposits: deposits::DepositArgs,

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
        let (config, queues) = self.config()?;
        let listeners = server::listen(&addresses).await?;
        let served = match queues {
            Queues::One(_) => {
                let beside = server::Beside { hangups: Some(hangups), ..server::Beside::default() };
                server::serve_with(server::volume(&config), config, listeners, beside, &shutdown).await
            }
            Queues::Named(queues) => deployments::serve(config, queues, listeners, Some(hangups), &shutdown).await,
        };
        let outcome = served.map_err(|error| match error.downcast::<AuditError>() {
            Ok(error) => UsageError::flag("--audit.file", error).into(),
            Err(error) => error,
        });
        shutdown.cancel();
        signals.await.context("the task that waits for signals failed")?;
        outcome
    }

    fn config(self) -> Result<(Config, Queues), UsageError> {
        let mirror = Mirror {
            stale_after: self.stale_after.get(),
            drop_after: self.drop_after.get(),
            drift_interval: Some(self.drift_interval.get()).filter(|interval| !interval.is_zero()),
            clock_interval: Some(self.clock_interval.get()).filter(|interval| !interval.is_zero()),
            session_addresses: self.session_addresses,
            read_budget_bytes: self.read_budget << 20,
            fault_limits: self.faults.limits(),
            stalled_after: Mirror::STALLED_AFTER,
        };
        if mirror.clock_interval.is_some_and(|interval| interval < Duration::from_mins(1)) {
            let why = format!("{} is less than 1m; 0 disables it", self.clock_interval);
            return Err(UsageError::flag("--mirror.clock-interval", why));
        }
        if mirror.drift_interval.is_some_and(|interval| interval < Duration::from_secs(10)) {
            let why =
                format!("{} is less than 10s, which would put load on ZooKeeper; 0 disables it", self.drift_interval);
            return Err(UsageError::flag("--mirror.drift-interval", why));
        }
        let web = self.web.config()?;
        let (zookeeper, queues) = self.queues.config(&web.telemetry_path)?;
        let file = self.actions_file.map(|path| {
            let file = ConfigFile::read(&path)?;
            file.check_users(web.file.as_ref()).map(|()| file)
        });
        let file = file.transpose().map_err(|error| UsageError::flag("--config.file", error))?;
        let config = Config {
            zookeeper,
            deposits: self.deposits.deposits(file.as_ref())?,
            web,
            audit: self.audit.destination(),
            file,
            mirror,
            storage: self.storage.volume(),
            prometheus: self.prometheus.prometheus()?,
            collections: usize::from(self.collections),
            mill: None,
        };
        if matches!(queues, Queues::Named(_)) {
            deployments::check(&config).map_err(|error| UsageError::flag(error.flag, error))?;
        }
        Ok((config, queues))
    }
}
