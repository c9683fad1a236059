//! A small queue of its own for each test, made with raw writes: the oracle must not be the code under test.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_queue::Queue;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Stat};

use crate::server::{connect, shared};
use crate::tree::{Tree, read_tree};

/// A persistent znode.
pub const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());
/// An ephemeral znode.
pub const EPHEMERAL: CreateOptions<'static> = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
/// A persistent znode with a number behind its name.
pub const SEQUENTIAL: CreateOptions<'static> = CreateMode::PersistentSequential.with_acls(Acls::anyone_all());

/// The states of jobs, in the order in which the design lists them. The folder of each has its name in lower case.
pub const JOB_STATES: [&str; 12] = [
    "Pending",
    "Estimating",
    "Provisioning",
    "Downloading",
    "Processing",
    "Storing",
    "Recording",
    "Notify",
    "Completed",
    "Failed",
    "Held",
    "Deleted",
];

/// The moment of the tests.
#[must_use]
pub fn now() -> Timestamp {
    "2026-03-02T18:17:05Z".parse().unwrap()
}

/// A queue of one's own, below a chroot of its own or at the root.
pub struct World {
    /// For raw reads and writes: another session than the queue's.
    pub raw: Client,
    /// The code under test.
    pub queue: Queue,
    /// Of a client: `127.0.0.1:PORT/chroot`.
    pub chroot: String,
}

impl World {
    /// Below a new chroot, with `nodes` in it.
    pub async fn new(nodes: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let chroot = format!("/t{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let client = connect(&shared().await.connect_string()).await;
        client.create(&chroot, b"", &PERSISTENT).await.unwrap();
        let world = Self::at(&chroot).await;
        world.make(nodes).await;
        world
    }

    /// At a chroot that exists; empty for the root.
    pub async fn at(chroot: &str) -> Self {
        let address = format!("{}{chroot}", shared().await.connect_string());
        let (raw, client) = (connect(&address).await, connect(&address).await);
        Self { raw, queue: patient(client), chroot: chroot.to_owned() }
    }

    /// Another session on the same queue.
    pub async fn another(&self) -> Queue {
        patient(connect(&format!("{}{}", shared().await.connect_string(), self.chroot)).await)
    }

    /// Writes these znodes, in one transaction.
    pub async fn make(&self, nodes: &[(&str, &str)]) {
        make(&self.raw, nodes).await;
    }

    /// All of the queue.
    pub async fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        for top in ["/access", "/batch-uuids", "/batches", "/jobs", "/locks"] {
            tree.extend(read_tree(&self.raw, top, &[]).await);
        }
        tree
    }

    /// Removes all of the queue.
    pub async fn clear(&self) {
        for path in self.tree().await.into_keys().rev() {
            self.raw.delete(&path, None).await.unwrap();
        }
    }

    /// The JSON that a znode holds.
    pub async fn json(&self, path: &str) -> serde_json::Value {
        serde_json::from_slice(&self.raw.get_data(path).await.unwrap().0).unwrap()
    }

    /// Whether a znode exists.
    pub async fn exists(&self, path: &str) -> bool {
        self.raw.check_stat(path).await.unwrap().is_some()
    }

    /// The `Stat` of a znode that exists.
    pub async fn stat(&self, path: &str) -> Stat {
        self.raw.check_stat(path).await.unwrap().unwrap()
    }
}

/// With time enough for an answer of a server that all tests of a binary share.
fn patient(client: Client) -> Queue {
    Queue::new(client).with_time_limit(Duration::from_mins(1))
}

/// Writes these znodes, in one transaction.
pub async fn make(client: &Client, nodes: &[(&str, &str)]) {
    let mut writer = client.new_multi_writer();
    for (path, data) in nodes {
        writer.add_create(path, data.as_bytes(), &PERSISTENT).unwrap();
    }
    writer.commit().await.unwrap();
}

/// Data by path, without what differs from run to run.
#[must_use]
pub fn data(tree: &Tree) -> BTreeMap<String, String> {
    tree.iter().map(|(path, (data, _))| (path.clone(), String::from_utf8_lossy(data).into_owned())).collect()
}

/// The queue's folders and one acquired batch in Reporting, without a job.
#[must_use]
pub fn base() -> Vec<(String, String)> {
    let text = |path: &str, data: &str| (path.to_owned(), data.to_owned());
    let mut nodes = vec![
        text("/access", ""),
        text("/access/large", ""),
        text("/access/small", ""),
        text("/batch-uuids", ""),
        text("/batch-uuids/uuid-0", "bid0000000000"),
        text("/batches", ""),
        text("/batches/bid0000000000", ""),
        text("/batches/bid0000000000/submission", r#"{"batchID":"uuid-0","profile":"demo"}"#),
        text("/batches/bid0000000000/status", r#"{"status":"Reporting","last_modified":"x","message":"","by":"java"}"#),
        text("/batches/bid0000000000/states", ""),
        text("/batches/bid0000000000/states/batch-completed", ""),
        text("/batches/bid0000000000/states/batch-deleted", ""),
        text("/batches/bid0000000000/states/batch-failed", ""),
        text("/batches/bid0000000000/states/batch-processing", ""),
        text("/jobs", ""),
        text("/jobs/states", ""),
        text("/locks", ""),
        text("/locks/collections", ""),
        text("/locks/queue", ""),
    ];
    nodes.extend(JOB_STATES.iter().map(|state| (format!("/jobs/states/{}", state.to_lowercase()), String::new())));
    nodes
}

/// A job of the base's batch in a state, by the state's name and folder, priority 5.
#[must_use]
pub fn job(number: u32, state: &str) -> Vec<(String, String)> {
    let jid = format!("jid{number:010}");
    let node = |name: &str, data: &str| (format!("/jobs/{jid}{name}"), data.to_owned());
    let status = format!(
        r#"{{"status":"{state}","last_modified":"x","last_successful_status":"Provisioning","retry_count":1,"message":"m","by":"java"}}"#
    );
    let folder = folder(state);
    let outcome = outcome(state);
    vec![
        node("", ""),
        node("/bid", "bid0000000000"),
        node("/configuration", r#"{"profile":"demo"}"#),
        node("/status", &status),
        node("/priority", "5"),
        node("/space_needed", "0"),
        (format!("/jobs/states/{folder}/05-{jid}"), String::new()),
        (format!("/batches/bid0000000000/states/{outcome}/{jid}"), String::new()),
    ]
}

/// The folder of a job state below `/jobs/states`.
#[must_use]
pub fn folder(state: &str) -> String {
    state.to_lowercase()
}

/// The folder of a job state below the `states` of its batch.
#[must_use]
pub fn outcome(state: &str) -> &'static str {
    match state {
        "Failed" => "batch-failed",
        "Completed" => "batch-completed",
        "Deleted" => "batch-deleted",
        _ => "batch-processing",
    }
}

/// The same, borrowed.
#[must_use]
pub fn borrowed(nodes: &[(String, String)]) -> Vec<(&str, &str)> {
    nodes.iter().map(|(path, data)| (path.as_str(), data.as_str())).collect()
}
