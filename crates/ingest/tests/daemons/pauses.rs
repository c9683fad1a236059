//! A paused queue and a held collection.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_queue::path::QueueName;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::wait::eventually;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::contents::manifest;
use super::settings::{SOON, only, quick, watching};
use super::world::{SESSION, World};

const LIMIT: Duration = Duration::from_mins(5);

const JOBS: usize = 20;

impl World {
    async fn count(&self, state: &str) -> usize {
        self.children(&format!("/jobs/states/{state}")).await.len()
    }

    /// Waits until a client of the server watches the pause of ingest: daemons that have just been started know of it.
    async fn pause_is_watched(&self) {
        let is_watched = async || {
            let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, self.server.port())).await.unwrap();
            server.write_all(b"wchp").await.unwrap();
            let mut watched = String::new();
            server.read_to_string(&mut watched).await.unwrap();
            watched.lines().any(|path| path.ends_with("/locks/queue/ingest"))
        };
        eventually(LIMIT, "the daemons watch the pause", is_watched).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_stops_new_work_until_it_ends_and_a_hold_takes_all_that_is_pending_at_once() {
    let world = World::with(watching()).await;
    world.origin.serve("/a", "content");
    let file = json!({"type": "file", "filename": "a.txt", "payload_url": world.origin.url("/a")});
    let rows = (0..JOBS).map(|row| format!("{} | | | 7 | | f{row}.txt", world.origin.url("/a")));
    world.origin.serve("/all.checkm", manifest(ManifestProfile::SingleFileBatch, rows));
    let many = json!({"type": "single-file-batch-manifest", "filename": "all.checkm",
                      "payload_url": world.origin.url("/all.checkm")});

    // Some jobs are there, and a batch comes, while the queue is paused.
    let expanding = world.start_anew(only(&[Daemon::Batch], quick()), SESSION).await;
    let (jobs, _) = world.deposit(many.clone()).await;
    eventually(LIMIT, "all jobs are created", async || world.count("pending").await == JOBS).await;
    expanding.stop().await;
    world.queue.pause(QueueName::Ingest, "tester", "a test", Timestamp::now()).await.unwrap();
    let daemons = world.start_anew(quick(), SESSION).await;
    let (batch, _) = world.deposit(file.clone()).await;
    world.pause_is_watched().await;
    // They look twice a second.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(world.count("pending").await, JOBS);
    assert_eq!(world.queue.load_batch(batch).await.unwrap().check_loadable().unwrap(), BatchState::Pending);
    daemons.stop().await;

    // It is the watch that wakes these.
    let daemons = world.start();
    world.pause_is_watched().await;
    let unpause = world.queue.plan_unpause(QueueName::Ingest, None).await.unwrap();
    world.queue.commit(&unpause).await.unwrap();
    let began = Instant::now();
    eventually(LIMIT, "the batch is taken", async || {
        let state = world.queue.load_batch(batch).await.unwrap().check_loadable().unwrap();
        state != BatchState::Pending && world.count("pending").await < JOBS
    })
    .await;
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    for batch in [batch, jobs] {
        let (state, report) = world.ended(batch).await;
        let jobs = world.jobs(batch).await;
        assert_eq!((state, report.failed.len()), (BatchState::Completed, 0), "{jobs:?}");
    }
    daemons.stop().await;

    // All that is Pending becomes Held in one look: those after it are far away.
    let expanding = world.start_anew(only(&[Daemon::Batch], quick()), SESSION).await;
    world.deposit(many).await;
    eventually(LIMIT, "all jobs are created", async || world.count("pending").await == JOBS).await;
    expanding.stop().await;
    let mut batches = Vec::new();
    for _ in 0..5 {
        batches.push(world.deposit(file.clone()).await.0);
    }
    world.queue.hold_collection("demo", "tester", "a test", Timestamp::now()).await.unwrap();
    let (daemons, began) = (world.start(), Instant::now());
    eventually(LIMIT, "all jobs and batches are held", async || {
        for batch in &batches {
            if world.queue.load_batch(*batch).await.unwrap().check_loadable().unwrap() != BatchState::Held {
                return false;
            }
        }
        world.count("held").await == JOBS && world.count("pending").await == 0
    })
    .await;
    assert!(began.elapsed() < 2 * SOON, "{:?}", began.elapsed());
    daemons.stop().await;
}
