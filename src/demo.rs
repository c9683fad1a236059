//! A demo that needs no other service: a real ZooKeeper with a simulated queue and simulated daemons.
//!
//! Every change of the queue goes through the queue core, as in a real daemon. From the outside in:
//!
//! - [`run`] starts a private server, or creates a chroot in a running one (`zookeeper`), fills the queue (`fill`, `past`),
//!   serves it, and runs the daemons until shutdown;
//! - `jobs` and `shift`: the daemons of the job states; `batches`: those that make jobs and report; `access`: those
//!   that assemble access requests. Each has a session of its own (`daemon`), and its locks end with it;
//! - `submit`: depositors and readers; `operator`: repairs, holds, releases and cleans up; `mishap`: creates faults;
//! - `monitoring`: Prometheus and Alertmanager, if enabled;
//! - `scenario`, `catalogue`, `fate`: submissions and failures, all determined by the seed (`dice`); `pace`: the speed;
//!   `volume`: the simulated working storage.
//!
//! Working storage obeys the daemons' rule: a job in Provisioning is kept, locked, inside its daemon while it would
//! exceed the threshold, and five such jobs fill the pool. Space is taken when a job goes to Downloading and freed
//! after Notify; a job that fails between keeps it until an operator resumes or deletes it.

use std::io::Write as _;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use zookeeper_client::Error as ClientError;

pub use self::monitoring::Error as MonitoringError;
use self::monitoring::{Installation, Monitoring};
use self::scenario::Scenario;
use self::world::World;
use self::zookeeper::DemoZooKeeper;
use crate::actions::Role;
use crate::actions::audit::{Destination, Rotation};
use crate::config::{Config, Loopback, Mirror};
use crate::server;
use queuekeeper_queue::Queue;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::JobState;
use queuekeeper_zookeeper::{ConnectError, ServerError, Servers};

mod access;
mod batches;
mod catalogue;
mod daemon;
mod details;
mod dice;
mod duty;
mod fate;
mod fill;
mod findings;
mod greeting;
mod janitor;
mod jobs;
mod mishap;
mod monitoring;
mod operator;
mod pace;
mod past;
mod scenario;
mod shift;
mod submit;
mod volume;
mod world;
mod zookeeper;

/// The notice on every page of a demo.
const NOTICE: &str = "This demo lets everyone on this machine do everything.";

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
    #[error("cannot {doing} the znode {chroot} that the demo has to itself: {source}")]
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
    /// A simulated daemon panicked.
    #[error("a simulated daemon failed: {0}")]
    Daemon(#[from] tokio::task::JoinError),
    /// The web server failed.
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
    let world = Arc::new(World::new(options, zookeeper.clone()));
    // Before the mirror starts: it would count all that is created here as the activity of this minute.
    let Some(scenario) = filled(&world, shutdown).await? else { return Ok(()) };
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
    let greeting = greeting::greeting(options, world.pace, &listeners, &zookeeper.servers, monitoring.as_ref());
    // Standard output may be closed.
    let _ = std::io::stdout().write_all(greeting.as_bytes());
    let end = shutdown.child_token();
    // The first part that ends stops the others.
    let first = end.clone().drop_guard();
    let mut config = Config::new(zookeeper);
    config.mirror.session_addresses = true;
    config.web.names.clone_from(&options.names);
    if let Some(directory) = place.directory() {
        config.audit = Destination::File(directory.join("audit.jsonl"), Rotation::default());
    }
    // The token of Alertmanager, and the rules.
    config.file = monitoring.as_ref().map(|monitoring| monitoring.config.clone());
    if let Some(monitoring) = &monitoring {
        // A stall of the demo lasts for a few of its hours.
        config.mirror.fault_limits.stuck.set(JobState::Provisioning, monitoring.hour());
        let url = format!("http://127.0.0.1:{}", monitoring.prometheus());
        let url = url.parse().expect("it is a URL");
        config.prometheus = Some(crate::config::Prometheus { url, matchers: String::new() });
    }
    // Everything is faster here than in production.
    config.mirror.stalled_after = world.pace.time(STALLED_SECONDS).min(Mirror::STALLED_AFTER);
    config.web.loopback = Some(Loopback { role: Role::Admin, notice: NOTICE });
    let served = async {
        let _first = first;
        server::serve_beside(Some(world.volume.measured().clone()), config, listeners, &end).await
    };
    let simulated = async {
        let _first = end.clone().drop_guard();
        simulate(&world, scenario, &end).await
    };
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
    let (served, simulated, watched, ()) = tokio::join!(served, simulated, watched, tidied);
    // The error of the first part that failed.
    watched?;
    simulated.and(served.map_err(Error::Serve))
}

/// Fills the queue, and returns the scenario for later submissions; `None` if `shutdown` came first.
async fn filled(world: &World, shutdown: &CancellationToken) -> Result<Option<Scenario>, Error> {
    let mut scenario = Scenario::new(world.seed);
    let filled = shutdown.run_until_cancelled(async {
        let queue = Queue::new(world.zookeeper.connect().await?);
        Ok::<_, Error>(fill::fill(world, &queue, &mut scenario).await?)
    });
    Ok(filled.await.transpose()?.map(|()| scenario))
}

/// Runs all simulated daemons and people until `end`.
async fn simulate(world: &Arc<World>, scenario: Scenario, end: &CancellationToken) -> Result<(), Error> {
    let mut daemons = JoinSet::new();
    let mut crew = Crew { world, end, daemons: &mut daemons };
    for duty in &duty::DUTIES {
        crew.hire(jobs::JobDaemon::new(world, duty));
    }
    crew.hire(batches::Acquirer { world: Arc::clone(world) });
    crew.hire(batches::Reporter { world: Arc::clone(world) });
    crew.hire(access::Assembler::new(world, AccessQueue::Small));
    crew.hire(access::Assembler::new(world, AccessQueue::Large));
    crew.hire(submit::Depositors::new(world, scenario));
    crew.hire(operator::Operator::new(world));
    crew.hire(mishap::FaultyDaemon::new(world));
    while let Some(ended) = daemons.join_next().await {
        ended?;
    }
    Ok(())
}

/// The simulated daemons and people.
struct Crew<'a> {
    world: &'a Arc<World>,
    end: &'a CancellationToken,
    daemons: &'a mut JoinSet<()>,
}

impl Crew<'_> {
    fn hire(&mut self, daemon: impl daemon::Daemon) {
        self.daemons.spawn(daemon::keep(daemon, Arc::clone(self.world), self.end.clone()));
    }
}
