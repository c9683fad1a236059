//! `queuekeeper standalone`: a whole repository on one machine.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::ingest::{DaemonArgs, unless_ended_at_once};
use super::listen::ListenArgs;
use super::{LogArgs, UsageError, on_signal, second_signal};
use crate::config::PrometheusDuration;
use crate::server;
use crate::server::standalone::DataDirectory;
use queuekeeper_ingest::access::AccessSettings;
use queuekeeper_zookeeper::ServerError;

/// Run a whole repository on one machine, kept in one directory
///
/// It starts its own ZooKeeper, all daemons, and the status page. Objects are kept as OCFL 1.1 below DIR/objects, the
/// inventory in DIR/catalogue.db, the collections' profiles in DIR/profiles, requested archives of objects in
/// DIR/deliveries, and, without a mail server, reports to depositors in DIR/reports. Objects are copied to DIR/copies
/// as set by the policies in DIR/policies. A restart resumes where it stopped.
#[derive(Clone, Debug, Args)]
pub(super) struct StandaloneArgs {
    /// The directory of the repository, which is created if it does not exist
    #[arg(long = "data", value_name = "DIR")]
    data: PathBuf,

    #[command(flatten)]
    daemons: DaemonArgs,

    /// How long requested archives are kept and links to them are valid
    #[arg(
        long = "access.lifetime",
        value_name = "DURATION",
        default_value_t = PrometheusDuration::from(AccessSettings::LIFETIME),
        help_heading = "Daemons"
    )]
    access_lifetime: PrometheusDuration,

    #[command(flatten)]
    listen: ListenArgs,

    #[command(flatten)]
    log: LogArgs,
}

impl StandaloneArgs {
    /// Runs it until SIGTERM or SIGINT; a second one ends it at once.
    ///
    /// # Errors
    /// When ZooKeeper is not installed ([`UsageError`]), an address cannot be bound, a part fails, or it was
    /// ended at once.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.log.begin();
        let (shutdown, signals) = on_signal().context("cannot listen to signals")?;
        let second = second_signal().context("cannot listen to signals")?;
        let data = DataDirectory::new(std::path::absolute(&self.data)?);
        let mut settings = self.daemons.settings(Some(data.reports()))?;
        let lifetime = self.access_lifetime.get();
        settings.access = data.stores()?.access().map(|access| AccessSettings { lifetime, ..access.clone() });
        let listeners = self.listen.listen().await?;
        let names = self.listen.names();
        let running = server::standalone::standalone(&data, settings, names, listeners, &shutdown);
        let outcome = Box::pin(unless_ended_at_once(second, running)).await;
        shutdown.cancel();
        signals.await.context("the task that waits for signals failed")?;
        outcome.map_err(|error| match error.downcast::<ServerError>() {
            Ok(ServerError::NotInstalled(what)) => UsageError(what).into(),
            Ok(error) => error.into(),
            Err(error) => error,
        })
    }
}
