//! Chroots of a server, what is in them, and the program.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::pin::pin;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use futures::{Stream, stream};
use jiff::Timestamp;
use queuekeeper_queue::Queue;
use queuekeeper_queue::dump::{DumpOptions, Redaction};
use queuekeeper_queue::load::{self, LoadError, LoadLimits, LoadOptions, LoadProgress, Loaded};
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::tree::{Tree, read_tree};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions};

pub(crate) const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());
pub(crate) const EPHEMERAL: CreateOptions<'static> = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
pub(crate) const SEQUENTIAL: CreateOptions<'static> = CreateMode::PersistentSequential.with_acls(Acls::anyone_all());

/// How far the jobs of the batch of [`odd`] are created.
pub(crate) const EXPANSION: &[u8] = br#"{"digest":"5ec3e7","last":"jid0000000041","next":900}"#;

/// A queue of its own below a chroot.
pub(crate) struct World {
    pub(crate) client: Client,
    /// As `--zookeeper` takes it.
    pub(crate) address: String,
}

impl World {
    /// An empty chroot.
    pub(crate) async fn new() -> Self {
        Self::below(&format!("t{}", Self::number())).await
    }

    /// An empty chroot with a name of its own.
    pub(crate) async fn below(name: &str) -> Self {
        let server = shared().await.connect_string();
        let address = format!("{server}/{name}");
        connect(&server).await.create(&format!("/{name}"), b"", &PERSISTENT).await.unwrap();
        Self { client: connect(&address).await, address }
    }

    /// The address of a chroot that does not exist, and a client of the server's root.
    pub(crate) async fn nowhere() -> (Client, String) {
        let server = shared().await.connect_string();
        let address = format!("{server}/t{}", Self::number());
        (connect(&server).await, address)
    }

    /// Another one at each call.
    fn number() -> u32 {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        NUMBER.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) async fn make(&self, nodes: &[(&str, &[u8])]) {
        for (path, data) in nodes {
            self.client.create(path, data, &PERSISTENT).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        }
    }

    pub(crate) fn queue(&self) -> Queue {
        Queue::new(self.client.clone())
    }

    pub(crate) async fn tree(&self) -> Tree {
        read_tree(&self.client, "/", &["/queuekeeper"]).await
    }

    /// What a load must bring back: all but ephemeral znodes.
    pub(crate) async fn lasting(&self) -> BTreeMap<String, Vec<u8>> {
        let tree = self.tree().await.into_iter().filter(|(_, (_, stat))| stat.ephemeral_owner == 0);
        tree.map(|(path, (data, _))| (path, data)).collect()
    }

    /// How many znodes a load has created: all but those that pause the queue meanwhile, which are there from the
    /// beginning, and how far the creation of jobs is.
    pub(crate) async fn loaded(&self) -> u64 {
        let is_kept = |path: &str| match path.strip_prefix("/locks/queue") {
            Some(below) => ["", "/ingest", "/accessSmall", "/accessLarge"].contains(&below),
            None => path == "/" || path == "/locks",
        };
        let expansions = self.client.list_children("/queuekeeper/expansions").await.unwrap_or_default().len();
        (self.lasting().await.keys().filter(|path| !is_kept(path)).count() + expansions) as u64
    }

    pub(crate) async fn dump(&self, redaction: Option<Redaction>) -> Vec<u8> {
        let options = DumpOptions { id: "0123456789abcdef".into(), now: now(), redaction };
        let mut dump = Vec::new();
        self.queue().dump(&mut dump, &options, |_| {}).await.unwrap();
        dump
    }

    /// Loads a dump in blocks of some size; where `cut` says so, reading fails after so many bytes.
    pub(crate) async fn load(&self, dump: &[u8], cut: Option<usize>, resume: bool) -> Result<Loaded, LoadError> {
        self.load_reported(dump, cut, resume).await.map(|(loaded, _)| loaded)
    }

    /// The same, with how many znodes were said to be loaded at the end.
    pub(crate) async fn load_reported(
        &self,
        dump: &[u8],
        cut: Option<usize>,
        resume: bool,
    ) -> Result<(Loaded, u64), LoadError> {
        let mut blocks: Vec<_> =
            dump[..cut.unwrap_or(dump.len())].chunks(1_000).map(|block| Ok(block.to_vec())).collect();
        if cut.is_some() {
            blocks.push(Err(std::io::Error::other("the cable was pulled")));
        }
        let (loaded, nodes, numbers) = self.load_blocks(dump, stream::iter(blocks), resume).await?;
        assert!(numbers.iter().all(|(done, of)| done == of), "{numbers:?}");
        Ok((loaded, nodes))
    }

    /// Loads a dump that comes in these blocks. Gives what was reported last, too: how many znodes were loaded, and for
    /// each folder how many of its numbers were used up, of how many.
    pub(crate) async fn load_blocks(
        &self,
        dump: &[u8],
        blocks: impl Stream<Item = std::io::Result<Vec<u8>>>,
        resume: bool,
    ) -> Result<(Loaded, u64, Vec<(u32, u32)>), LoadError> {
        let limits = LoadLimits::new(1_000_000, &self.address[self.address.find('/').unwrap()..], &[]);
        // Of what is no whole dump the load itself must say so.
        let sha256 = load::check(dump, limits).map(|checked| checked.sha256).unwrap_or_default();
        let options = LoadOptions { now: now(), resume, limits, sha256 };
        let (mut nodes, mut numbers) = (0, Vec::new());
        let progress = |progress: LoadProgress| match progress {
            LoadProgress::Nodes(count) => {
                assert!(count >= nodes, "{count} after {nodes}");
                nodes = count;
            }
            LoadProgress::Numbers(done, of) => match numbers.last_mut() {
                Some((last, of_last)) if *of_last == of && *last < done => *last = done,
                _ => numbers.push((done, of)),
            },
        };
        let loaded = self.queue().load(pin!(blocks), &options, progress).await?;
        Ok((loaded, nodes, numbers))
    }
}

pub(crate) fn now() -> Timestamp {
    "2026-03-02T18:17:05Z".parse().unwrap()
}

/// Lines with the one after them that makes them a whole dump.
pub(crate) fn with_checksum(lines: String) -> String {
    let sum = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, lines.as_bytes());
    let sum = sum.as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    lines + &format!("{{\"sha256\":\"{sum}\"}}\n")
}

/// Runs the program.
pub(crate) async fn queuekeeper(arguments: &[&str]) -> Output {
    let mut command = program(arguments);
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
}

/// Runs the program with a file as its standard input.
pub(crate) async fn with_input(arguments: &[&str], file: &Path) -> Output {
    let mut command = program(arguments);
    command.stdin(File::open(file).unwrap());
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
}

/// The program, with nothing of our own environment that it would heed, nothing to read, and a session that a busy
/// machine does not lose.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuekeeper"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("QUEUEKEEPER_") {
            command.env_remove(name);
        }
    }
    command.env("QUEUEKEEPER_ZOOKEEPER_SESSION_TIMEOUT", "60s").args(arguments).stdin(Stdio::null());
    command
}

/// A queue in which every kind of znode occurs, and much that is not expected.
pub(crate) async fn odd() -> World {
    let world = World::new().await;
    world.client.set_data("/", b"the chroot's own value", None).await.unwrap();
    let configuration = br#"{"profile":"demo","title":"\u0001 \"quoted\" \\ \u2028","n":1.50}"#;
    let large = vec![b'x'; 1_040_000];
    let unreadable: Vec<u8> = (0..=255).collect();
    let nodes: &[(&str, &[u8])] = &[
        ("/access", b""),
        ("/access/large", b""),
        ("/access/small", b""),
        ("/access/small/qid0000000007", b""),
        ("/access/small/qid0000000007/token", br#"{"token":"t","delivery-node":7001}"#),
        ("/access/small/qid0000000007/status", br#"{"status":"Pending"}"#),
        ("/batch-uuids", b""),
        ("/batch-uuids/bid-9c1a", b"bid0000000003"),
        ("/batches", b""),
        ("/batches/bid0000000003", b""),
        ("/batches/bid0000000003/submission", br#"{"batchID":"bid-9c1a"}"#),
        ("/batches/bid0000000003/status", br#"{"status":"Reporting"}"#),
        ("/batches/bid0000000003/states", b""),
        ("/batches/bid0000000003/states/batch-processing", b""),
        ("/batches/bid0000000003/states/batch-processing/jid0000000041", b""),
        ("/batches/bid0000000003/states/batch-odd", b"no such outcome"),
        ("/jobs", b""),
        ("/jobs/jid0000000041", b""),
        ("/jobs/jid0000000041/bid", b"bid0000000003"),
        ("/jobs/jid0000000041/configuration", configuration),
        ("/jobs/jid0000000041/status", "{\"status\":\"P\u{e9}nding\"".as_bytes()),
        ("/jobs/jid0000000041/priority", b"100\n"),
        ("/jobs/jid0000000041/store", &unreadable),
        ("/jobs/jid0000000041/notes", b"\0\0\0"),
        ("/jobs/jid0000000041/notes/today", b"\xff\xfe"),
        ("/jobs/jid0000012344", b""),
        ("/jobs/jid0000012344/configuration", &large),
        ("/jobs/jid0000012344/identifiers", &large[..700_000]),
        ("/jobs/jid0000012344/metadata", &large[..700_000]),
        ("/jobs/jid42", b"no id"),
        ("/jobs/states", b""),
        ("/jobs/states/pending", b""),
        ("/jobs/states/pending/100-jid0000000041", b""),
        ("/jobs/states/pending/gone-jid", b""),
        ("/jobs/states/teleporting", b""),
        ("/locks", b""),
        ("/locks/collections", b""),
        ("/locks/collections/demo", b""),
        ("/locks/queue", b""),
        ("/locks/queue/accessLarge", br#"{"who":"me","why":"because"}"#),
        ("/locks/storage", b""),
        ("/locks/storage/ark_99999_fk4x", b""),
        ("/odd", b""),
        ("/odd/a", b"1"),
        ("/odd/a-b", b"2"),
        ("/odd/a/b", b"3"),
        ("/odd/a.b", b"4"),
        ("/odd/<b>\u{e9} \"&\\ \u{2028}", b"5"),
        ("/queuekeeper", b"our own"),
        ("/queuekeeper/expansions", b""),
        ("/queuekeeper/expansions/bid0000000003", EXPANSION),
        ("/queuekeeper/expansions/bid0000000004", b"in no form of ours"),
        ("/queuekeeper/pending", b"7"),
    ];
    world.make(nodes).await;
    for path in ["/jobs/jid0000000041/lock", "/locks/storage/ark_99999_fk4y"] {
        world.client.create(path, b"", &EPHEMERAL).await.unwrap();
    }
    // Requests that were purged: their numbers are used up.
    for _ in 0..5 {
        let (_, number) = world.client.create("/access/large/qid", b"", &SEQUENTIAL).await.unwrap();
        world.client.delete(&format!("/access/large/qid{number}"), None).await.unwrap();
    }
    world
}
