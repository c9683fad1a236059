//! A queue, and daemons that work on it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_ingest::directory::WorkingStorage;
use queuekeeper_ingest::engine;
use queuekeeper_ingest::profile::Profiles;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_ingest::step::Services;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::{BatchReport, Job, Queue};
use queuekeeper_store::{DirectoryStore, Store};
use queuekeeper_testkit::origin::Origin;
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{Config, PrivateServer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// How long anything may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct World {
    pub(super) server: PrivateServer,
    pub(super) queue: Queue,
    pub(super) origin: Origin,
    pub(super) directory: TempDir,
    pub(super) services: Arc<Services>,
    zookeeper: Config,
}

/// The daemons of a process.
pub(super) struct Daemons {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub(super) async fn with(settings: Settings) -> Self {
        let server = PrivateServer::start(Options::default()).await.unwrap();
        let zookeeper = Config::new(server.connect_string().parse().unwrap());
        let queue = Queue::new(zookeeper.connect().await.unwrap());
        let (origin, directory) = (Origin::start().await, tempfile::tempdir().unwrap());
        for folder in ["working", "objects", "profiles"] {
            std::fs::create_dir(directory.path().join(folder)).unwrap();
        }
        let profile = format!(
            "name: demo\nowner: ark:/99999/owner\nstore: main\nminter: {{kind: noid, shoulder: ark:/99999/fk4}}\n\
             internal_hosts: [\"{}\"]\n",
            origin.address()
        );
        std::fs::write(directory.path().join("profiles/demo.yaml"), profile).unwrap();
        let services = services(directory.path(), settings).await;
        Self { server, queue, origin, directory, services, zookeeper }
    }

    /// Starts the daemons, as a process of their own would.
    pub(super) fn start(&self) -> Daemons {
        let (stop, stopping) = watch::channel(false);
        let (services, zookeeper) = (Arc::clone(&self.services), self.zookeeper.clone());
        let task = tokio::spawn(async move { engine::run(services, zookeeper, stopping).await.unwrap() });
        Daemons { stop, task }
    }

    /// Deposits what `say` adds to a submission.
    pub(super) async fn deposit(&self, say: Value) -> (BatchId, String) {
        let uuid = format!("bid-{}", Uuid::new_v4());
        let mut submission = json!({
            "batchID": uuid, "profile": "demo", "submitter": "tester/A Tester", "title": "A title",
            "creator": "A creator", "submissionDate": "2026-11-24T12:00:00Z",
        });
        let all = submission.as_object_mut().unwrap();
        all.extend(say.as_object().unwrap().clone());
        let data = serde_json::to_vec(&submission).unwrap();
        (self.queue.create_batch(&data, Timestamp::now()).await.unwrap(), uuid)
    }

    /// Waits until a batch is reported.
    pub(super) async fn ended(&self, batch: BatchId) -> (BatchState, BatchReport) {
        let wait = async {
            loop {
                let state = self.queue.load_batch(batch).await.unwrap().check_loadable().unwrap();
                if matches!(state, BatchState::Completed | BatchState::Failed) {
                    return (state, self.queue.batch_report(batch).await.unwrap());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(ended) => ended,
            Err(_) => panic!("batch {batch} has not ended: {:?}", self.jobs(batch).await),
        }
    }

    /// States and messages of a batch's jobs.
    pub(super) async fn jobs(&self, batch: BatchId) -> Vec<(String, String)> {
        let report = self.queue.batch_report(batch).await.unwrap();
        let mut found = Vec::new();
        for id in report.processing.iter().chain(&report.failed).chain(&report.completed) {
            let job = self.queue.load_job(*id).await.unwrap();
            let status = job.status().value;
            found.push((status.status.text.into_owned(), status.message.into_owned()));
        }
        found
    }

    pub(super) async fn job(&self, id: queuekeeper_queue::id::JobId) -> Job {
        self.queue.load_job(id).await.unwrap()
    }
}

async fn services(directory: &Path, settings: Settings) -> Arc<Services> {
    let catalogue = format!("sqlite:{}", directory.join("catalogue.db").display());
    let catalogue = Catalogue::open(&catalogue).await.unwrap();
    let store = DirectoryStore::open("main".parse().unwrap(), directory.join("objects")).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let stores = BTreeMap::from([("main".parse().unwrap(), store)]);
    let profiles = Profiles::read(directory.join("profiles")).unwrap();
    assert!(profiles.errors().is_empty(), "{:?}", profiles.errors());
    let working = WorkingStorage::open(&directory.join("working")).unwrap();
    Arc::new(Services::new(catalogue, stores, profiles, working, settings))
}

impl Daemons {
    /// Stops them as a signal does, and waits for their end.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        self.task.await.unwrap();
    }
}
