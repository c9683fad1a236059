//! Runs the daemons of a process, with their metrics and probes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use queuekeeper_ingest::engine;
use queuekeeper_ingest::profile::Profiles;
use queuekeeper_ingest::services::Services;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_ingest::working::{SizeLimit, WorkingStorage};
use queuekeeper_store::{Store, StoreFamilies, StoreName};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::catalogue;
use super::tasks::Tasks;
use crate::config::{ConfigFile, Deposits, Network, StoreSettings};
use crate::{metrics, web};

/// How often the configuration is looked at.
const CONFIGURATION: Duration = Duration::from_secs(2);

/// What the daemons of a process need.
#[derive(Clone, Debug)]
pub struct Ingest {
    /// How to reach ZooKeeper.
    pub zookeeper: queuekeeper_zookeeper::Config,
    /// The stores and the catalogue.
    pub stores: StoreSettings,
    /// The directory of the profiles.
    pub profiles: PathBuf,
    /// The directory of the working storage.
    pub working: PathBuf,
    /// How large that may be; `None` where it may use its file system.
    pub working_limit: Option<SizeLimit>,
    /// What an operator has set.
    pub settings: Settings,
}

/// How the working storage is served to other programs.
#[derive(Debug)]
pub struct ServedWorking {
    /// Where.
    pub listener: TcpListener,
    /// The networks of the clients; of any where there are none.
    pub networks: Vec<Network>,
}

impl Ingest {
    /// Opens what the daemons need, so that what is missing is reported before they begin.
    ///
    /// # Errors
    /// One line that names what cannot be opened.
    pub async fn open(&self, families: &StoreFamilies) -> anyhow::Result<Arc<Services>> {
        let mut stores = BTreeMap::new();
        for name in self.stores.names() {
            if let Some(opened) = self.stores.open(name, families).await {
                stores.insert(name.clone(), opened?);
            }
        }
        let working = working(&self.working)?;
        let working = match &self.working_limit {
            Some(limit) => working.limited(limit.clone()),
            None => working,
        };
        let mut settings = self.settings.clone();
        settings.access = settings.access.or_else(|| self.stores.access().cloned());
        let services = services(&self.stores, stores, (&self.profiles, working), settings).await?;
        check_deliveries(&services)?;
        Ok(services)
    }
}

/// What taking deposits needs, opened: all that the daemons need but for the stores.
///
/// # Errors
/// One line that names what cannot be opened.
pub(super) async fn for_deposits(
    stores: &StoreSettings,
    deposits: &Deposits,
    threshold: Option<f64>,
) -> anyhow::Result<Arc<Services>> {
    let mut settings = Settings::default();
    settings.space.threshold = threshold.unwrap_or(settings.space.threshold);
    let working = working(&deposits.working)?;
    services(stores, BTreeMap::new(), (&deposits.profiles, working), settings).await
}

fn working(directory: &Path) -> anyhow::Result<WorkingStorage> {
    WorkingStorage::open(directory)
        .with_context(|| format!("cannot use {} as the working storage", directory.display()))
}

async fn services(
    settings: &StoreSettings,
    stores: BTreeMap<StoreName, Arc<dyn Store>>,
    (profiles, working): (&Path, WorkingStorage),
    daemons: Settings,
) -> anyhow::Result<Arc<Services>> {
    let catalogue = catalogue::open(settings).await?;
    let profiles = Profiles::read(profiles)?;
    if let Some(error) = profiles.errors().first() {
        anyhow::bail!("{error}");
    }
    if profiles.iter().next().is_none() {
        let directory = profiles.directory().display();
        tracing::warn!(%directory, "there are no profiles: jobs fail when a daemon needs the profile of their collection");
    }
    Ok(Arc::new(Services::new(catalogue, stores, profiles, working, daemons)))
}

/// Archives that are delivered are removed after some time: they lie where nothing else does.
fn check_deliveries(services: &Services) -> anyhow::Result<()> {
    let Some(access) = &services.settings.access else { return Ok(()) };
    let profiles = services.profiles.read();
    let shared = profiles.iter().find(|profile| profile.store == access.store && profile.space == access.space);
    if let Some(profile) = shared {
        let (store, space) = (&access.store, &access.space);
        anyhow::bail!("access: {store}/{space} has the objects of profile {}; name another space", profile.name);
    }
    Ok(())
}

/// Runs the daemons until `shutdown`, and their probes on the listeners; serves the working storage where it is to be.
/// How many workers they have follows the file, whenever that is changed.
///
/// # Errors
/// When something they need cannot be opened, or they cannot go on.
pub async fn ingest(
    ingest: Ingest,
    file: ConfigFile,
    listeners: Vec<TcpListener>,
    working: Option<ServedWorking>,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let mut registry = metrics::registry();
    let services = ingest.open(&StoreFamilies::register(&mut registry)).await?;
    services.register(&mut registry);
    let mut tasks = Tasks::new(shutdown);
    services.set_workers(file.workers());
    if let Some(mill) = file.mill() {
        super::mill::count_copies_of(mill, &services);
    }
    spawn_daemons(&mut tasks, &ingest, &services);
    let followed = Arc::clone(&services);
    tasks.spawn("the reload of the configuration", |shutdown| async move {
        shutdown.run_until_cancelled(follow_workers(file, &followed)).await;
        Ok(())
    });
    if let Some(ServedWorking { listener, networks }) = working {
        let (storage, grace) = (services.working.clone(), ingest.settings.shutdown);
        tasks.spawn("the server of the working storage", move |shutdown| async move {
            Ok(web::working::run(listener, storage, networks, grace, shutdown).await?)
        });
    }
    let probed = Arc::clone(&services);
    let is_ready = move || probed.no_session.lock().clone().map_or(Ok(()), Err);
    tasks.spawn("the web server", |shutdown| async move {
        Ok(web::process::run(listeners, registry, is_ready, shutdown).await?)
    });
    let outcome = tasks.join().await;
    services.catalogue.close().await;
    outcome
}

/// Sets the numbers of workers anew when the file has changed, until it is dropped. An invalid file is logged, and the
/// numbers stay; so is what the daemons apply at their start only.
async fn follow_workers(mut file: ConfigFile, services: &Services) {
    let in_use = file.clone();
    let mut last_error = String::new();
    loop {
        tokio::time::sleep(CONFIGURATION).await;
        let present = file.clone();
        // The volume of the file may hang.
        let read = tokio::task::spawn_blocking(move || present.read_again()).await;
        match read.map_err(|error| error.to_string()).and_then(|read| read.map_err(|error| error.to_string())) {
            Ok(None) => last_error.clear(),
            Ok(Some(new)) => {
                last_error.clear();
                tracing::info!(path = %new.path().display(), "reloaded the numbers of workers");
                services.set_workers(new.workers());
                new.log_unapplied(&in_use);
                file = new;
            }
            // Logged already.
            Err(why) if why == last_error => {}
            Err(why) => {
                tracing::warn!("failed to reload the configuration; the numbers of workers are unchanged: {why}");
                last_error = why;
            }
        }
    }
}

/// Starts the daemons as a task among others.
pub(super) fn spawn_daemons(tasks: &mut Tasks, ingest: &Ingest, services: &Arc<Services>) {
    tasks.allow(ingest.settings.shutdown);
    let (services, zookeeper) = (Arc::clone(services), ingest.zookeeper.clone());
    tasks.spawn("the daemons", |shutdown| async move {
        let (stop, stopping) = tokio::sync::watch::channel(false);
        let running = engine::run(services, zookeeper, stopping);
        let stopped = async {
            shutdown.cancelled().await;
            stop.send_replace(true);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = running => Ok(ended?),
            () = stopped => unreachable!("it waits until the daemons have ended"),
        }
    });
}
