//! `queuekeeper demo`: a whole repository with made-up depositors, with no other service running.

use anyhow::Context as _;
use clap::Args;

use super::listen::ListenArgs;
use super::{LogArgs, UsageError, headings, on_signal};
use crate::demo::{self, MonitoringError, Options};
use queuekeeper_zookeeper::{ServerError, Servers};

/// The highest useful rate: beyond it ZooKeeper and the daemons are the limit.
const FASTEST: f64 = 2_000.0;

/// The lowest rate that still shows something.
const SLOWEST: f64 = 0.1;

/// Run a whole repository with made-up depositors in a temporary directory
///
/// A private ZooKeeper, all daemons, object stores as directories, an inventory, and the status page: deposits,
/// including yours, are fetched, stored, recorded and reported. Only the depositors, an operator and some faults are
/// simulated. Everything is removed at the end.
#[derive(Clone, Debug, Args)]
pub struct DemoArgs {
    /// The number of jobs that are finished when the demo begins, 10 to 500000
    #[arg(
        long = "jobs",
        value_name = "NUMBER",
        default_value_t = 2_000,
        value_parser = clap::value_parser!(u32).range(10..=500_000),
        help_heading = headings::DEMO
    )]
    jobs: u32,

    /// The approximate number of job transitions per second that deposits cause, which scales all times
    #[arg(
        long = "rate",
        value_name = "NUMBER",
        default_value_t = 10.0,
        value_parser = rate,
        help_heading = headings::DEMO
    )]
    rate: f64,

    /// The seed of all random choices
    #[arg(long = "seed", value_name = "NUMBER", default_value_t = 1, help_heading = headings::DEMO)]
    seed: u64,

    /// Use this ZooKeeper, below a znode that is removed at the end [default: a private one]
    // Not the variable of `serve`, which may be set to a production ZooKeeper.
    #[arg(long = "zookeeper", value_name = "CONNECT-STRING", help_heading = headings::DEMO)]
    zookeeper: Option<Servers>,

    /// Also start Prometheus and Alertmanager, configured to show alerts that trigger actions; both must be installed
    #[arg(long = "with-prometheus", help_heading = headings::DEMO)]
    with_prometheus: bool,

    #[command(flatten)]
    listen: ListenArgs,

    #[command(flatten)]
    log: LogArgs,
}

fn rate(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|rate| (SLOWEST..=FASTEST).contains(rate))
        .ok_or_else(|| format!("expected a number of transitions per second, {SLOWEST} to {FASTEST}"))
}

impl DemoArgs {
    /// Runs the demo until SIGTERM or SIGINT.
    ///
    /// # Errors
    /// When a program is not installed ([`UsageError`]), an address cannot be bound, or a part of the demo fails.
    pub async fn run(self) -> anyhow::Result<()> {
        self.log.begin_for_readers();
        if self.with_prometheus && self.rate > demo::FASTEST_WITH_PROMETHEUS {
            let why = format!(
                "the maximum with --with-prometheus is {}: beyond that a stall ends before its alert fires",
                demo::FASTEST_WITH_PROMETHEUS
            );
            return Err(UsageError::flag("--rate", why).into());
        }
        let (shutdown, signals) = on_signal().context("cannot listen to signals")?;
        let listeners = self.listen.listen().await?;
        let options = Options {
            jobs: usize::try_from(self.jobs).context("more jobs than this machine can address")?,
            rate: self.rate,
            seed: self.seed,
            zookeeper: self.zookeeper,
            with_prometheus: self.with_prometheus,
            names: self.listen.names(),
        };
        let outcome = demo::run(options, listeners, &shutdown).await;
        shutdown.cancel();
        signals.await.context("the task that waits for signals failed")?;
        outcome.map_err(|error| match error {
            demo::Error::Server(ServerError::NotInstalled(what))
            | demo::Error::Monitoring(MonitoringError::NotInstalled(what)) => UsageError(what).into(),
            error => error.into(),
        })
    }
}
