//! A demo that needs no other service: a whole repository in a temporary directory, and made-up people around it.
//!
//! The daemons are those of `queuekeeper ingest`: deposits are fetched, stored as OCFL objects, recorded and reported.
//! From the outside in:
//!
//! - [`run`] starts a private ZooKeeper, or creates a chroot in a running one (`zookeeper`), makes a repository
//!   (`repository`), fills the queue with jobs that have ended (`history`), serves it, and runs all until shutdown;
//! - `origin`: the servers of the depositors, with files (`content`) and their faults (`fate`); `storage`: the small
//!   working storage;
//! - `depositors` submit what the `scenario` of `collections` says; `readers` request objects; `operator`: repairs,
//!   holds, releases and purges; `mishap`: faults of programs that are not ours. Each has a session of its own
//!   (`person`);
//! - `rot`: bytes of copies that change on disk, and their repair;
//! - `monitoring`: Prometheus and Alertmanager, if enabled;
//! - all choices follow from the seed (`dice`), all times from the rate (`pace`).

use std::io::Write as _;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use zookeeper_client::Error as ClientError;

use self::depositors::Depositors;
use self::mishap::FaultyPrograms;
pub use self::monitoring::Error as MonitoringError;
use self::monitoring::{Installation, Monitoring};
use self::operator::Operator;
use self::origin::Origins;
use self::pace::Pace;
use self::person::Person;
use self::readers::Readers;
use self::repository::Repository;
use self::rot::Rot;
use self::scenario::Scenario;
use self::world::World;
use self::zookeeper::DemoZooKeeper;
use crate::actions::Role;
use crate::actions::audit::{Destination, Rotation};
use crate::config::{self, Config, Loopback, Mirror};
use crate::server::{self, Beside};
use queuekeeper_ingest::services::Services;
use queuekeeper_ingest::working::SizeLimit;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_queue::Queue;
use queuekeeper_queue::state::JobState;
use queuekeeper_store::StoreFamilies;
use queuekeeper_zookeeper::{ConnectError, ServerError, Servers};

mod collections;
mod content;
mod depositors;
mod dice;
mod fate;
mod greeting;
mod history;
mod janitor;
mod mishap;
mod monitoring;
mod operator;
mod origin;
mod pace;
mod person;
mod readers;
mod repository;
mod rot;
mod scenario;
mod storage;
mod world;
mod zookeeper;

/// The notice on every page of a demo.
const NOTICE: &str = "This demo allows every user of this machine to execute any action.";

/// After how many seconds a stall is called one, at the natural rate.
const STALLED_SECONDS: f64 = 6.0;

/// The options of a demo.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of jobs in the queue at the start, which is kept approximately.
    pub jobs: usize,
    /// The approximate number of job transitions per second; above 0.
    pub rate: f64,
    /// The seed of all choices.
    pub seed: u64,
    /// A running ZooKeeper; `None` for a private one.
    pub zookeeper: Option<Servers>,
    /// The host names of the listen addresses.
    pub names: Vec<String>,
    /// Whether Prometheus and Alertmanager are started.
    pub with_prometheus: bool,
}

/// The highest rate at which alerts can be watched: beyond it a stall ends before its alert fires.
pub const FASTEST_WITH_PROMETHEUS: f64 = 40.0;

/// Why a demo failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The private server cannot be started.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The running server cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The chroot of the demo cannot be created or removed.
    #[error("cannot {doing} the znode {chroot} for the demo: {source}")]
    Chroot {
        /// The operation.
        doing: &'static str,
        /// The znode, by its path from the server's root.
        chroot: String,
        /// The cause.
        source: ClientError,
    },
    /// The queue cannot be filled.
    #[error("cannot fill the queue: {0}")]
    Fill(#[from] queuekeeper_queue::Error),
    /// Prometheus or Alertmanager could not be started, or ended.
    #[error(transparent)]
    Monitoring(#[from] MonitoringError),
    /// A made-up person panicked.
    #[error("a part of the demo failed: {0}")]
    Person(#[from] tokio::task::JoinError),
    /// The repository cannot be made.
    #[error("{0:#}")]
    Repository(anyhow::Error),
    /// The web server or the daemons failed.
    #[error("{0:#}")]
    Serve(anyhow::Error),
}

/// Runs a demo until `shutdown`, and removes everything it created.
///
/// # Errors
/// When a part of it cannot start or fails.
pub async fn run(options: Options, listeners: Vec<TcpListener>, shutdown: &CancellationToken) -> Result<(), Error> {
    // Missing programs are reported before anything is started.
    let installation = options.with_prometheus.then(Installation::find).transpose()?;
    let Some(place) = DemoZooKeeper::open(options.zookeeper.as_ref(), options.jobs, shutdown).await? else {
        return Ok(());
    };
    // Boxed, since the future is large.
    let outcome = Box::pin(run_in(&place, installation, &options, listeners, shutdown)).await;
    outcome.and(place.close().await)
}

async fn run_in(
    place: &DemoZooKeeper,
    installation: Option<Installation>,
    options: &Options,
    listeners: Vec<TcpListener>,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let zookeeper = place.config();
    let made = |error: std::io::Error| Error::Repository(error.into());
    let pace = Pace::new(options.rate);
    let origins = Origins::start(options.seed, pace, options.with_prometheus).await.map_err(made)?;
    let repository = Repository::make(&origins).map_err(Error::Repository)?;
    let limit = SizeLimit::new(storage::SIZE_BYTES);
    let world = Arc::new(World::new(options, zookeeper.clone(), limit.clone(), origins));
    // Before the mirror starts: it would count all that is created here as the activity of this minute.
    let Some(scenario) = filled(&world, shutdown).await? else { return Ok(()) };
    let address = listeners.first().and_then(|listener| listener.local_addr().ok());
    let url = address.map(|address| server::standalone::root_url(address, &options.names));
    let ingest = repository.ingest(zookeeper.clone(), limit, pace, url).map_err(Error::Repository)?;
    let families = StoreFamilies::default();
    let services = ingest.open(&families).await.map_err(Error::Repository)?;
    let accounts = repository.mill().map_err(Error::Repository)?;
    let rot = Rot::new(&world, &services.catalogue, &accounts, repository.copies());
    let counted = MillMetrics::default();
    server::mill::count_copies_of(&accounts, &services);
    let mill = server::mill::beside(&accounts, &services, rot::mill_settings(world.pace), counted.clone()).await;
    let mill = mill.map_err(Error::Repository)?;
    let volume = storage::exported(&services.working).map_err(made)?;
    let mut monitoring = None;
    if let Some(installation) = installation
        && let Some(address) = listeners.iter().find_map(|listener| listener.local_addr().ok())
    {
        let start = Monitoring::start(installation, address, world.pace);
        // A private server that is aborted during its start is killed, and its directory removed.
        match shutdown.run_until_cancelled(start).await {
            Some(started) => monitoring = Some(started?),
            None => return Ok(()),
        }
    }
    let places = (&zookeeper.servers, repository.path());
    let greeting = greeting::greeting(options, world.pace, &listeners, places, monitoring.as_ref());
    // Standard output may be closed.
    let _ = std::io::stdout().write_all(greeting.as_bytes());
    let end = shutdown.child_token();
    // The first part that ends stops the others.
    let first = end.clone().drop_guard();
    let mut config = Config::new(zookeeper);
    config.mirror.session_addresses = true;
    config.web.names.clone_from(&options.names);
    config.audit = Destination::File(repository.path().join("audit.jsonl"), Rotation::default());
    // The token of Alertmanager, and the rules.
    config.file = monitoring.as_ref().map(|monitoring| monitoring.config.clone());
    if let Some(monitoring) = &monitoring {
        // A stall of the demo lasts for a few of its hours.
        config.mirror.fault_limits.stuck.set(JobState::Provisioning, monitoring.hour());
        let url = format!("http://127.0.0.1:{}", monitoring.prometheus());
        let url = url.parse().expect("it is a URL");
        config.prometheus = Some(crate::config::PrometheusConfig { url, matchers: String::new() });
    }
    config.mill = Some(accounts);
    config.storage =
        Some(config::StorageConfig { path: services.working.root().to_owned(), threshold: storage::THRESHOLD });
    // Everything is faster here than in production.
    config.mirror.stalled_after = world.pace.time(STALLED_SECONDS).min(Mirror::STALLED_AFTER);
    config.web.loopback = Some(Loopback { role: Role::Admin, notice: NOTICE });
    let daemons = Some((ingest, Arc::clone(&services)));
    let beside = Beside { hangups: None, daemons, stores: Some(families), mill: Some(counted) };
    let exported = volume.clone();
    let served = async {
        let _first = first;
        server::serve_with(Some(exported), config, listeners, beside, &end).await
    };
    let peopled = async {
        let _first = end.clone().drop_guard();
        people(&world, &services, scenario, &end).await
    };
    let measured = end.run_until_cancelled(storage::measure(Arc::clone(&services), volume));
    let tidied = async {
        if let Some(directory) = place.directory() {
            end.run_until_cancelled(janitor::remove_old_files(directory)).await;
        }
    };
    let watched = async {
        let Some(monitoring) = monitoring else { return Ok(()) };
        let _first = end.clone().drop_guard();
        monitoring.watch(&end).await
    };
    let copied = mill.run(end.clone());
    let rotted = async { end.run_until_cancelled(rot.go_on()).await };
    let (served, peopled, watched, (), (), _, _) =
        tokio::join!(served, peopled, watched, copied, tidied, measured, rotted);
    services.catalogue.close().await;
    // The error of the first part that failed.
    watched?;
    peopled.and(served.map_err(Error::Serve))
}

/// Fills the queue, and returns the scenario for later submissions; `None` if `shutdown` came first.
async fn filled(world: &World, shutdown: &CancellationToken) -> Result<Option<Scenario>, Error> {
    let mut scenario = Scenario::new(world.seed);
    let filled = shutdown.run_until_cancelled(async {
        let queue = Queue::new(world.zookeeper.connect().await?);
        Ok::<_, Error>(history::fill(world, &queue, &mut scenario).await?)
    });
    Ok(filled.await.transpose()?.map(|()| scenario))
}

/// Lets all made-up people work until `end`.
async fn people(
    world: &Arc<World>,
    services: &Arc<Services>,
    scenario: Scenario,
    end: &CancellationToken,
) -> Result<(), Error> {
    let mut all = JoinSet::new();
    let mut crew = Crew { world, end, all: &mut all };
    crew.hire(Depositors::new(world, scenario));
    crew.hire(Readers::new(world, services));
    crew.hire(Operator::new(world));
    crew.hire(FaultyPrograms::new(world));
    while let Some(ended) = all.join_next().await {
        ended?;
    }
    Ok(())
}

/// The made-up people.
struct Crew<'a> {
    world: &'a Arc<World>,
    end: &'a CancellationToken,
    all: &'a mut JoinSet<()>,
}

impl Crew<'_> {
    fn hire(&mut self, person: impl Person) {
        self.all.spawn(person::keep(person, Arc::clone(self.world), self.end.clone()));
    }
}
