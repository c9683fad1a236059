//! Deposits that are withdrawn: what a client left is brought to its end, and what was uploaded goes.

use std::ops::ControlFlow;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::deposits::NewDeposit;
use queuekeeper_ingest::cleanup::CleanupSettings;
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::parts::uuid_of_part;
use queuekeeper_ingest::withdrawal::taken_back;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::record::WithdrawnNote;
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_queue::{Due, ItemChange, JobChange, NewJob, WithdrawalOutcome};
use queuekeeper_testkit::wait::eventually;
use serde_json::json;
use uuid::Uuid;

use super::mail::LIMIT;
use super::settings::{only, quick};
use super::world::{SESSION, World};

const BY: WithdrawnNote<'static> = WithdrawnNote { who: "alice", why: "the wrong files" };

impl World {
    /// Records a deposit of alice's in the catalogue, of so many bytes.
    pub(super) async fn record(&self, batch: Uuid, profile: &str, bytes: u64) {
        let (depositor, profile) = ("alice".to_owned(), profile.to_owned());
        let deposit = NewDeposit { batch, depositor, idempotency_key: None, profile, objects: 1, bytes };
        self.services.catalogue.record_deposit(&deposit).await.unwrap();
    }
}

/// A deposit with so many jobs that a withdrawal of it takes several transactions, which its client left after some.
async fn left(world: &World, transactions: usize) -> (BatchId, Uuid) {
    let uuid = Uuid::new_v4();
    let id = format!("bid-{uuid}");
    world.record(uuid, "demo", 70).await;
    let batch = world.deposit_as(&id, json!({"type": "file", "filename": "a.txt"})).await;
    let (queue, now) = (world.queue.clone().with_jobs_per_transaction(2), Timestamp::now());
    let (locked, _) = queue.acquire_batch(Due::Jobs, now).await.unwrap();
    queue.create_jobs(batch, &vec![NewJob::new(r#"{"profile":"demo"}"#); 7], now).await.unwrap();
    queue.finish_batch(&locked.unwrap(), &ItemChange::to(BatchState::Reporting), now).await.unwrap();
    let mut done = 0;
    let report = |_| {
        done += 1;
        if done == transactions { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let outcome = queue.withdraw(batch, BY, now, report).await.unwrap();
    assert_eq!(outcome == WithdrawalOutcome::Interrupted, transactions > 0);
    (batch, uuid)
}

async fn outcome(world: &World, uuid: Uuid) -> Option<String> {
    world.services.catalogue.deposit(uuid).await.unwrap().unwrap().outcome.map(|(outcome, _)| outcome)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_withdrawal_that_was_left_is_finished_or_taken_back_by_the_batch_daemon() {
    let world = World::with(quick()).await;
    let (holding, first) = left(&world, 2).await;
    let (deleting, second) = left(&world, 6).await;
    let (hindered, third) = left(&world, 2).await;
    // One of its jobs has left Pending since.
    let job = *world.queue.batch_report(hindered).await.unwrap().processing.last().unwrap();
    world.queue.change_job(job, &JobChange::success(), Timestamp::now()).await.unwrap();

    let daemons = world.start_anew(only(&[Daemon::Batch], quick()), SESSION).await;
    let is_over = async || world.children("/queuekeeper/withdrawals").await.is_empty();
    eventually(LIMIT, "they are taken up", is_over).await;
    for (batch, uuid) in [(holding, first), (deleting, second)] {
        let found = world.queue.load_batch(batch).await.unwrap();
        assert_eq!((found.state(), found.message()), (Some(BatchState::Deleted), BY.to_string()));
        assert_eq!(world.queue.batch_report(batch).await.unwrap().deleted.len(), 7);
        let is_recorded = async || outcome(&world, uuid).await.as_deref() == Some("withdrawn");
        eventually(LIMIT, "the catalogue says so", is_recorded).await;
    }
    let report = world.queue.batch_report(hindered).await.unwrap();
    assert_eq!((report.processing.len(), report.len()), (7, 7));
    let why = format!("its job {job} is in Estimating; it can no longer be withdrawn");
    let is_recorded = async || outcome(&world, third).await.is_some_and(|outcome| taken_back(&outcome) == Some(&*why));
    eventually(LIMIT, "the catalogue says why it was taken back", is_recorded).await;
    for id in report.processing {
        let expected = if id == job { JobState::Estimating } else { JobState::Pending };
        assert_eq!(world.job(id).await.state(), Some(expected), "{id}");
    }
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_uploaded_of_a_withdrawn_deposit_goes_with_its_batch_when_the_catalogue_knows_of_it() {
    let world = World::with(quick()).await;
    // Its client ended before it could write that down.
    let (batch, uuid) = left(&world, 0).await;
    let directory = world.directory.path().join(format!("working/bid-{uuid}"));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("a.txt"), "content").unwrap();
    assert_eq!(outcome(&world, uuid).await, None);
    let short = Duration::from_millis(100);
    let cleanup = CleanupSettings {
        after: Duration::ZERO,
        share: 1.0,
        every: short,
        entries_after: short,
        directories_every: short,
        messages_after: short,
        objects_after: short,
    };
    let mut settings = only(&[Daemon::Cleanup], quick());
    settings.cleanup = cleanup;
    let daemons = world.start_anew(settings, SESSION).await;
    let is_gone = async || world.children("/batches").await.is_empty() && !directory.exists();
    eventually(LIMIT, "it is removed", is_gone).await;
    assert!(!world.children("/jobs").await.iter().any(|name| name.starts_with("jid")), "{batch}");
    assert_eq!(outcome(&world, uuid).await.as_deref(), Some("withdrawn"));
    // Its bytes count as deposited.
    let since = Timestamp::now().checked_sub(Duration::from_hours(24)).unwrap();
    assert_eq!(world.services.catalogue.deposited_since("alice", since).await.unwrap().bytes, 70);
    assert_eq!(world.left(), Vec::<String>::new());
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_other_batches_of_a_deposit_are_withdrawn_by_the_daemons_where_its_client_ended_behind_the_first() {
    let world = World::with(quick()).await;
    let (first, uuid) = left(&world, 0).await;
    let part = uuid_of_part(uuid, 2);
    world.services.catalogue.record_part(uuid, 2, part, 3).await.unwrap();
    let id = format!("bid-{part}");
    let say = json!({
        "type": "file", "filename": "a.txt", "partOf": format!("bid-{uuid}"), "part": "2", "parts": "2", "partRows": "7",
        "manifestSHA256": "0".repeat(64),
    });
    let second = world.deposit_as(&id, say).await;
    let (queue, now) = (&world.queue, Timestamp::now());
    let (locked, _) = queue.acquire_batch(Due::Jobs, now).await.unwrap();
    let jobs: Vec<_> = (0..3)
        .map(|row| {
            let job = Uuid::new_v4();
            let say = json!({"batchID": id, "jobID": format!("jid-{job}"), "profile": "demo", "type": "file",
                "filename": format!("{row}.txt"), "payload_url": world.origin.url("/there")});
            NewJob::new(say.to_string())
        })
        .collect();
    queue.create_jobs(second, &jobs, now).await.unwrap();
    queue.finish_batch(&locked.unwrap(), &ItemChange::to(BatchState::Reporting), now).await.unwrap();
    assert_eq!(queue.load_batch(first).await.unwrap().state(), Some(BatchState::Deleted));

    let daemons = world.start_anew(quick(), SESSION).await;
    eventually(LIMIT, "the second is withdrawn", async || {
        queue.load_batch(second).await.unwrap().state() == Some(BatchState::Deleted)
    })
    .await;
    daemons.stop().await;
    assert_eq!(queue.load_batch(second).await.unwrap().message(), BY.to_string());
    assert_eq!(queue.batch_report(second).await.unwrap().deleted.len(), 3);
    assert!(world.sql("SELECT 1 FROM versions").is_empty());
}
