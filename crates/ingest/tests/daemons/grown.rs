//! Files that are larger than they were taken for.

use std::time::Duration;

use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_queue::record::GrantsNote;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::origin::OriginFault;
use queuekeeper_testkit::wait::eventually;
use serde_json::json;

use super::contents::manifest;
use super::settings::quick;
use super::world::World;

const LIMIT: Duration = Duration::from_mins(5);

/// How large each file is said to be, in bytes, and how large it is.
const SAID: usize = 1_000;
const FOUND: usize = 900_000;

const FILES: usize = 4;

impl World {
    /// How many bytes all jobs are granted.
    async fn granted(&self) -> u64 {
        let path = format!("/queuekeeper/space/{}", self.services.working.volume());
        let Ok((data, _)) = self.queue.client().get_data(&path).await else { return 0 };
        GrantsNote::decode(&data).unwrap().total()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_whose_files_are_larger_than_their_origin_said_is_granted_what_they_take() {
    let world = World::with(quick()).await;
    let rows = (0..FILES).map(|row| {
        let path = format!("/{row}");
        world.origin.serve(&path, vec![b'x'; SAID]);
        let larger = OriginFault::Replace(vec![b'y'; FOUND].into());
        // Of the request for the size, the one that finds it larger, and the one that fetches it.
        let slow = OriginFault::Slow(Duration::from_millis(if row == 0 { 60 } else { 0 }));
        world.origin.fail(&path, [OriginFault::Slow(Duration::ZERO), larger, slow]);
        format!("{} | | | | | f{row}.txt", world.origin.url(&path))
    });
    world.origin.serve("/object.checkm", manifest(ManifestProfile::Ingest, rows));
    let daemons = world.start();
    let url = world.origin.url("/object.checkm");
    let say = json!({"type": "object-manifest", "filename": "object.checkm", "payload_url": url});
    let (batch, _) = world.deposit(say).await;
    let needed = (FILES * FOUND) as u64;
    eventually(LIMIT, "the grant is extended while a file comes", async || world.granted().await >= needed).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    let job = world.job(report.completed[0]).await;
    assert!(job.space_needed().unwrap() >= Some(needed));
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_whose_size_nobody_knows_may_have_more_than_such_files_are_taken_for() {
    let mut settings = quick();
    settings.space.unknown = SAID as u64;
    let world = World::with(settings).await;
    world.origin.serve("/a", vec![b'x'; FOUND]);
    // It says its size neither when that is requested nor when it is fetched.
    let refused = OriginFault::Status(405, None);
    world.origin.fail("/a", [refused.clone(), refused, OriginFault::Chunked(0), OriginFault::Chunked(0)]);
    let daemons = world.start();
    let (batch, _) =
        world.deposit(json!({"type": "file", "filename": "a.bin", "payload_url": world.origin.url("/a")})).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    world.check_object(&world.ark(report.completed[0]).await, 1).await;
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_origin_that_says_another_size_at_each_request_is_given_up_and_named() {
    let mut settings = quick();
    settings.space.unknown = SAID as u64;
    settings.retry_within = Duration::from_secs(1);
    let world = World::with(settings).await;
    world.origin.serve("/a", vec![b'x'; SAID]);
    let refused = OriginFault::Status(405, None);
    // More than it can be requested until it is given up, each larger than the one before.
    let larger = (1..200).map(|request| OriginFault::Replace(vec![b'y'; SAID + request * 1_000].into()));
    world.origin.fail("/a", [refused.clone(), refused].into_iter().chain(larger));
    let daemons = world.start();
    let (batch, _) =
        world.deposit(json!({"type": "file", "filename": "a.bin", "payload_url": world.origin.url("/a")})).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!((state, report.failed.len()), (BatchState::Failed, 1));
    let message = world.message(report.failed[0]).await;
    assert!(message.contains("the origin of \"a.bin\" returns another size at each request"), "{message}");
    daemons.stop().await;
}
