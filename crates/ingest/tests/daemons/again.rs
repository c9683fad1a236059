//! What is sent again, or belongs elsewhere: no deposit is taken for another one, and none makes a second object.

use std::ops::ControlFlow;
use std::time::Duration;

use queuekeeper_catalogue::identifiers::Request;
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_ingest::resubmit::failed_rows;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::{JobNode, Path};
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_testkit::wait::eventually_some;
use serde_json::{Value, json};
use uuid::Uuid;

use super::contents::manifest;
use super::settings::{only, quick};
use super::world::{SESSION, World};

const LIMIT: Duration = Duration::from_mins(5);

impl World {
    fn file(&self, path: &str) -> Value {
        self.origin.serve(path, format!("content of {path}"));
        json!({"type": "file", "filename": "a.txt", "payload_url": self.origin.url(path)})
    }

    async fn purge(&self, batch: BatchId) {
        let plan = self.queue.plan_purge(batch).await.unwrap();
        self.queue.execute(&plan, 0, |_| ControlFlow::Continue(())).await.unwrap();
    }

    /// Waits until the only job of a batch has failed; the answer is its message.
    async fn failure(&self, batch: BatchId) -> String {
        let (state, report) = self.ended(batch).await;
        assert_eq!((state, report.failed.len()), (BatchState::Failed, 1));
        self.message(report.failed[0]).await
    }
}

fn with(mut say: Value, more: &Value) -> Value {
    say.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    say
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposit_under_the_uuid_of_one_that_has_left_the_queue_is_that_one_or_fails() {
    let world = World::with(quick()).await;
    let daemons = world.start();
    let (batch, id) = world.deposit(world.file("/a")).await;
    let (_, report) = world.ended(batch).await;
    let ark = world.ark(report.completed[0]).await;
    world.purge(batch).await;

    let same = world.deposit_as(&id, world.file("/a")).await;
    let (state, report) = world.ended(same).await;
    assert_eq!((state, world.ark(report.completed[0]).await), (BatchState::Completed, ark.clone()));
    world.check_object(&ark, 1).await;
    world.purge(same).await;

    let other = world.deposit_as(&id, world.file("/b")).await;
    let message = world.failure(other).await;
    assert!(message.contains("\"producer/a.txt\" differs") && message.contains("deposit it again"), "{message}");
    world.check_object(&ark, 1).await;
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_lies_elsewhere_or_belongs_to_another_owner_gets_no_version_here() {
    let world = World::with(quick()).await;
    // Another owner's job has the ARK, and has not recorded its object yet.
    let theirs = "ark:/99999/fk4theirs";
    let request = Request {
        job: Uuid::new_v4(),
        owner: "ark:/99999/another".to_owned(),
        local_ids: Vec::new(),
        candidate: theirs.to_owned(),
        is_registered: true,
        place: ("main".to_owned(), "demo".to_owned()),
    };
    world.services.catalogue.reserve(&request).await.unwrap();
    let daemons = world.start();
    let absent = "ark:/99999/fk4absent";
    for (more, why) in [
        (json!({"objectID": theirs}), format!("{theirs} is reserved by a job of another owner")),
        (json!({"objectID": absent, "update": true}), format!("{absent} is not in store main")),
    ] {
        let (batch, _) = world.deposit(with(world.file("/a"), &more)).await;
        let message = world.failure(batch).await;
        assert!(message.contains(&why), "{message}");
    }
    daemons.stop().await;

    // Java's daemons have processed the job for a node of theirs.
    let before = [
        Daemon::Batch,
        Daemon::Pending,
        Daemon::Estimating,
        Daemon::Provisioning,
        Daemon::Downloading,
        Daemon::Processing,
    ];
    let daemons = world.start_anew(only(&before, quick()), SESSION).await;
    let (batch, _) = world.deposit(world.file("/a")).await;
    let job = eventually_some(LIMIT, "its job is to be stored", async || {
        let job = *world.queue.batch_report(batch).await.ok()?.processing.first()?;
        (world.job(job).await.state() == Some(JobState::Storing)).then_some(job)
    })
    .await;
    daemons.stop().await;
    let store = Path::Job(job).child(JobNode::Store.name()).to_string();
    let (data, _) = world.queue.client().get_data(&store).await.unwrap();
    let data = String::from_utf8(data).unwrap();
    let elsewhere = data.replace("\"add/1/", "\"add/9502/");
    assert_ne!(elsewhere, data);
    world.queue.client().set_data(&store, elsewhere.as_bytes(), None).await.unwrap();
    let daemons = world.start_anew(quick(), SESSION).await;
    let message = world.failure(batch).await;
    assert!(message.contains("processed for node 9502"), "{message}");
    daemons.stop().await;
    assert_eq!(world.sql("SELECT COUNT(*) FROM versions"), [json!([0])]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_rows_are_sent_again_with_their_arks_and_without_those_whose_objects_are_stored() {
    let world = World::with(quick()).await;
    // Nobody takes the callbacks.
    world.add_profile("calling", &format!("callback: {}\n", world.origin.url("/nobody")));
    world.origin.serve("/there", "content");
    let rows = ["/there", "/missing"].map(|path| format!("{} | | | 7 | | {}.txt", world.origin.url(path), &path[1..]));
    world.origin.serve("/all.checkm", manifest(ManifestProfile::SingleFileBatch, rows));
    let daemons = world.start_anew(quick(), SESSION).await;
    let say = json!({
        "profile": "calling", "type": "single-file-batch-manifest", "filename": "all.checkm",
        "payload_url": world.origin.url("/all.checkm"),
    });
    let (batch, _) = world.deposit(say).await;
    let (_, report) = world.ended(batch).await;
    daemons.stop().await;
    assert_eq!(report.failed.len(), 2);
    let again = async || failed_rows(&world.queue, &world.services.working, &world.services.catalogue, batch).await;
    let rows = String::from_utf8(again().await.unwrap().manifest).unwrap();
    assert!(rows.contains("missing.txt") && !rows.contains("there.txt"), "{rows}");

    // One that has its name, and is not stored, keeps it.
    let (mut stored, mut ark) = (None, String::new());
    for job in report.failed {
        let found = world.job(job).await;
        if found.data(JobNode::Inventory).is_some() {
            ark = found.identifiers().value.ark.into_owned();
            stored = Some(job);
        }
    }
    let inventory = Path::Job(stored.unwrap()).child(JobNode::Inventory.name()).to_string();
    world.queue.client().delete(&inventory, None).await.unwrap();
    let rows = String::from_utf8(again().await.unwrap().manifest).unwrap();
    assert!(!rows.contains("there.txt"), "its version is recorded: {rows}");
    let _gone = world.sql("DELETE FROM versions");
    let rows = String::from_utf8(again().await.unwrap().manifest).unwrap();
    assert!(rows.contains("missing.txt") && rows.contains("there.txt") && rows.contains(&ark), "{rows}");
}
