//! A store that is held.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::wait::eventually;
use serde_json::json;

use super::settings::{SOON, only, watching};
use super::world::{SESSION, World, figure, services};

const LIMIT: Duration = Duration::from_mins(10);

/// How many jobs wait for a held store.
const WAITING: &str = "merritt_daemon_store_waiting";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_stored_in_a_held_store_until_it_is_released_while_the_jobs_of_another_store_go_on() {
    let world = World::new().await;
    std::fs::create_dir(world.directory.path().join("spare")).unwrap();
    world.add_profile("beside", "");
    let profile = world.directory.path().join("profiles/beside.yaml");
    let text = std::fs::read_to_string(&profile).unwrap();
    std::fs::write(&profile, text.replace("store: main", "store: spare")).unwrap();
    world.origin.serve("/a", "content");
    let file = |profile: &str| json!({"type": "file", "filename": "a.txt", "profile": profile, "payload_url": world.origin.url("/a")});
    let storing = "/jobs/states/storing";

    // One job waits in Storing since before the daemon for it began, and one comes to it in the same process.
    let hold = world.queue.plan_hold_store("main", "tester", "a test", Timestamp::now()).await.unwrap();
    world.queue.commit(&hold).await.unwrap();
    let all = Daemon::ALL.into_iter().filter(|daemon| *daemon != Daemon::Storing).collect::<Vec<_>>();
    let before = world.start_anew(only(&all, watching()), SESSION).await;
    let (first, _) = world.deposit(file("demo")).await;
    eventually(LIMIT, "a job waits", async || world.children(storing).await.len() == 1).await;
    before.stop().await;
    let services = services(world.directory.path(), watching()).await;
    let daemons = world.start_with(Arc::clone(&services), SESSION);
    let (second, _) = world.deposit(file("demo")).await;
    eventually(LIMIT, "both wait", async || world.children(storing).await.len() == 2).await;
    let (beside, _) = world.deposit(file("beside")).await;
    let (state, report) = world.ended(beside).await;
    assert_eq!((state, report.completed.len()), (BatchState::Completed, 1), "{:?}", world.jobs(beside).await);
    eventually(LIMIT, "both are counted", async || figure(&services, WAITING) == 2).await;

    // They were given back as they were: no lock, no note, and nothing in the store.
    for entry in world.children(storing).await {
        let job = world.job(entry.split_once('-').unwrap().1.parse().unwrap()).await;
        assert!(job.lock().is_none() && job.version() == Some(5), "{:?}", job.version());
        assert_eq!(job.status().value.retry_count, Some(0));
    }
    assert!(world.children("/queuekeeper/retry").await.is_empty());
    let stored = std::fs::read_dir(world.directory.path().join("objects")).unwrap().count();
    assert!(stored <= 1, "{stored}");

    let seen = world.queue.held_store("main").await.unwrap().unwrap();
    assert_eq!((&*seen.who, &*seen.why), ("tester", "a test"));
    let release = world.queue.plan_release_store("main", Some(&seen.lock)).await.unwrap();
    world.queue.commit(&release).await.unwrap();
    let released = Instant::now();
    let mut took = Vec::new();
    for batch in [first, second] {
        let (state, report) = world.ended(batch).await;
        let jobs = world.jobs(batch).await;
        assert_eq!((state, report.completed.len()), (BatchState::Completed, 1), "{jobs:?}");
        let retries = world.job(report.completed[0]).await.status().value.retry_count;
        took.push((released.elapsed(), retries, jobs));
    }
    assert!(released.elapsed() < SOON, "{took:?}");
    eventually(LIMIT, "none is counted", async || figure(&services, WAITING) == 0).await;
    assert!(world.queue.plan_release_store("main", Some(&seen.lock)).await.is_err());
    daemons.stop().await;
}
