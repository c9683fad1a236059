//! Access requests that wait: for a store that is held, and for room.

use std::time::Instant;

use jiff::Timestamp;
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_queue::record::Retry;
use queuekeeper_queue::state::AccessState;
use queuekeeper_testkit::wait::{eventually, eventually_some};
use serde_json::json;

use super::access::{LIMIT, SMALL};
use super::settings::{SOON, delivering, only, quick, watching};
use super::world::{SESSION, World};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_delivered_into_a_held_store_or_above_the_threshold_and_the_note_of_a_request_says_so() {
    let world = World::with(delivering(quick())).await;
    let daemons = world.start();
    let ark = world.object(&[("a.txt", "alpha")]).await;
    daemons.stop().await;
    let hold = world.queue.plan_hold_store("out", "tester", "a test", Timestamp::now()).await.unwrap();
    world.queue.commit(&hold).await.unwrap();
    let access = |settings| only(&[Daemon::Access], delivering(settings));
    // It is the watch that wakes these.
    let daemons = world.start_anew(access(watching()), SESSION).await;
    let small = world.request(SMALL, &json!({"token": "t-1", "object": ark})).await;
    let waits = async |why: &str| {
        eventually_some(LIMIT, why, async || {
            let note = format!("/queuekeeper/retry/small-{small}");
            let (data, _) = world.queue.client().get_data(&note).await.ok()?;
            let request = world.queue.load_request(SMALL, small).await.unwrap();
            let note = Retry::decode(&data).unwrap();
            let is_it = note.why.contains(why) && note.version == request.version().unwrap();
            (is_it && request.lock().is_none()).then_some(request.state().unwrap())
        })
        .await
    };
    assert_eq!(waits("store out is held").await, AccessState::Pending);
    assert_eq!(world.delivered(), Vec::<String>::new());
    let seen = world.queue.held_store("out").await.unwrap().unwrap();
    let release = world.queue.plan_release_store("out", Some(&seen.lock)).await.unwrap();
    daemons.stop().await;

    // Released, but on a volume that is too full. They begin while it is held, and see the release.
    let mut full = access(quick());
    full.space.threshold = 0.000_001;
    let daemons = world.start_anew(full, SESSION).await;
    world.queue.commit(&release).await.unwrap();
    assert_eq!(waits("store out has no room for an archive of").await, AccessState::Processing);
    assert_eq!(world.delivered(), Vec::<String>::new());
    daemons.stop().await;

    // A hold that ends wakes those that wait for it.
    let hold = world.queue.plan_hold_store("out", "tester", "a test", Timestamp::now()).await.unwrap();
    world.queue.commit(&hold).await.unwrap();
    let daemons = world.start_anew(access(watching()), SESSION).await;
    waits("store out is held").await;
    let release = world.queue.plan_release_store("out", None).await.unwrap();
    world.queue.commit(&release).await.unwrap();
    let released = Instant::now();
    assert_eq!(world.ended_request(SMALL, small).await.0, AccessState::Completed);
    assert!(released.elapsed() < SOON, "{:?}", released.elapsed());
    eventually(LIMIT, "the note is removed", async || world.children("/queuekeeper/retry").await.is_empty()).await;
    daemons.stop().await;
}
