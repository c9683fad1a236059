//! `queuekeeper ingest`: the daemons that work on a queue.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use queuekeeper_ingest::cleanup::CleanupSettings;
use queuekeeper_ingest::daemon::{Daemon, UnknownDaemon};
use queuekeeper_ingest::fetch::HostLimits;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_ingest::space::Rules;
use url::Url;

use super::mail::MailArgs;
use super::{LogArgs, UsageError, ZooKeeperArgs, headings, on_signal, second_signal};
use crate::config::{ConfigFile, ExternalUrl, ListenAddress, Network, PrometheusDuration, worker_bounds};
use crate::server;
use crate::server::ingest::{Ingest, ServedWorking};
use crate::web::working::PATH;

/// Run the daemons that work on the queue
///
/// They take batches and jobs from the queue in ZooKeeper: create jobs, fetch content into the working storage, store
/// it as OCFL objects, write the inventory, and report. Any number of such processes, on any number of hosts, share the
/// queue. The stores and the catalogue are those of --config.file.
#[derive(Clone, Debug, Args)]
pub(super) struct IngestArgs {
    /// The directory of the collections' profiles, one YAML file for each
    #[arg(long = "profiles", value_name = "DIR")]
    profiles: PathBuf,

    /// The directory of the working storage
    #[arg(long = "working", value_name = "DIR")]
    working: PathBuf,

    /// File with the stores and the catalogue
    #[arg(long = "config.file", value_name = "FILE")]
    config_file: PathBuf,

    #[command(flatten)]
    daemons: DaemonArgs,

    /// The address of metrics and probes: host:port, or :port for every interface; may be repeated
    #[arg(
        long = "web.listen-address",
        value_name = "ADDRESS",
        value_delimiter = ',',
        default_value = "127.0.0.1:12182",
        help_heading = headings::PROBES
    )]
    listen_address: Vec<ListenAddress>,

    #[command(flatten)]
    served: ServedArgs,

    #[command(flatten)]
    zookeeper: ZooKeeperArgs,

    #[command(flatten)]
    log: LogArgs,
}

/// How Java's daemons read the working storage.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Java's daemons")]
struct ServedArgs {
    /// Serve the directories of jobs at /ingestqueue/ of this address, without a login: for a private network
    #[arg(long = "serve-working", value_name = "ADDRESS", requires = "working_url")]
    serve_working: Option<ListenAddress>,

    /// The URL under which other hosts reach that address, or that of another process: http://host:port; it is used in
    /// manifests
    #[arg(long = "serve-working.url", value_name = "URL")]
    working_url: Option<ExternalUrl>,

    /// Serve only clients in this network, such as 10.0.0.0/8; may be repeated
    #[arg(long = "serve-working.allow", value_name = "NETWORK", value_delimiter = ',', requires = "serve_working")]
    serve_working_allow: Vec<Network>,
}

impl ServedArgs {
    /// The URL that manifests begin with.
    fn url(&self) -> Result<Option<Url>, UsageError> {
        let Some(url) = &self.working_url else { return Ok(None) };
        let url = format!("{}{PATH}", url.to_string().trim_end_matches('/'));
        url.parse().map(Some).map_err(|error| UsageError::flag("--serve-working.url", error))
    }

    /// Binds the address.
    async fn bind(&self) -> anyhow::Result<Option<ServedWorking>> {
        let Some(address) = &self.serve_working else { return Ok(None) };
        let listener = address
            .bind()
            .await
            .with_context(|| format!("cannot listen on {address}; free it, or set another one with --serve-working"))?;
        Ok(Some(ServedWorking { listener, networks: self.serve_working_allow.clone() }))
    }
}

/// How the daemons work.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Daemons")]
pub(super) struct DaemonArgs {
    /// Which daemons run here, by their names, separated by commas; or all
    #[arg(
        long = "daemons",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "all",
        value_parser = chosen,
        long_help = help_of_daemons()
    )]
    daemons: Vec<Chosen>,

    /// The number of workers of a daemon, such as downloading=4; with a range, such as downloading=2-16, workers are
    /// added while jobs wait for one; may be repeated. The key workers in the --config.file of ingest overrides this
    /// and is reloaded when it changes
    #[arg(long = "workers", value_name = "DAEMON=NUMBER", value_delimiter = ',', value_parser = workers)]
    workers: Vec<(Daemon, RangeInclusive<usize>)>,

    /// The number of files of a job that are fetched at the same time
    #[arg(
        long = "download.connections",
        value_name = "NUMBER",
        default_value_t = Settings::CONNECTIONS,
        value_parser = clap::value_parser!(u16).range(1..=64)
    )]
    connections: u16,

    /// The number of simultaneous connections to one host, for all jobs together
    #[arg(
        long = "download.connections-per-host",
        value_name = "NUMBER",
        default_value_t = HostLimits::CONNECTIONS,
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    connections_per_host: u16,

    /// The fraction of the working storage that may be granted to jobs
    #[arg(long = "storage.threshold", value_name = "RATIO", default_value_t = Rules::THRESHOLD, value_parser = share)]
    threshold: f64,

    /// The size in GiB that is assumed for jobs of unknown size
    #[arg(long = "space.unknown", value_name = "GIB", default_value_t = Rules::UNKNOWN_GIB)]
    unknown: u32,

    /// The size in GiB from which a job's priority is lowered by 10; jobs of unknown size are treated as such until
    /// they are downloaded
    #[arg(long = "space.large", value_name = "GIB", default_value_t = Rules::LARGE_GIB)]
    large: u32,

    /// How long attempts are repeated in a state before the job fails
    #[arg(
        long = "retry.within",
        value_name = "DURATION",
        default_value_t = PrometheusDuration::from(Settings::default().retry_within)
    )]
    retry_within: PrometheusDuration,

    /// How long to wait for work in progress on shutdown
    #[arg(
        long = "shutdown-timeout",
        value_name = "DURATION",
        default_value_t = PrometheusDuration::from(Settings::default().shutdown)
    )]
    shutdown: PrometheusDuration,

    /// How long completed and deleted batches are kept, and the working files of finished items
    #[arg(
        long = "cleanup.after",
        value_name = "DURATION",
        default_value_t = PrometheusDuration::from(CleanupSettings::default().after)
    )]
    cleanup_after: PrometheusDuration,

    /// The largest fraction of the working directories that one run of cleanup removes
    #[arg(
        long = "cleanup.share",
        value_name = "SHARE",
        default_value_t = CleanupSettings::default().share,
        value_parser = share
    )]
    cleanup_share: f64,

    /// Do not limit folders to what Java clients can list; only if no Java client reads this queue
    #[arg(long = "no-java-readers")]
    no_java_readers: bool,

    #[command(flatten)]
    mail: MailArgs,
}

/// Runs daemons, until a second signal ends them at once: nothing they did is lost or done twice by that.
///
/// # Errors
/// Those of the daemons; and when they were ended at once.
pub(super) async fn unless_ended_at_once(
    second_signal: impl Future<Output = ()>,
    running: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    tokio::select! {
        biased;
        outcome = running => outcome,
        () = second_signal => {
            anyhow::bail!("exiting immediately after a second signal; the locks of work in progress are released when the session expires")
        }
    }
}

/// The help of `--daemons`, with what each of them does.
fn help_of_daemons() -> String {
    let line = |daemon: Daemon| format!("\n- {daemon}: {}", daemon.spec().does);
    let lines: String = Daemon::ALL.into_iter().map(line).collect();
    format!("Which daemons run here, by their names, separated by commas; or all.\n{lines}\n")
}

/// One daemon, or all.
#[derive(Clone, Copy, Debug)]
enum Chosen {
    All,
    One(Daemon),
}

fn chosen(text: &str) -> Result<Chosen, String> {
    if text == "all" {
        return Ok(Chosen::All);
    }
    text.parse().map(Chosen::One).map_err(|error: UnknownDaemon| error.to_string())
}

fn workers(text: &str) -> Result<(Daemon, RangeInclusive<usize>), String> {
    let (name, numbers) = text.split_once('=').ok_or("expected DAEMON=NUMBER, such as downloading=4")?;
    let daemon: Daemon = name.parse().map_err(|error: UnknownDaemon| error.to_string())?;
    Ok((daemon, worker_bounds(daemon, numbers)?))
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.01..=1.0).contains(share));
    share.ok_or_else(|| "expected a fraction from 0.01 to 1, such as 0.8".to_owned())
}

impl DaemonArgs {
    /// The settings of the daemons; mails are files in `mails` where nothing else is said.
    ///
    /// # Errors
    /// When workers are set for a daemon that does not run, or mail cannot leave as it is said.
    pub(super) fn settings(&self, mails: Option<PathBuf>) -> Result<Settings, UsageError> {
        let runs = |daemon: &Daemon| {
            self.daemons.iter().any(|chosen| match chosen {
                Chosen::All => true,
                Chosen::One(one) => one == daemon,
            })
        };
        let mut all: BTreeMap<Daemon, usize> =
            Daemon::ALL.into_iter().filter(runs).map(|daemon| (daemon, daemon.spec().workers)).collect();
        let mut most_workers = BTreeMap::new();
        for (daemon, bounds) in &self.workers {
            let number = bounds.start();
            // The last one counts.
            most_workers.remove(daemon);
            if bounds.end() > number {
                most_workers.insert(*daemon, *bounds.end());
            }
            match all.get_mut(daemon) {
                Some(workers) => *workers = *number,
                None => return Err(UsageError::flag("--workers", format!("{daemon} is not one of --daemons"))),
            }
        }
        // Mails have it from the process that makes them, whichever sends them.
        if let Some(flag) = self.mail.flag_of_content()
            && !Daemon::of_mails().any(|daemon| all.contains_key(&daemon))
        {
            let names: Vec<_> = Daemon::of_mails().map(Daemon::name).collect();
            let why = format!("no mails are created here, because --daemons has none of {}", names.join(", "));
            return Err(UsageError::flag(flag, why));
        }
        let defaults = Settings::default();
        let mut fetch = defaults.fetch;
        fetch.hosts.connections = self.connections_per_host.into();
        let [unknown, large] = [self.unknown, self.large].map(|gib| u64::from(gib) << 30);
        let space = Rules { threshold: self.threshold, unknown, large, ..defaults.space };
        Ok(Settings {
            workers: all,
            most_workers,
            space,
            connections: self.connections.into(),
            fetch,
            retry_within: self.retry_within.get(),
            shutdown: self.shutdown.get(),
            java_readers: !self.no_java_readers,
            mail: self.mail.settings(mails)?,
            cleanup: CleanupSettings { after: self.cleanup_after.get(), share: self.cleanup_share, ..defaults.cleanup },
            ..defaults
        })
    }
}

impl DaemonArgs {
    /// Whether a daemon is named, and not only meant by all of them.
    fn names(&self, daemon: Daemon) -> bool {
        self.daemons.iter().any(|chosen| matches!(chosen, Chosen::One(one) if *one == daemon))
    }
}

impl IngestArgs {
    /// Runs the daemons until SIGTERM or SIGINT; a second one ends them at once.
    ///
    /// # Errors
    /// When a flag is wrong ([`UsageError`]), something cannot be opened, or the daemons cannot go on or were ended at
    /// once.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.log.begin();
        let (shutdown, signals) = on_signal().context("cannot listen to signals")?;
        let second = second_signal().context("cannot listen to signals")?;
        let file = ConfigFile::read(&self.config_file).map_err(|error| UsageError::flag("--config.file", error))?;
        if file.stores().access().is_none() && self.daemons.names(Daemon::Access) {
            let why = "access needs a store to deliver to: the file of --config.file has no key access";
            return Err(UsageError::flag("--daemons", why).into());
        }
        let ingest = Ingest {
            zookeeper: self.zookeeper.config()?,
            stores: file.stores().clone(),
            profiles: self.profiles,
            working: self.working,
            working_limit: None,
            settings: Settings { working_url: self.served.url()?, ..self.daemons.settings(None)? },
        };
        let listeners = server::listen(&self.listen_address).await?;
        let running = server::ingest::ingest(ingest, file, listeners, self.served.bind().await?, &shutdown);
        let outcome = Box::pin(unless_ended_at_once(second, running)).await;
        shutdown.cancel();
        signals.await.context("the task that waits for signals failed")?;
        outcome
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        daemons: DaemonArgs,
    }

    #[test]
    fn no_flag_gives_the_default_settings() {
        let cli = Cli::try_parse_from(["x"]).unwrap();
        let settings = cli.daemons.settings(None).unwrap();
        assert_eq!(format!("{settings:#?}"), format!("{:#?}", Settings::default()));
    }
}
