//! What wakes daemons that look by themselves only once in an hour.

use std::time::Duration;

use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::proxy::{Newcomers, Proxy};
use queuekeeper_testkit::wait::eventually;
use serde_json::json;

use super::settings::{only, quick};
use super::world::{WAIT_LIMIT, World};

/// How long nothing wakes a daemon but an arrival.
const HOUR: Duration = Duration::from_hours(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_another_process_wake_daemons_at_once_also_after_the_connection_was_lost() {
    let world = World::with(Settings { look_again: HOUR, ..quick() }).await;
    world.origin.serve("/a", "content");
    let proxy = Proxy::start(world.server.port()).await;
    // One process creates the jobs, and another one, which learns of them by its watch, works on them.
    let of_batches = [Daemon::Batch, Daemon::Report];
    let of_jobs: Vec<_> = Daemon::ALL.into_iter().filter(|daemon| !of_batches.contains(daemon)).collect();
    let creating = world.start_anew(only(&of_batches, quick()), Duration::from_secs(30)).await;
    let settings = only(&of_jobs, Settings { look_again: HOUR, ..quick() });
    let working = world.start_through(&proxy.connect_string(), settings, Duration::from_secs(30)).await;
    for round in 0..4 {
        let url = world.origin.url("/a");
        let (batch, _) = world.deposit(json!({"type": "file", "filename": "a.txt", "payload_url": url})).await;
        let (state, report) = world.ended(batch).await;
        assert_eq!((state, report.completed.len()), (BatchState::Completed, 1), "round {round}");
        let before = proxy.accepted();
        proxy.cut(Newcomers::Close);
        proxy.restore();
        // A session for the locks, and one for the watches.
        eventually(WAIT_LIMIT, "both are connected again", async || proxy.accepted() >= before + 2).await;
    }
    creating.stop().await;
    working.stop().await;
}
