//! A small queue of its own for each test, made with raw writes: the oracle must not be the code under test.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_queue::Queue;
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use tokio::sync::OnceCell;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Stat};

use crate::support::tree::{Tree, read_tree};

pub(crate) const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());
pub(crate) const EPHEMERAL: CreateOptions<'static> = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
pub(crate) const SEQUENTIAL: CreateOptions<'static> = CreateMode::PersistentSequential.with_acls(Acls::anyone_all());

/// The folders of states, in the order in which the design lists them.
pub(crate) const STATES: [&str; 12] = [
    "pending",
    "estimating",
    "provisioning",
    "downloading",
    "processing",
    "storing",
    "recording",
    "notify",
    "completed",
    "failed",
    "held",
    "deleted",
];

/// One server for all tests of this binary; it ends with the process.
pub(crate) async fn server() -> &'static PrivateServer {
    static SERVER: OnceCell<PrivateServer> = OnceCell::const_new();
    SERVER.get_or_init(async || PrivateServer::start(Options::default()).await.unwrap()).await
}

pub(crate) async fn connect(address: &str) -> Client {
    let connector = Client::connector().with_session_timeout(Duration::from_secs(20));
    connector.with_connection_timeout(Duration::from_secs(5)).connect(address).await.unwrap()
}

pub(crate) fn now() -> Timestamp {
    "2026-03-02T18:17:05Z".parse().unwrap()
}

/// A queue of one's own, below a chroot of its own or at the root.
pub(crate) struct World {
    /// For raw reads and writes: another session than the queue's.
    pub(crate) raw: Client,
    pub(crate) queue: Queue,
    /// Of a client: `127.0.0.1:PORT/chroot`.
    pub(crate) chroot: String,
}

impl World {
    /// Below a new chroot, with `nodes` in it.
    pub(crate) async fn new(nodes: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let chroot = format!("/t{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let client = connect(&server().await.connect_string()).await;
        client.create(&chroot, b"", &PERSISTENT).await.unwrap();
        let world = Self::at(&chroot).await;
        world.make(nodes).await;
        world
    }

    /// At a chroot that exists; empty for the root.
    pub(crate) async fn at(chroot: &str) -> Self {
        let address = format!("{}{chroot}", server().await.connect_string());
        let (raw, client) = (connect(&address).await, connect(&address).await);
        Self { raw, queue: Queue::new(client), chroot: chroot.to_owned() }
    }

    /// Another session on the same queue.
    pub(crate) async fn another(&self) -> Queue {
        Queue::new(connect(&format!("{}{}", server().await.connect_string(), self.chroot)).await)
    }

    pub(crate) async fn make(&self, nodes: &[(&str, &str)]) {
        make(&self.raw, nodes).await;
    }

    pub(crate) async fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        for top in ["/access", "/batch-uuids", "/batches", "/jobs", "/locks"] {
            tree.extend(read_tree(&self.raw, top, &[]).await);
        }
        tree
    }

    /// Removes all of the queue.
    pub(crate) async fn clear(&self) {
        for path in self.tree().await.into_keys().rev() {
            self.raw.delete(&path, None).await.unwrap();
        }
    }

    pub(crate) async fn json(&self, path: &str) -> serde_json::Value {
        serde_json::from_slice(&self.raw.get_data(path).await.unwrap().0).unwrap()
    }

    pub(crate) async fn exists(&self, path: &str) -> bool {
        self.raw.check_stat(path).await.unwrap().is_some()
    }

    pub(crate) async fn stat(&self, path: &str) -> Stat {
        self.raw.check_stat(path).await.unwrap().unwrap()
    }
}

/// Writes these znodes, in one transaction.
pub(crate) async fn make(client: &Client, nodes: &[(&str, &str)]) {
    let mut writer = client.new_multi_writer();
    for (path, data) in nodes {
        writer.add_create(path, data.as_bytes(), &PERSISTENT).unwrap();
    }
    writer.commit().await.unwrap();
}

/// Data by path, without what differs from run to run.
pub(crate) fn data(tree: &Tree) -> BTreeMap<String, String> {
    tree.iter().map(|(path, (data, _))| (path.clone(), String::from_utf8_lossy(data).into_owned())).collect()
}

/// The queue's folders and one acquired batch in Reporting, without a job.
pub(crate) fn base() -> Vec<(String, String)> {
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
    nodes.extend(STATES.iter().map(|state| (format!("/jobs/states/{state}"), String::new())));
    nodes
}

/// A job of the base's batch in a state, by the state's name and folder, priority 5.
pub(crate) fn job(number: u32, state: &str) -> Vec<(String, String)> {
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

pub(crate) fn folder(state: &str) -> String {
    state.to_lowercase()
}

pub(crate) fn outcome(state: &str) -> &'static str {
    match state {
        "Failed" => "batch-failed",
        "Completed" => "batch-completed",
        "Deleted" => "batch-deleted",
        _ => "batch-processing",
    }
}

pub(crate) fn borrowed(nodes: &[(String, String)]) -> Vec<(&str, &str)> {
    nodes.iter().map(|(path, data)| (path.as_str(), data.as_str())).collect()
}
