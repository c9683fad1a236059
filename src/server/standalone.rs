//! Runs a whole repository on one machine: ZooKeeper, the daemons, stores, catalogue and pages, in one directory.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use queuekeeper_ingest::access::AccessSettings;
use queuekeeper_ingest::engine::{self, CATALOGUE, replace_catalogue};
use queuekeeper_ingest::settings::Settings;
use queuekeeper_ingest::working::WorkingStorage;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::producer::BitSettings;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_mill::policy::{ACCOUNTS_FILE, StoreId, policy_file};
use queuekeeper_mill::prices::Prices;
use queuekeeper_mill::run::MillSettings;
use queuekeeper_store::StoreFamilies;
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::ingest::Ingest;
use super::{Beside, mill, serve_with, volume};
use crate::actions::Role;
use crate::actions::audit::{Destination, Rotation};
use crate::config::{Config, Loopback, MillConfig, PolicyPlace, StorageConfig, StoreSettings};

/// The notice on every page.
const NOTICE: &str = "Every user of this machine may execute any action here.";

/// The profile that a new repository has.
const PROFILE: &str = "\
# The collection of this repository. For others, add files beside this one.
name: default
owner: ark:/99999/fk4owner
store: main
# 99999 is for tests: these identifiers are not registered anywhere.
minter: {kind: noid, shoulder: ark:/99999/fk4}
";

/// The account whose objects are copied.
const ACCOUNT: &str = "repository";

/// The policy that a new repository has: every object is copied.
const POLICY: &str = "\
{
  \"defaultPolicies\": [
    {\"srcStoreId\": \"1\", \"destStoreId\": \"2\"}
  ]
}
";

/// Where a directory of a store has what is no content.
const OWN: &str = ".queuekeeper";

/// How long the rest may take to end, besides the daemons, once ZooKeeper has.
const END_LIMIT: Duration = Duration::from_secs(5);

/// How many copies are made at once: on one machine, deposits come first.
const WORKERS: usize = 4;

/// The directory of a repository.
#[derive(Clone, Debug)]
pub struct DataDirectory(PathBuf);

impl DataDirectory {
    /// A directory, which need not exist yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The file with the connect string of the ZooKeeper that runs there.
    #[must_use]
    pub fn connect_file(&self) -> PathBuf {
        self.0.join("zookeeper.connect")
    }

    /// The working storage.
    #[must_use]
    pub fn working(&self) -> PathBuf {
        self.0.join("working")
    }

    /// The profiles.
    #[must_use]
    pub fn profiles(&self) -> PathBuf {
        self.0.join("profiles")
    }

    /// The objects.
    #[must_use]
    pub fn objects(&self) -> PathBuf {
        self.0.join("objects")
    }

    /// The copies of the objects.
    #[must_use]
    pub fn copies(&self) -> PathBuf {
        self.0.join("copies")
    }

    /// The policies: what is copied.
    #[must_use]
    pub fn policies(&self) -> PathBuf {
        self.0.join("policies")
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// One account with two stores, objects and copies.
    ///
    /// # Errors
    /// When the name of a store is invalid, which it is not.
    pub fn mill(&self) -> Result<MillConfig, queuekeeper_store::name::NameError> {
        let stores = [("1", "main"), ("2", "copies")].map(|(id, name)| Ok((StoreId(id.to_owned()), name.parse()?)));
        let stores = stores.into_iter().collect::<Result<_, _>>()?;
        let account = Account { name: ACCOUNT.to_owned(), stores, prefix: None, ..Account::default() };
        let accounts = [(ACCOUNT.to_owned(), account)].into();
        Ok(MillConfig { accounts, policies: PolicyPlace::Directory(self.policies()), prices: Prices::default() })
    }

    /// The archives that were requested.
    #[must_use]
    pub fn deliveries(&self) -> PathBuf {
        self.0.join("deliveries")
    }

    /// The stores and the catalogue.
    ///
    /// # Errors
    /// When the name of the store is invalid, which it is not.
    pub fn stores(&self) -> Result<StoreSettings, queuekeeper_store::name::NameError> {
        StoreSettings::local(self.objects(), self.copies(), self.deliveries(), &self.0.join("catalogue.db"))
    }

    /// The file with the UUID of a catalogue that was made again, until the queue has it.
    fn rebuilt(&self) -> PathBuf {
        self.0.join("catalogue.rebuilt")
    }

    /// Has the queue take a catalogue that was made again, when the repository is started next.
    ///
    /// # Errors
    /// When that cannot be noted.
    pub fn note_rebuilt(&self, catalogue: Uuid) -> anyhow::Result<()> {
        let path = self.rebuilt();
        let write = || {
            let mut file = File::create(&path)?;
            writeln!(file, "{catalogue}")?;
            file.sync_all()
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// Has the queue take the catalogue that was found, if it is one that was made again: the daemons refuse any other
    /// than that which they have had.
    async fn adopt_rebuilt(&self, zookeeper: &queuekeeper_zookeeper::Config, found: Uuid) -> anyhow::Result<()> {
        let path = self.rebuilt();
        let noted = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        if noted.trim() == found.to_string() {
            let client = zookeeper.connect().await?;
            let lost = engine::catalogue(&client).await.with_context(|| format!("cannot read {CATALOGUE}"))?;
            if let Some(lost) = lost.and_then(|text| text.trim().parse().ok()) {
                let working = WorkingStorage::open(&self.working()).and_then(|working| working.pass_on(lost, found));
                working.with_context(|| format!("cannot give {} to the catalogue", self.working().display()))?;
            }
            replace_catalogue(&client, found).await.with_context(|| format!("cannot write {CATALOGUE}"))?;
        }
        // Where another one lies there meanwhile, such as a backup, the queue has that one, or is right to refuse it.
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))
    }

    /// The reports to depositors, where there is no mail server.
    #[must_use]
    pub fn reports(&self) -> PathBuf {
        self.0.join("reports")
    }

    /// The lock of a repository that does not run, which is kept from being started as long as the file is open; `None`
    /// where it runs.
    ///
    /// # Errors
    /// When the lock cannot be written.
    pub fn lock_unused(&self) -> anyhow::Result<Option<File>> {
        let path = self.0.join("lock");
        let lock = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(lock)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot lock {}", path.display())),
        }
    }

    /// Checks that objects are where a catalogue says that there are some: the volume of a directory that is empty may
    /// be away, and what is stored in its mount point is hidden as soon as it is back.
    fn check_objects(&self) -> anyhow::Result<()> {
        let (own, objects) = (self.objects().join(OWN), self.objects());
        if self.0.join("catalogue.db").exists() && !own.is_dir() {
            return Err(anyhow!(
                "{} does not have this repository's marker, but there is a catalogue; mount its volume. If these are the right objects nevertheless, create the directory {}",
                objects.display(),
                own.display()
            ));
        }
        Ok(())
    }

    /// Makes what is missing, and locks it for this process.
    pub(crate) fn open(&self) -> anyhow::Result<File> {
        self.check_objects()?;
        let make = |path: &Path| fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()));
        [self.working(), self.profiles(), self.objects(), self.copies(), self.policies(), self.deliveries()]
            .iter()
            .try_for_each(|path| make(path))?;
        // Before there is a catalogue.
        make(&self.objects().join(OWN))?;
        let path = self.0.join("lock");
        let lock = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .with_context(|| format!("{} is used by another process", self.0.display()))?;
        let profiles = self.profiles();
        if fs::read_dir(&profiles)?.next().is_none() {
            // Not in a repository that was there before there were policies: it would become twice as large.
            fs::write(self.policies().join(policy_file(ACCOUNT)), POLICY)?;
            fs::write(profiles.join("default.yaml"), PROFILE)?;
        }
        let accounts = self.policies().join(ACCOUNTS_FILE);
        if !accounts.exists() {
            fs::write(accounts, format!("[\"{ACCOUNT}\"]\n"))?;
        }
        let policy = self.policies().join(policy_file(ACCOUNT));
        if !policy.exists() {
            fs::write(policy, "{}\n")?;
        }
        Ok(lock)
    }
}

/// Runs a repository until `shutdown`; the next run goes on where this one stopped.
///
/// # Errors
/// When a part of it cannot be started, or ends early, ZooKeeper included.
pub async fn standalone(
    data: &DataDirectory,
    settings: Settings,
    names: Vec<String>,
    listeners: Vec<TcpListener>,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let _lock = data.open()?;
    let options = Options { directory: Some(data.0.join("zookeeper")), durable: true, ..Options::default() };
    let Some(started) = shutdown.run_until_cancelled(PrivateServer::start(options)).await else { return Ok(()) };
    let mut server = started?;
    let (connect, grace, end) = (server.connect_string(), settings.shutdown, shutdown.child_token());
    let mut running = Box::pin(run(data, settings, names, listeners, &connect, &end));
    let outcome = tokio::select! {
        biased;
        outcome = &mut running => outcome,
        // Nothing works without it. Whatever starts this program again starts both.
        ended = server.ended() => {
            let is_early = !end.is_cancelled();
            end.cancel();
            let outcome = tokio::time::timeout(grace.saturating_add(END_LIMIT), running).await;
            match ended {
                Ok(status) if is_early => {
                    let log = data.0.join("zookeeper");
                    Err(anyhow!("the repository's ZooKeeper has ended ({status}); its log is in {}", log.display()))
                }
                Ok(_) => outcome.unwrap_or(Ok(())),
                Err(error) => Err(error.into()),
            }
        }
    };
    let _ = fs::remove_file(data.connect_file());
    let stopped = server.stop().await;
    outcome?;
    Ok(stopped?)
}

async fn run(
    data: &DataDirectory,
    settings: Settings,
    names: Vec<String>,
    listeners: Vec<TcpListener>,
    connect: &str,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let zookeeper = queuekeeper_zookeeper::Config::new(connect.parse()?);
    let stores = data.stores()?;
    let address = listeners.first().and_then(|listener| listener.local_addr().ok());
    let mut settings = settings;
    let access = settings.access.take().or_else(|| stores.access().cloned());
    settings.access = access.map(|access| match address {
        Some(address) => AccessSettings { url: root_url(address, &names), ..access },
        None => access,
    });
    let threshold = settings.space.threshold;
    let (profiles, working) = (data.profiles(), data.working());
    let ingest = Ingest { zookeeper: zookeeper.clone(), stores, profiles, working, working_limit: None, settings };
    let families = StoreFamilies::default();
    let services = ingest.open(&families).await?;
    let counted = MillMetrics::default();
    mill::count_copies_of(&data.mill()?, &services);
    let mill = mill::beside(&data.mill()?, &services, mill_settings(), counted.clone()).await?;
    data.adopt_rebuilt(&zookeeper, services.catalogue.id()).await?;
    fs::write(data.connect_file(), connect)?;

    let mut config = Config::new(zookeeper);
    config.mirror.session_addresses = true;
    config.web.names = names;
    config.web.loopback = Some(Loopback { role: Role::Admin, notice: NOTICE });
    config.audit = Destination::File(data.0.join("audit.jsonl"), Rotation::default());
    config.storage = Some(StorageConfig { path: data.working(), threshold });
    config.mill = Some(data.mill()?);
    let greeting = address.map(|address| greeting(data, &address.to_string())).unwrap_or_default();
    // Standard output may be closed.
    let _ = std::io::stdout().write_all(greeting.as_bytes());
    let daemons = Some((ingest, std::sync::Arc::clone(&services)));
    let beside = Beside { hangups: None, daemons, stores: Some(families), mill: Some(counted) };
    let end = shutdown.child_token();
    let served = async {
        let _first = end.clone().drop_guard();
        serve_with(volume(&config), config, listeners, beside, &end).await
    };
    let (outcome, ()) = tokio::join!(served, mill.run(end.clone()));
    services.catalogue.close().await;
    outcome
}

/// How the mill of one machine works.
pub(crate) fn mill_settings() -> MillSettings {
    MillSettings { workers: WORKERS, bit: Some(BitSettings::default()), ..MillSettings::default() }
}

/// The URL at which pages are reached that are served at an address; one that stands for all of them has a name, if the
/// user has given one.
pub(crate) fn root_url(address: SocketAddr, names: &[String]) -> String {
    let port = address.port();
    match (address.ip(), names.first()) {
        (ip, Some(name)) if ip.is_unspecified() => format!("http://{name}:{port}/"),
        (IpAddr::V4(ip), None) if ip.is_unspecified() => format!("http://{}:{port}/", Ipv4Addr::LOCALHOST),
        (IpAddr::V6(ip), None) if ip.is_unspecified() => format!("http://[{}]:{port}/", Ipv6Addr::LOCALHOST),
        _ => format!("http://{address}/"),
    }
}

/// What one can do now.
fn greeting(data: &DataDirectory, address: &str) -> String {
    let data = data.0.display();
    format!(
        "Repository: {data}\n\
         Pages:      http://{address}/\n\
         Deposit:    queuekeeper submit --data {data} --profile default FILE\n\
         Objects:    {data}/objects (OCFL 1.1)\n\
         Copies:     {data}/copies, by {data}/policies\n"
    )
}
