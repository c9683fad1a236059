//! A tree that is restored as it was before, while catalogue and stores go on as they are.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_mail::settings::Route;
use queuekeeper_queue::WithdrawalOutcome;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::record::WithdrawnNote;
use queuekeeper_queue::state::{BatchState, JobState, State as _};
use queuekeeper_testkit::wait::eventually;
use serde_json::json;
use uuid::Uuid;

use super::contents::manifest;
use super::mail::mailing;
use super::settings::only;
use super::world::World;

const LIMIT: Duration = Duration::from_mins(5);

const SESSION: Duration = Duration::from_secs(4);

/// Those that take jobs, and the one that makes them, in the order of their work.
const IN_ORDER: [Daemon; 9] = [
    Daemon::Batch,
    Daemon::Pending,
    Daemon::Estimating,
    Daemon::Provisioning,
    Daemon::Downloading,
    Daemon::Processing,
    Daemon::Storing,
    Daemon::Recording,
    Daemon::Notify,
];

/// Copies all that lies in a directory into another one, in the place of what lies there.
fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    let status = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(status.success());
}

impl World {
    async fn deposit_named(&self, name: &str) -> BatchId {
        self.origin.serve("/content", "content");
        let url = self.origin.url("/content");
        let say = json!({"type": "file", "profile": "mailed", "filename": name, "payload_url": url, "localID": name});
        self.deposit(say).await.0
    }

    /// Waits for a batch of one job; the answer is the job's object, which has one version.
    async fn object_of(&self, batch: BatchId) -> String {
        let (state, report) = self.ended(batch).await;
        assert_eq!(state, BatchState::Completed, "{:?}", self.jobs(batch).await);
        let ark = self.ark(report.completed[0]).await;
        self.check_object(&ark, 1).await;
        ark
    }

    /// Deposits the rows of a manifest, as the catalogue has it.
    async fn deposit_rows_of(&self, path: &str) -> (BatchId, String) {
        self.origin.serve("/content", "content");
        let batch = Uuid::new_v4();
        self.record(batch, "mailed", 0).await;
        let (url, id) = (self.origin.url(path), format!("bid-{batch}"));
        let say = json!({"type": "single-file-batch-manifest", "profile": "mailed", "filename": "rows.checkm", "payload_url": url});
        (self.deposit_as(&id, say).await, id)
    }

    async fn objects_of(&self, batches: &[BatchId]) -> BTreeSet<String> {
        let mut arks = BTreeSet::new();
        for batch in batches {
            arks.insert(self.object_of(*batch).await);
        }
        assert_eq!(arks.len(), batches.len());
        arks
    }
}

/// A world with a collection whose reports are mailed, and where the mails are put.
async fn mailed() -> (World, PathBuf) {
    let world = World::new().await;
    world.add_profile("mailed", "notification: {addresses: [staff@library.example]}\n");
    let mails = world.directory.path().join("mails");
    (world, mails)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_restored_from_yesterday_repeats_nothing_and_its_numbers_begin_again_for_other_objects() {
    let (mut world, mails) = mailed().await;
    let settings = || mailing(Route::Directory(mails.clone()));

    // Yesterday: a job in each state, the most advanced first, since none is moved once its daemon does not run any
    // more.
    let mut batches = Vec::new();
    for (last, daemon) in IN_ORDER.iter().enumerate().rev() {
        let daemons = world.start_anew(only(&IN_ORDER[..=last], settings()), SESSION).await;
        let batch = world.deposit_named(daemon.name()).await;
        let reached = daemon.state().map_or(JobState::Pending, |state| state.success().unwrap());
        eventually(LIMIT, &format!("a job is {reached}"), async || {
            let report = world.queue.batch_report(batch).await.unwrap();
            let Some(job) = report.processing.first().or(report.completed.first()) else { return false };
            world.job(*job).await.state() == Some(reached)
        })
        .await;
        daemons.stop().await;
        batches.push(batch);
    }
    let copied = world.directory.path().join("yesterday");
    world.change_data(|data| copy(&data.join("data"), &copied)).await;

    // Today: all of it ends, and more.
    let daemons = world.start_anew(settings(), SESSION).await;
    let objects = world.objects_of(&batches).await;
    let later = [world.deposit_named("later-1").await, world.deposit_named("later-2").await];
    let later_objects = world.objects_of(&later).await;
    daemons.stop().await;
    assert!(objects.is_disjoint(&later_objects));

    world.change_data(|data| copy(&copied, &data.join("data"))).await;
    let daemons = world.start_anew(settings(), SESSION).await;
    assert_eq!(world.objects_of(&batches).await, objects);
    // Batches and jobs get numbers that others had.
    let others = [world.deposit_named("other-1").await, world.deposit_named("other-2").await];
    assert_eq!(others, later);
    let other_objects = world.objects_of(&others).await;
    assert!(other_objects.is_disjoint(&later_objects) && other_objects.is_disjoint(&objects));
    for ark in &later_objects {
        world.check_object(ark, 1).await;
    }
    eventually(LIMIT, "all mails are sent", async || {
        world.sql("SELECT COUNT(*) FROM outbox WHERE ended IS NULL") == [json!([0])]
    })
    .await;
    world.check_nothing_is_left().await;
    daemons.stop().await;
    let reports = std::fs::read_dir(&mails).unwrap().count();
    assert_eq!(reports, batches.len() + later.len() + others.len());
    let ids = [objects, later_objects, other_objects].iter().map(BTreeSet::len).sum::<usize>();
    assert_eq!(world.sql("SELECT COUNT(*), COUNT(DISTINCT ark) FROM identifiers"), [json!([ids, ids])]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposit_that_was_withdrawn_since_the_tree_was_saved_is_withdrawn_again() {
    let (mut world, mails) = mailed().await;
    let settings = || mailing(Route::Directory(mails.clone()));
    let rows = ["a", "b", "c"].map(|name| format!("{} | | | 7 | | {name}.txt", world.origin.url("/content")));
    world.origin.serve("/rows.checkm", manifest(ManifestProfile::SingleFileBatch, rows));

    // Yesterday: one has its jobs, one has none, and two more go on. All that they say of themselves is alike.
    let mut batches = Vec::new();
    for has_jobs in [true, true, false, false] {
        let batch = world.deposit_rows_of("/rows.checkm").await;
        if has_jobs {
            let daemons = world.start_anew(only(&[Daemon::Batch], settings()), SESSION).await;
            let is_made = async || world.queue.batch_report(batch.0).await.unwrap().processing.len() == 3;
            eventually(LIMIT, "its jobs are made", is_made).await;
            daemons.stop().await;
        }
        batches.push(batch);
    }
    let copied = world.directory.path().join("yesterday");
    world.change_data(|data| copy(&data.join("data"), &copied)).await;

    // Today two are withdrawn, one of each, and the catalogue has it.
    let by = WithdrawnNote { who: "alice", why: "the wrong files" };
    let withdrawn = [&batches[0], &batches[2]];
    for (batch, id) in withdrawn {
        let outcome = world.queue.withdraw(*batch, by, Timestamp::now(), |_| ControlFlow::Continue(())).await.unwrap();
        assert!(matches!(outcome, WithdrawalOutcome::Withdrawn { .. }), "{outcome:?}");
        queuekeeper_ingest::withdrawal::record(&world.services.catalogue, id).await.unwrap();
    }
    world.change_data(|data| copy(&copied, &data.join("data"))).await;

    let daemons = world.start_anew(settings(), SESSION).await;
    for (batch, _) in [&batches[1], &batches[3]] {
        let (state, report) = world.ended(*batch).await;
        assert_eq!((state, report.completed.len()), (BatchState::Completed, 3), "{:?}", world.jobs(*batch).await);
    }
    for ((batch, _), jobs) in withdrawn.into_iter().zip([3, 0]) {
        let is_withdrawn = async || world.queue.load_batch(*batch).await.unwrap().state() == Some(BatchState::Deleted);
        eventually(LIMIT, "it is withdrawn again", is_withdrawn).await;
        let message = world.queue.load_batch(*batch).await.unwrap().message();
        assert!(
            message.starts_with("Withdrawn by ingest") && message.ends_with("before the queue was restored"),
            "{message}"
        );
        let report = world.queue.batch_report(*batch).await.unwrap();
        assert_eq!((report.deleted.len(), report.len()), (jobs, jobs));
    }
    // What was uploaded of them is cleanup's.
    for folder in ["expansions", "retry", "held", "withdrawals"] {
        let path = format!("/queuekeeper/{folder}");
        eventually(LIMIT, &path, async || world.children(&path).await.is_empty()).await;
    }
    daemons.stop().await;
    assert_eq!(world.sql("SELECT COUNT(*) FROM versions"), [json!([6])]);
    assert_eq!(world.sql("SELECT COUNT(*) FROM deposits WHERE outcome = 'withdrawn'"), [json!([2])]);
}
