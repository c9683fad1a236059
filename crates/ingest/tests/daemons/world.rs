//! A queue, and daemons that work on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_ingest::engine;
use queuekeeper_ingest::profile::Profiles;
use queuekeeper_ingest::services::Services;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_ingest::working::WorkingStorage;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::{BatchReport, Job, Queue};
use queuekeeper_store::ocfl::{Object, Root, Snapshot};
use queuekeeper_store::{DirectoryStore, Store, StoreName};
use queuekeeper_testkit::origin::Origin;
use queuekeeper_testkit::server::config;
use queuekeeper_testkit::sqlite;
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{Config, PrivateServer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;
use zookeeper_client::{Acl, AuthId, Permission};

use super::remote::{Remote, Servers};

/// How long anything may take before the test gives up.
pub(super) const WAIT_LIMIT: Duration = Duration::from_mins(5);

/// How long the sessions of daemons last where none is to end: a busy machine does not keep one silent for so long.
pub(super) const SESSION: Duration = Duration::from_mins(1);

pub(super) struct World {
    pub(super) server: Arc<PrivateServer>,
    pub(super) queue: Queue,
    pub(super) origin: Origin,
    pub(super) directory: TempDir,
    pub(super) services: Arc<Services>,
    /// Where its catalogue and its objects are, if not in its directory.
    pub(super) remote: Option<Remote>,
    /// The catalogue of its daemons, if it is another one.
    pub(super) catalogue: Option<String>,
    zookeeper: Config,
}

/// The daemons of a process.
pub(super) struct Daemons {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Has a test that fails print what its daemons logged.
fn show_log() {
    let log = tracing_subscriber::fmt().with_ansi(false).with_test_writer();
    // Fails where another test of this process has done it.
    log.try_init().ok();
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub(super) async fn with(settings: Settings) -> Self {
        let server = Arc::new(PrivateServer::start(Options::default()).await.unwrap());
        Self::on(server, "", settings).await
    }

    /// One that shares a server with others: its queue lies below a chroot, which exists, or nothing.
    pub(super) async fn on(server: Arc<PrivateServer>, chroot: &str, settings: Settings) -> Self {
        Self::build(server, chroot, settings, |_| None).await
    }

    /// The same with catalogue and objects where `remote` puts them.
    pub(super) async fn build(
        server: Arc<PrivateServer>,
        chroot: &str,
        settings: Settings,
        remote: impl FnOnce(&Path) -> Option<Remote>,
    ) -> Self {
        show_log();
        let zookeeper = Config { acl: least(), ..config(&format!("{}{chroot}", server.connect_string())) };
        let queue = queue(&zookeeper).await;
        let (origin, directory) = (Origin::start().await, tempfile::tempdir_in(memory()).unwrap());
        for folder in ["working", "objects", "profiles", "deliveries"] {
            std::fs::create_dir(directory.path().join(folder)).unwrap();
        }
        for (name, owner) in [("demo", "owner"), ("other", "stranger")] {
            let profile = format!(
                "name: {name}\nowner: ark:/99999/{owner}\nstore: main\nspace: demo\n\
                 minter: {{kind: noid, shoulder: ark:/99999/fk4}}\ninternal_hosts: [\"{}\"]\n",
                origin.address()
            );
            std::fs::write(directory.path().join(format!("profiles/{name}.yaml")), profile).unwrap();
        }
        let remote = remote(directory.path());
        let services = services(directory.path(), settings).await;
        Self { server, queue, origin, directory, services, remote, catalogue: None, zookeeper }
    }

    /// Adds a collection, whose objects lie with the others, with more keys; for daemons that are started anew.
    pub(super) fn add_profile(&self, name: &str, keys: &str) {
        let profile = format!(
            "name: {name}\nowner: ark:/99999/owner\nstore: main\nspace: demo\n\
             minter: {{kind: noid, shoulder: ark:/99999/fk4}}\ninternal_hosts: [\"{}\"]\n{keys}",
            self.origin.address()
        );
        std::fs::write(self.directory.path().join(format!("profiles/{name}.yaml")), profile).unwrap();
    }

    /// Runs SQL on the catalogue by a program that knows nothing of it; the answer has a JSON array for each row.
    pub(super) fn sql(&self, sql: &str) -> Vec<Value> {
        if let Some(remote) = &self.remote {
            return remote.sql(sql);
        }
        sqlite::rows(&self.directory.path().join("catalogue.db"), sql)
    }

    /// Stops the server, has its data changed meanwhile, and connects anew: a server whose tree is an older one refuses
    /// those that have seen a newer one.
    pub(super) async fn change_data(&mut self, change: impl FnOnce(&Path)) {
        let server = Arc::get_mut(&mut self.server).unwrap();
        server.stop().await.unwrap();
        change(server.directory());
        server.restart().await.unwrap();
        self.queue = queue(&self.zookeeper).await;
    }

    /// Starts the daemons.
    pub(super) fn start(&self) -> Daemons {
        self.start_with(Arc::clone(&self.services), SESSION)
    }

    /// Starts daemons as another process does: with nothing that those before know, and with a session of its own.
    pub(super) async fn start_anew(&self, settings: Settings, session: Duration) -> Daemons {
        self.start_with(services(self.directory.path(), settings).await, session)
    }

    /// The same by way of a proxy.
    pub(super) async fn start_through(&self, proxy: &str, settings: Settings, session: Duration) -> Daemons {
        let zookeeper = Config { session_timeout: session, acl: least(), ..config(proxy) };
        start(services(self.directory.path(), settings).await, zookeeper)
    }

    pub(super) fn start_with(&self, services: Arc<Services>, session: Duration) -> Daemons {
        start(services, Config { session_timeout: session, ..self.zookeeper.clone() })
    }

    /// Deposits what `say` adds to a submission.
    pub(super) async fn deposit(&self, say: Value) -> (BatchId, String) {
        let uuid = format!("bid-{}", Uuid::new_v4());
        (self.deposit_as(&uuid, say).await, uuid)
    }

    /// The same with an id that the caller chooses.
    pub(super) async fn deposit_as(&self, uuid: &str, say: Value) -> BatchId {
        let mut submission = json!({
            "batchID": uuid, "profile": "demo", "submitter": "tester/A Tester", "title": "A title",
            "creator": "A creator", "submissionDate": "2026-11-24T12:00:00Z",
        });
        let all = submission.as_object_mut().unwrap();
        all.extend(say.as_object().unwrap().clone());
        let data = serde_json::to_vec(&submission).unwrap();
        self.queue.create_batch(&data, Timestamp::now()).await.unwrap()
    }

    /// Waits until a batch is reported.
    pub(super) async fn ended(&self, batch: BatchId) -> (BatchState, BatchReport) {
        self.ended_within(WAIT_LIMIT, batch).await
    }

    pub(super) async fn ended_within(&self, limit: Duration, batch: BatchId) -> (BatchState, BatchReport) {
        let wait = async {
            loop {
                let state = self.queue.load_batch(batch).await.unwrap().check_loadable().unwrap();
                if matches!(state, BatchState::Completed | BatchState::Failed) {
                    return (state, self.queue.batch_report(batch).await.unwrap());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if let Ok(ended) = tokio::time::timeout(limit, wait).await {
            return ended;
        }
        let mut jobs = self.jobs(batch).await;
        jobs.retain(|(state, _)| state != "Completed");
        panic!("batch {batch} has not ended: {} jobs: {:?}", jobs.len(), &jobs[..jobs.len().min(10)])
    }

    /// States and messages of a batch's jobs.
    pub(super) async fn jobs(&self, batch: BatchId) -> Vec<(String, String)> {
        let report = self.queue.batch_report(batch).await.unwrap();
        let mut found = Vec::new();
        for id in report.processing.iter().chain(&report.failed).chain(&report.completed) {
            let job = self.queue.load_job(*id).await.unwrap();
            let status = job.status().value;
            let retry = self.queue.client().get_data(&format!("/queuekeeper/retry/{id}")).await.ok();
            let retry = retry.map(|(data, _)| String::from_utf8_lossy(&data).into_owned());
            let note = format!(
                "{} lock {:?} retry {retry:?}",
                status.message,
                job.lock().map(|lock| (lock.session, lock.since))
            );
            found.push((status.status.text.into_owned(), note));
        }
        found
    }

    pub(super) async fn job(&self, id: JobId) -> Job {
        self.queue.load_job(id).await.unwrap()
    }

    pub(super) async fn message(&self, id: JobId) -> String {
        self.job(id).await.status().value.message.into_owned()
    }

    /// The object of a completed job, its content read and compared, and the paths of a version.
    pub(super) async fn ark(&self, job: JobId) -> String {
        let ark = self.job(job).await.identifiers().value.ark.into_owned();
        assert!(ark.starts_with("ark:/99999/fk4"), "{job}: {ark:?}");
        ark
    }

    /// Checks an object: its content, and that store and inventory know so many versions, each by a job of its own.
    pub(super) async fn check_object(&self, ark: &str, versions: u32) {
        let stored = self.check_stored(ark, versions).await;
        let recorded = self.services.catalogue.versions(ark, None, 100).await.unwrap();
        assert_eq!(recorded.len(), versions as usize, "{ark}: {recorded:?}");
        for version in recorded {
            assert_eq!(stored.inventory().version_of(version.job), Some(version.number), "{ark}");
        }
    }

    /// Checks the content of an object, and how many versions its store knows.
    pub(super) async fn check_stored(&self, ark: &str, versions: u32) -> Snapshot {
        let store = Arc::clone(self.services.stores.values().next().unwrap());
        let root = Root::open(store, "demo".parse().unwrap()).await.unwrap();
        let object = root.object(ark).unwrap();
        let verified = object.verify().await.unwrap();
        assert!(verified.is_valid(), "{ark}: {verified:?}");
        let stored = object.read().await.unwrap().unwrap();
        assert_eq!(stored.inventory().head(), versions, "{ark}");
        self.check_recorded(&object).await;
        stored
    }

    /// Checks that the content index has what the store has of an object, and nothing else.
    async fn check_recorded(&self, object: &Object) {
        let (prefix, space) = (format!("{}/", object.root()), "demo".parse().unwrap());
        let listing = object.store().list(&space, prefix.as_bytes(), None);
        let listed: Vec<_> =
            listing.map_ok(|listed| (listed.key, listed.size, listed.etag)).try_collect().await.unwrap();
        let (mut recorded, mut after) = (Vec::new(), Some(prefix.parse().unwrap()));
        // Daemons that have ended have closed theirs.
        let catalogue = self.catalogue.clone().unwrap_or_else(|| catalogue_url(self.directory.path()));
        let catalogue = Catalogue::open(&catalogue).await.unwrap();
        while let Some(last) = after.take() {
            for item in catalogue.items(&space, Some(&last), 1_000).await.unwrap() {
                after = Some(item.key.clone()).filter(|key| key.as_bytes().starts_with(prefix.as_bytes()));
                let copies = item.copies.into_iter().filter(|copy| !copy.is_deleted && after.is_some());
                recorded.extend(copies.map(|copy| (item.key.clone(), copy.size, copy.etag)));
            }
        }
        catalogue.close().await;
        assert_eq!(recorded, listed, "{}", object.id());
    }

    /// The names of a version's deposited files.
    pub(super) async fn producer(&self, ark: &str, version: u32) -> Vec<String> {
        let files = self.services.catalogue.files(ark, version, "", 1_000).await.unwrap();
        files.iter().filter_map(|file| file.path.strip_prefix("producer/")).map(ToOwned::to_owned).collect()
    }

    /// What is left in the working storage, besides the volume's own files.
    pub(super) fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path().join("working")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.starts_with(".queuekeeper-")).collect()
    }

    /// The children of a znode; none where there is none.
    pub(super) async fn children(&self, path: &str) -> Vec<String> {
        self.queue.client().list_children(path).await.unwrap_or_default()
    }
}

/// A directory in memory, where there is one: what is written there survives the end of a process as on a disk.
fn memory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// A figure of the daemons that has no labels.
pub(super) fn figure(services: &Services, name: &str) -> u64 {
    let mut registry = Registry::default();
    services.metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

/// What SECURITY.md says that daemons need on znodes: all but the right to change an ACL.
fn least() -> Vec<Acl> {
    let rights = Permission::CREATE | Permission::READ | Permission::WRITE | Permission::DELETE;
    vec![Acl::new(rights, AuthId::anyone())]
}

/// The queue as a test sees it, which ends where a request is not answered: with time enough on a busy machine.
async fn queue(zookeeper: &Config) -> Queue {
    let long = Duration::from_mins(1);
    let client = Config { session_timeout: long, ..zookeeper.clone() }.connect().await.unwrap();
    Queue::new(client).with_acl(least()).with_time_limit(long)
}

fn start(services: Arc<Services>, zookeeper: Config) -> Daemons {
    let (stop, stopping) = watch::channel(false);
    let task = tokio::spawn(async move { engine::run(services, zookeeper, stopping).await.unwrap() });
    Daemons { stop, task }
}

/// The store of this name of the world that lies in a directory: a folder of it, where it is none of a server.
pub(super) async fn store(directory: &Path, name: StoreName, folder: &str) -> Arc<dyn Store> {
    match Servers::of(directory) {
        Some(servers) => Box::pin(servers.store(name)).await,
        None => Arc::new(DirectoryStore::open(name, directory.join(folder)).await.unwrap()),
    }
}

/// Where the catalogue of the world that lies in a directory is.
fn catalogue_url(directory: &Path) -> String {
    let of_files = || format!("sqlite:{}", directory.join("catalogue.db").display());
    Servers::of(directory).map_or_else(of_files, |servers| servers.catalogue)
}

pub(super) async fn services(directory: &Path, settings: Settings) -> Arc<Services> {
    let catalogue = Catalogue::open(&catalogue_url(directory)).await.unwrap();
    let main: StoreName = "main".parse().unwrap();
    let mut stores = BTreeMap::from([(main.clone(), store(directory, main, "objects").await)]);
    if let Some(access) = &settings.access {
        stores.insert(access.store.clone(), store(directory, access.store.clone(), "deliveries").await);
    }
    // Where a test has made a directory for it.
    if directory.join("spare").exists() {
        let spare = DirectoryStore::open("spare".parse().unwrap(), directory.join("spare")).await.unwrap();
        stores.insert("spare".parse().unwrap(), Arc::new(spare) as Arc<dyn Store>);
    }
    let profiles = Profiles::read(directory.join("profiles")).unwrap();
    assert!(profiles.errors().is_empty(), "{:?}", profiles.errors());
    let working = WorkingStorage::open(&directory.join("working")).unwrap();
    Arc::new(Services::new(catalogue, stores, profiles, working, settings))
}

impl Daemons {
    /// Ends them at whatever they do.
    pub(super) async fn abort(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }

    /// Stops them as a signal does, and waits for their end.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        self.task.await.unwrap();
    }
}
