//! The files by which those who test make jobs fail.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::working::SizeLimit;
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_testkit::wait::eventually;
use serde_json::{Value, json};

use super::settings::{only, quick};
use super::world::{SESSION, World, services};

const LIMIT: Duration = Duration::from_mins(5);

/// By the states that they are of, as those who wrote them for Java's daemons call them.
const FILES: [(JobState, &str); 8] = [
    (JobState::Pending, "Initialize_FAIL"),
    (JobState::Estimating, "Estimate_FAIL"),
    (JobState::Provisioning, "Provision_FAIL"),
    (JobState::Downloading, "Download_FAIL"),
    (JobState::Processing, "Process_FAIL"),
    (JobState::Storing, "Store_FAIL"),
    (JobState::Recording, "Record_FAIL"),
    (JobState::Notify, "Notify_FAIL"),
];

fn deposit(world: &World) -> Value {
    world.origin.serve("/a.txt", "content");
    json!({"type": "file", "filename": "a.txt", "payload_url": world.origin.url("/a.txt")})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fail_file_makes_jobs_fail_in_its_state_and_in_no_other_one() {
    let world = World::with(quick()).await;
    let daemons = world.start();
    let mut last = None;
    for (state, name) in FILES {
        let file = world.services.working.root().join(name);
        fs::write(&file, "").unwrap();
        let (batch, _) = world.deposit(deposit(&world)).await;
        let (outcome, report) = world.ended(batch).await;
        assert_eq!((outcome, report.failed.len()), (BatchState::Failed, 1), "{name}");
        let job = world.job(report.failed[0]).await;
        assert_eq!(job.status().value.message, format!("FAIL file exists: {name}"));
        assert_eq!(job.status().value.last_successful, last, "{name}");
        last = Some(state);
        fs::remove_file(file).unwrap();
    }
    let (batch, _) = world.deposit(deposit(&world)).await;
    let (state, _) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_waits_for_space_fails_by_a_fail_file_too() {
    let world = World::with(quick()).await;
    let first = only(&[Daemon::Batch, Daemon::Pending, Daemon::Estimating], quick());
    let first = world.start_anew(first, SESSION).await;
    let (batch, _) = world.deposit(deposit(&world)).await;
    eventually(LIMIT, "the job waits for space", async || world.children("/jobs/states/provisioning").await.len() == 1)
        .await;
    first.stop().await;
    let job = world.queue.batch_report(batch).await.unwrap().processing[0];
    let path = format!("/jobs/{job}/space_needed");
    world.queue.client().set_data(&path, b"2000000", None).await.unwrap();
    // Of ten megabytes eight may be used, and seven are.
    let root = world.services.working.root();
    fs::write(root.join("filler"), vec![b'x'; 7_000_000]).unwrap();
    let mut services = Arc::into_inner(services(world.directory.path(), quick()).await).unwrap();
    services.working = services.working.limited(SizeLimit::new(10_000_000));
    let daemons = world.start_with(Arc::new(services), SESSION);
    // Looked at in a round, and left where it is.
    tokio::time::timeout(Duration::from_secs(2), world.ended(batch)).await.unwrap_err();
    fs::write(root.join("Provision_FAIL"), "").unwrap();
    let (state, _) = world.ended_within(LIMIT, batch).await;
    assert_eq!(state, BatchState::Failed);
    assert_eq!(world.message(job).await, "FAIL file exists: Provision_FAIL");
    daemons.stop().await;
}
