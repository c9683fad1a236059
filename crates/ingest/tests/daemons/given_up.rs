//! What cleanup removes that a stopped writer left, when its job goes on.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use queuekeeper_ingest::cleanup::CleanupSettings;
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_ingest::spec::JobSpec;
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_store::error::Operation;
use queuekeeper_store::ocfl::{Begun, NewFile, NewVersion, Root, Start, User};
use queuekeeper_testkit::faulty::{Fault, Faulty, Rule};
use queuekeeper_testkit::wait::eventually;
use serde_json::json;

use super::mail::LIMIT;
use super::settings::{only, quick};
use super::world::{SESSION, World, services};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_that_is_on_its_way_while_the_job_goes_on_meets_nothing_of_its_version() {
    let world = World::with(quick()).await;
    world.origin.serve("/there", "content");
    let file =
        json!({"type": "file", "filename": "a.txt", "payload_url": world.origin.url("/there"), "localID": "obj"});
    let (batch, _) = world.deposit(file).await;
    let before: Vec<_> =
        Daemon::ALL.into_iter().filter(|daemon| !matches!(daemon, Daemon::Storing | Daemon::Cleanup)).collect();
    let daemons = world.start_anew(only(&before, quick()), SESSION).await;
    eventually(LIMIT, "the job is to be stored", async || {
        let jobs = world.queue.batch_report(batch).await.unwrap().processing;
        let Some(job) = jobs.first() else { return false };
        world.job(*job).await.state() == Some(JobState::Storing)
    })
    .await;
    daemons.stop().await;

    // A writer of the job stored its file, and was stopped before the version was made.
    let id = world.queue.batch_report(batch).await.unwrap().processing[0];
    let (job, ark) = (JobSpec::of(&world.job(id).await).unwrap().uuid, world.ark(id).await);
    let store = Arc::clone(world.services.stores.values().next().unwrap());
    let root = Root::open(Arc::clone(&store), "demo".parse().unwrap()).await.unwrap();
    let user = User { name: "x".to_owned(), address: None };
    let (message, created, start) = (String::new(), Timestamp::now(), Start::Empty);
    let new = NewVersion { job, content: job, user, message, created, start };
    let Begun::Writer(mut writer) = root.object(&ark).unwrap().begin(new).await.unwrap() else { panic!("it is new") };
    let content = || futures::stream::iter([Ok(bytes::Bytes::from_static(b"content"))]).boxed();
    let files = futures::stream::iter([("producer/a.txt".to_owned(), NewFile::new(content))]);
    writer.put_all(files, 1).await.unwrap();
    drop(writer);

    // Cleanup is stopped in the middle of its removal, and goes on when the job is stored.
    let every = Duration::from_millis(100);
    let cleanup = CleanupSettings {
        every,
        directories_every: every,
        objects_after: Duration::ZERO,
        ..CleanupSettings::default()
    };
    let settings = Settings { cleanup, ..only(&[Daemon::Cleanup], quick()) };
    let mut cleaning = services(world.directory.path(), settings).await;
    let (faulty, faults) = Faulty::new(Arc::clone(&store));
    faults.add(Rule::new(Fault::Late).on(Operation::Delete));
    Arc::get_mut(&mut cleaning).unwrap().stores.insert(store.name().clone(), Arc::new(faulty));
    let daemons = world.start_with(cleaning, SESSION);
    eventually(LIMIT, "a removal is on its way", async || faults.late() > 0).await;
    daemons.stop().await;
    let daemons = world.start_anew(quick(), SESSION).await;
    assert_eq!(world.ended(batch).await.0, BatchState::Completed, "{:?}", world.jobs(batch).await);
    daemons.stop().await;
    let landed = faults.land().await;
    assert!(!landed.is_empty() && landed.iter().all(Result::is_ok), "{landed:?}");
    world.check_object(&ark, 1).await;
}
