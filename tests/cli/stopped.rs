//! Processes of daemons that are stopped for longer than their session lasts, or killed, while others take over.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use queuekeeper_catalogue::Catalogue;
use queuekeeper_ingest::deposit::NewDeposit;
use queuekeeper_ingest::working::WorkingStorage;
use queuekeeper_queue::Queue;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::server::connect;
use queuekeeper_testkit::wait::eventually;
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use rustix::process::{Pid, Signal, kill_process};
use uuid::Uuid;

use super::program::queuekeeper;

/// The states in which a process is stopped or killed, one after the other.
const STATES: [&str; 6] = ["downloading", "processing", "storing", "recording", "notify", "storing"];

/// How many deposits are made in each round.
const DEPOSITS: usize = 12;

const LONGEST: Duration = Duration::from_mins(10);

/// After how long without contact a process has lost its session, and the others take over: so long that a busy machine
/// does not reach it, and short enough to wait for it in each round.
const SESSION: &str = "10s";

/// How long a process is stopped at most: three of its sessions, and time for another one to look at all jobs again. It
/// goes on even if the other one has not finished: it may have been stopped while it had SQLite's lock.
const STOPPED: Duration = Duration::from_secs(40);

/// A process of daemons, which ends with this, and its log.
struct Daemons(Child, tempfile::NamedTempFile);

impl Daemons {
    fn start(home: &Path, arguments: &[&str]) -> Self {
        let ingest = ["ingest", "--zookeeper.session-timeout", SESSION, "--web.listen-address", "127.0.0.1:0"];
        let mut command = queuekeeper(home, &[ingest.as_slice(), arguments].concat());
        let log = tempfile::NamedTempFile::new().unwrap();
        Self(command.stdout(Stdio::null()).stderr(log.reopen().unwrap()).spawn().unwrap(), log)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Daemons {
    #[expect(clippy::print_stdout, reason = "why a test failed")]
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        if std::thread::panicking() {
            println!("{}", std::fs::read_to_string(self.1.path()).unwrap_or_default());
        }
    }
}

async fn deposit(queue: &Queue, storage: &WorkingStorage, name: String) -> BatchId {
    let new = NewDeposit {
        profile: "demo".to_owned(),
        file_name: format!("{name}.txt"),
        local_ids: vec![name.clone()],
        ..NewDeposit::default()
    };
    let payload = std::io::Cursor::new(name.into_bytes());
    Box::pin(new.upload(queue, storage, Uuid::new_v4(), payload)).await.unwrap().batch
}

/// The heads of all objects below a folder.
fn heads(folder: &Path) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let inventory = folder.join("inventory.json");
        if inventory.exists() {
            let inventory: serde_json::Value = serde_json::from_slice(&std::fs::read(inventory).unwrap()).unwrap();
            found.push(inventory["head"].as_str().unwrap().to_owned());
            continue;
        }
        let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        folders.extend(entries.filter(|path| path.is_dir()));
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_process_had_begun_when_it_was_stopped_or_killed_is_done_once() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let at = |name: &str| home.join(name).display().to_string();
    for name in ["working", "objects", "profiles"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    let config = format!(
        "stores: {{main: {{url: \"file://{}\"}}}}\ncatalogue: {{url: \"sqlite:{}\"}}\n",
        at("objects"),
        at("catalogue.db")
    );
    std::fs::write(at("config.yml"), config).unwrap();
    let profile = "name: demo\nowner: ark:/99999/o\nstore: main\nminter: {kind: noid, shoulder: ark:/99999/fk4}\n";
    std::fs::write(at("profiles/demo.yaml"), profile).unwrap();
    let (zookeeper, [config, profiles, working]) =
        (server.connect_string(), ["config.yml", "profiles", "working"].map(at));
    let arguments =
        ["--zookeeper", &zookeeper, "--config.file", &config, "--profiles", &profiles, "--working", &working];
    let mut processes = [Daemons::start(home, &arguments), Daemons::start(home, &arguments)];

    let client = connect(&zookeeper).await;
    let queue = Queue::new(client.clone()).with_time_limit(LONGEST);
    let storage = WorkingStorage::open(&home.join("working")).unwrap();
    let (mut batches, mut caught) = (Vec::new(), 0);
    for (round, state) in STATES.into_iter().enumerate() {
        let new = (0..DEPOSITS).map(|number| deposit(&queue, &storage, format!("{round}-{number}")));
        batches.extend(futures::future::join_all(new).await);
        // As soon as a job is seen in that state; a round in which none is goes on without.
        let (folder, began) = (format!("/jobs/states/{state}"), Instant::now());
        while began.elapsed() < Duration::from_secs(20) {
            let is_there = client.list_children(&folder).await.is_ok_and(|jobs| !jobs.is_empty());
            if is_there || all_ended(&queue, &batches).await {
                break;
            }
        }
        let one = round % 2;
        let kills = round >= 3;
        processes[one].signal(if kills { Signal::KILL } else { Signal::STOP });
        caught += usize::from(!all_ended(&queue, &batches).await);
        let (stopped, limit) = (Instant::now(), if kills { LONGEST } else { STOPPED });
        while stopped.elapsed() < limit && !all_ended(&queue, &batches).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if kills {
            processes[one] = Daemons::start(home, &arguments);
        } else {
            // Its session is over: what it had begun must have no effect any more.
            processes[one].signal(Signal::CONT);
        }
        eventually(LONGEST, "all is finished once", async || all_ended(&queue, &batches).await).await;
    }
    assert!(caught > 0, "no process was stopped while there was work");

    let jobs = STATES.len() * DEPOSITS;
    let mut arks = std::collections::BTreeSet::new();
    for batch in &batches {
        assert_eq!(queue.load_batch(*batch).await.unwrap().check_loadable().unwrap(), BatchState::Completed, "{batch}");
        for job in queue.batch_report(*batch).await.unwrap().completed {
            arks.insert(queue.load_job(job).await.unwrap().identifiers().value.ark.into_owned());
        }
    }
    assert_eq!(arks.len(), jobs);
    assert_eq!(heads(&home.join("objects")), vec!["v1"; jobs]);
    let catalogue = Catalogue::open(&format!("sqlite:{}", at("catalogue.db"))).await.unwrap();
    let recorded = catalogue.objects(None, "", 1_000).await.unwrap();
    assert_eq!(recorded.iter().map(|object| object.ark.clone()).collect::<std::collections::BTreeSet<_>>(), arks);
    catalogue.close().await;
}

async fn all_ended(queue: &Queue, batches: &[BatchId]) -> bool {
    let loads = batches.iter().map(|batch| queue.load_batch(*batch));
    let ended = futures::future::join_all(loads).await.into_iter();
    ended.flatten().filter(|batch| batch.state() == Some(BatchState::Completed)).count() == batches.len()
}
