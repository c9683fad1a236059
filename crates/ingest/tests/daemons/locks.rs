//! What others do to the locks of our workers.

use std::time::Duration;

use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::origin::OriginFault;
use queuekeeper_testkit::wait::eventually;
use serde_json::json;

use super::settings::quick;
use super::world::{SESSION, World};

const LIMIT: Duration = Duration::from_mins(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_whose_lock_is_deleted_again_and_again_is_completed_once() {
    let world = World::with(quick()).await;
    world.origin.serve("/a", vec![b'x'; 100_000]);
    let slow = OriginFault::Slow(Duration::from_millis(50));
    world.origin.fail("/a", std::iter::repeat_n(slow, 20));
    // Two processes: neither may take what the other's worker has not given up.
    let first = world.start_anew(quick(), SESSION).await;
    let second = world.start_anew(quick(), SESSION).await;
    let url = world.origin.url("/a");
    let say = json!({"type": "file", "filename": "a.txt", "payload_url": url, "size": "100000", "localID": "locked"});
    let (batch, _) = world.deposit(say).await;
    let mut deleted = 0;
    eventually(LIMIT, "its lock was deleted in several states", async || {
        let report = world.queue.batch_report(batch).await.unwrap();
        for job in &report.processing {
            deleted += usize::from(world.queue.client().delete(&format!("/jobs/{job}/lock"), None).await.is_ok());
        }
        deleted >= 10 || !report.completed.is_empty()
    })
    .await;
    assert!(deleted > 0);
    let (state, report) = world.ended(batch).await;
    assert_eq!((state, report.completed.len(), report.len()), (BatchState::Completed, 1, 1));
    world.check_object(&world.ark(report.completed[0]).await, 1).await;
    eventually(LIMIT, "nothing is held", async || world.children("/queuekeeper/held").await.is_empty()).await;
    assert_eq!(world.left(), Vec::<String>::new());
    first.stop().await;
    second.stop().await;
}
