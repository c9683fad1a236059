//! Batches that become many jobs.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use futures::stream;
use jiff::Timestamp;

use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_ingest::spec::job_uuid;
use queuekeeper_queue::dump::DumpOptions;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::load::{LoadLimits, LoadOptions};
use queuekeeper_queue::path::JobNode;
use queuekeeper_queue::record::ExpansionNote;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::proxy::Proxy;
use queuekeeper_testkit::wait::eventually;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use zookeeper_client::{Acls, CreateMode, Error};

use super::contents::manifest;
use super::settings::{only, quick};
use super::world::{SESSION, World};

const ROWS: usize = 1_500;

/// As many as need some transactions, and no more: they are loaded several times.
const FEWER_ROWS: usize = 1_100;

const LONG: Duration = Duration::from_mins(4);

impl World {
    /// Serves a manifest of many rows, and deposits it.
    async fn deposit_many(&self, rows: usize) -> BatchId {
        let rows = (0..rows).map(|row| {
            let path = format!("/{}", row % 5);
            self.origin.serve(&path, "content");
            format!("{} | | | 7 | | f{row:04}.txt", self.origin.url(&path))
        });
        self.origin.serve("/all.checkm", manifest(ManifestProfile::SingleFileBatch, rows));
        self.deposit(self.said_of("all.checkm")).await.0
    }

    fn said_of(&self, name: &str) -> Value {
        let url = self.origin.url(&format!("/{name}"));
        json!({"type": "single-file-batch-manifest", "filename": name, "payload_url": url})
    }

    /// Creates jobs of a batch until there are more, and ends the daemon at whatever it does; the answer is how many
    /// rows have theirs, `None` for all.
    async fn create_more_jobs(&self, batch: BatchId) -> Option<u64> {
        let note = format!("/queuekeeper/expansions/{batch}");
        let next = async || match self.queue.client().get_data(&note).await {
            Ok((data, _)) => Some(ExpansionNote::decode(&data).unwrap().next),
            Err(Error::NoNode) => None,
            Err(error) => panic!("{error}"),
        };
        let before = next().await;
        let is_done = async || self.queue.load_batch(batch).await.unwrap().state() == Some(BatchState::Reporting);
        let has_more = async || {
            let now = next().await;
            // Without a note none has its job, or all have.
            if before.is_none() { now > Some(0) || now.is_none() && is_done().await } else { now != before }
        };
        // A transaction of many jobs takes a second: what it has done is seen before the next.
        let proxy = Proxy::start(self.server.port()).await;
        proxy.slow(Duration::from_millis(60));
        let settings = only(&[Daemon::Batch], quick());
        let daemons = self.start_through(&proxy.connect_string(), settings, Duration::from_secs(6)).await;
        eventually(LONG, "more jobs are created", has_more).await;
        daemons.abort().await;
        // What was on its way is done then, or never.
        let is_over = async || self.children("/queuekeeper/daemons").await.is_empty();
        eventually(LONG, "its session ends", is_over).await;
        next().await
    }

    /// Waits until each row has become one job and one version, of an object of its own.
    async fn check_rows(&self, batch: BatchId) {
        let (state, report) = self.ended_within(LONG, batch).await;
        assert_eq!((state, report.completed.len(), report.len()), (BatchState::Completed, ROWS, ROWS));
        let (mut arks, mut names, mut ids) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for job in &report.completed {
            let job = self.job(*job).await;
            let configuration: Value = serde_json::from_slice(job.data(JobNode::Configuration).unwrap()).unwrap();
            names.insert(configuration["filename"].as_str().unwrap().to_owned());
            ids.insert(configuration["jobID"].as_str().unwrap().to_owned());
            arks.insert(job.identifiers().value.ark.into_owned());
        }
        assert_eq!([arks.len(), names.len(), ids.len()], [ROWS; 3]);
        let mut versions = 0;
        for ark in &arks {
            versions += self.services.catalogue.versions(ark, None, 10).await.unwrap().len();
        }
        assert_eq!(versions, ROWS);
        assert!(self.children("/queuekeeper/expansions").await.is_empty());
        assert_eq!(self.left(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_batch_whose_expansion_is_cut_off_each_row_becomes_one_job_and_one_version() {
    let world = World::with(quick()).await;
    let batch = world.deposit_many(ROWS).await;
    world.create_more_jobs(batch).await;
    let created = world.children("/jobs").await.iter().filter(|name| name.starts_with("jid")).count();
    assert!(created > 1 && created < ROWS, "{created}: it was not cut off between chunks");
    // No report daemon may take it for a batch whose jobs are done.
    assert!(!world.queue.batch_report(batch).await.unwrap().processing.is_empty());

    // Where its profile is missing it is not failed: the rows that have no job yet would be lost.
    let profile = world.directory.path().join("profiles/demo.yaml");
    let text = std::fs::read(&profile).unwrap();
    std::fs::remove_file(&profile).unwrap();
    let daemons = world.start_anew(only(&[Daemon::Batch], quick()), SESSION).await;
    let waits = async || {
        for process in world.children("/queuekeeper/daemons").await {
            let note = world.queue.client().get_data(&format!("/queuekeeper/daemons/{process}")).await;
            // It goes with its session.
            let Ok((note, _)) = note else { continue };
            if String::from_utf8(note).unwrap().contains("the others wait until this is repaired") {
                return true;
            }
        }
        false
    };
    eventually(LONG, "it waits for its profile", waits).await;
    daemons.stop().await;
    std::fs::write(&profile, text).unwrap();

    let daemons = world.start_anew(quick(), SESSION).await;
    world.check_rows(batch).await;

    // One that is not valid becomes no job, and says where it is wrong.
    let rows =
        [format!("{} | md5 | zz | 7 | | a.txt", world.origin.url("/0")), "gopher://x | | | | | b.txt".to_owned()];
    world.origin.serve("/wrong.checkm", manifest(ManifestProfile::SingleFileBatch, rows));
    let (wrong, _) = world.deposit(world.said_of("wrong.checkm")).await;
    let (state, report) = world.ended(wrong).await;
    assert_eq!((state, report.len()), (BatchState::Failed, 0));
    let (status, _) = world.queue.client().get_data(&format!("/batches/{wrong}/status")).await.unwrap();
    let status: Value = serde_json::from_slice(&status).unwrap();
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("line 3, column") && message.contains("line 4, column"), "{message}");
    let folder = format!("/batches/{wrong}/states");
    assert_eq!(world.children(&folder).await, ["batch-processing"]);
    assert!(world.children("/queuekeeper/expansions").await.is_empty());
    daemons.stop().await;
}

/// A file that lets something happen when the first line of a dump is written, before the znodes are read.
struct Meanwhile<F>(Vec<u8>, Option<F>);

impl<F: FnOnce()> Write for Meanwhile<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(meanwhile) = self.1.take() {
            meanwhile();
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_batch_that_is_dumped_while_its_jobs_are_created_each_row_is_one_job_where_it_is_loaded() {
    let world = World::with(quick()).await;
    let batch = world.deposit_many(FEWER_ROWS).await;
    let mut has_all = false;
    // Before any job exists, between two chunks, and with the last of them.
    while !has_all {
        let options = DumpOptions { id: "a-dump".to_owned(), now: Timestamp::now(), redaction: None };
        let mut next = None;
        let meanwhile = || {
            tokio::task::block_in_place(|| {
                Handle::current().block_on(async { next = world.create_more_jobs(batch).await });
            });
        };
        let mut file = Meanwhile(Vec::new(), Some(meanwhile));
        world.queue.dump(&mut file, &options, |_| {}).await.unwrap();
        let dump = file.0;
        let at = next.map_or_else(|| "all".to_owned(), |next| next.to_string());
        has_all = next.is_none();

        let chroot = format!("/loaded-{at}");
        let anyone = CreateMode::Persistent.with_acls(Acls::anyone_all());
        world.queue.client().create(&chroot, b"", &anyone).await.unwrap();
        let loaded = World::on(Arc::clone(&world.server), &chroot, quick()).await;
        // It fetches what the first one does.
        let profile = std::fs::read(world.directory.path().join("profiles/demo.yaml")).unwrap();
        std::fs::write(loaded.directory.path().join("profiles/demo.yaml"), profile).unwrap();
        let limits = LoadLimits::new(u32::MAX, &chroot, &[]);
        let sha256 = queuekeeper_queue::load::check(&dump[..], limits).unwrap().sha256;
        let options = LoadOptions { now: Timestamp::now(), resume: false, limits, sha256 };
        loaded.queue.load(stream::iter([Ok(dump)]), &options, |_| {}).await.unwrap();
        let daemons = loaded.start_anew(only(&[Daemon::Batch], quick()), SESSION).await;
        let is_made = async || {
            let state = loaded.queue.load_batch(batch).await.unwrap().state();
            state == Some(BatchState::Reporting) && loaded.children("/queuekeeper/expansions").await.is_empty()
        };
        eventually(LONG, "its jobs are created", is_made).await;
        daemons.stop().await;
        let jobs = loaded.queue.configurations(batch).await.unwrap();
        let ids: BTreeSet<_> = jobs.values().map(|data| job_uuid(data).unwrap()).collect();
        let queued = loaded.children("/jobs/states/pending").await.len();
        assert_eq!([jobs.len(), ids.len(), queued], [FEWER_ROWS; 3], "dumped with {at}");
    }
}
