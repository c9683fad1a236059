//! A version waits for the one that it follows.

use std::time::Duration;

use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::record::Retry;
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_testkit::wait::{eventually, eventually_some};
use serde_json::{Value, json};
use zookeeper_client::{Acls, CreateMode};

use super::settings::{only, quick};
use super::world::{SESSION, World};

const LIMIT: Duration = Duration::from_mins(5);

const ARK: &str = "ark:/99999/fk4before";

impl World {
    /// What makes the object, or adds to it: one file of this name.
    fn said(&self, name: &str, is_update: bool) -> Value {
        let path = format!("/{name}");
        self.origin.serve(&path, format!("content of {name}"));
        json!({"type": "file", "filename": name, "payload_url": self.origin.url(&path), "objectID": ARK, "update": is_update})
    }

    /// Waits until the job of a batch is in this state.
    async fn job_in(&self, batch: BatchId, state: JobState) -> JobId {
        eventually_some(LIMIT, "its job is in this state", async || {
            let job = *self.queue.batch_report(batch).await.ok()?.processing.first()?;
            (self.job(job).await.state() == Some(state)).then_some(job)
        })
        .await
    }

    /// Waits until the job of a batch waits in Storing, for this reason.
    async fn waits(&self, batch: BatchId, why: &str) {
        let job = self.job_in(batch, JobState::Storing).await;
        eventually(LIMIT, why, async || {
            let note = self.queue.client().get_data(&format!("/queuekeeper/retry/{job}")).await;
            note.is_ok_and(|(data, _)| Retry::decode(&data).unwrap().why.contains(why))
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_that_overtakes_what_it_changes_waits_until_that_is_stored_and_recorded() {
    let world = World::with(quick()).await;
    let to_storing = [
        Daemon::Batch,
        Daemon::Pending,
        Daemon::Estimating,
        Daemon::Provisioning,
        Daemon::Downloading,
        Daemon::Processing,
    ];
    // The first version has its ARK. A daemon of another program has its job, and does nothing.
    let daemons = world.start_anew(only(&to_storing, quick()), SESSION).await;
    let (first, _) = world.deposit(world.said("a.txt", false)).await;
    let job = world.job_in(first, JobState::Storing).await;
    daemons.stop().await;
    let lock = format!("/jobs/{job}/lock");
    world.queue.client().create(&lock, b"", &CreateMode::Ephemeral.with_acls(Acls::anyone_all())).await.unwrap();

    let no_record = only(&[&to_storing[..], &[Daemon::Storing]].concat(), quick());
    let daemons = world.start_anew(no_record, SESSION).await;
    let (update, _) = world.deposit(world.said("b.txt", true)).await;
    world.waits(update, "another job is creating the first version").await;
    world.queue.client().delete(&lock, None).await.unwrap();
    world.waits(update, "the previous version of ark:/99999/fk4before is not recorded yet").await;
    daemons.stop().await;

    let daemons = world.start_anew(quick(), SESSION).await;
    for batch in [first, update] {
        let (state, report) = world.ended(batch).await;
        assert_eq!((state, report.completed.len()), (BatchState::Completed, 1), "{:?}", world.jobs(batch).await);
    }
    world.check_object(ARK, 2).await;
    assert_eq!(world.producer(ARK, 1).await, ["a.txt"]);
    assert_eq!(world.producer(ARK, 2).await, ["a.txt", "b.txt"]);
    daemons.stop().await;
}
