//! Origins that fail, for a while or for good.

use std::time::Duration;

use queuekeeper_queue::JobChange;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::record::Retry;
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_testkit::origin::OriginFault;
use queuekeeper_testkit::wait::{eventually, eventually_some};
use serde_json::json;

use super::world::{World, quick};

const LIMIT: Duration = Duration::from_secs(30);

impl World {
    /// The only job of a batch, once it waits for another attempt.
    async fn waiting(&self, batch: queuekeeper_queue::id::BatchId) -> (JobId, Retry) {
        eventually_some(LIMIT, "a job waits for another attempt", async || {
            let job = *self.queue.batch_report(batch).await.unwrap().processing.first()?;
            let note = format!("/queuekeeper/retry/{job}");
            let (data, _) = self.queue.client().get_data(&note).await.ok()?;
            Some((job, Retry::decode(&data).unwrap()))
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_waits_out_an_origin_that_is_away_and_fails_at_once_where_it_never_succeeds() {
    let mut settings = quick();
    settings.retry_first = Duration::from_millis(700);
    settings.retry_most = settings.retry_first;
    let world = World::with(settings).await;
    let daemons = world.start();
    let say = |path: &str, size: u64| json!({"type": "file", "filename": "a.txt", "payload_url": world.origin.url(path), "size": size.to_string()});

    // Its lock and its worker are given back, and why it waits is written down.
    world.origin.serve("/a", "content");
    world.origin.fail("/a", [OriginFault::Status(503, None), OriginFault::Status(503, None)]);
    let (batch, _) = world.deposit(say("/a", 7)).await;
    let (job, retry) = world.waiting(batch).await;
    assert!(retry.why.contains(&world.origin.url("/a")) && retry.why.contains("503"), "{retry:?}");
    let waiting = world.job(job).await;
    assert_eq!((waiting.state(), waiting.lock().is_none()), (Some(JobState::Downloading), true));
    let (state, _) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    assert_eq!(world.origin.take_requests().len(), 3);
    assert!(world.children("/queuekeeper/retry").await.is_empty());

    // What never succeeds is not tried again.
    let (batch, _) = world.deposit(say("/missing", 7)).await;
    let (state, report) = world.ended(batch).await;
    let message = world.message(report.failed[0]).await;
    assert_eq!((state, world.origin.take_requests().len()), (BatchState::Failed, 1), "{message}");
    assert!(message.contains("/missing") && message.contains("404"), "{message}");

    // An operator's change ends a wait.
    world.origin.serve("/b", "content");
    world.origin.fail("/b", [OriginFault::Status(503, Some("600"))]);
    let (batch, _) = world.deposit(say("/b", 7)).await;
    let (job, retry) = world.waiting(batch).await;
    assert!(retry.not_before.duration_since(retry.since).as_secs() > 60, "{retry:?}");
    let change = JobChange::to(JobState::Failed).by_operator().with_message("by hand");
    world.queue.change_job(job, &change, jiff::Timestamp::now()).await.unwrap();
    world.queue.change_job(job, &JobChange::resume(), jiff::Timestamp::now()).await.unwrap();
    eventually(LIMIT, "the resumed job is completed", async || {
        world.job(job).await.state() == Some(JobState::Completed)
    })
    .await;
    assert!(world.children("/queuekeeper/retry").await.is_empty());
    world.check_object(&world.ark(job).await, 1).await;
    daemons.stop().await;
}
