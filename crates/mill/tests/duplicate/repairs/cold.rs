//! Copies and repairs that read from an archive wait for its restore.

use queuekeeper_catalogue::repairs::RepairEnd;
use queuekeeper_catalogue::tasks::{TaskOutcome, TaskState};
use queuekeeper_mill::limits::{ColdStore, StoreLimits};
use queuekeeper_mill::worker::{Lease, Processor as _};
use queuekeeper_store::StoreName;

use super::{assert_repaired, end, newest, put_both, repairer, start, take};
use crate::duplicate::bit::cold::restored;
use crate::duplicate::world::{World, item, main, replica};

fn allow(world: &mut World, store: &StoreName, cold: ColdStore) {
    world.limit(store, &StoreLimits { cold, ..StoreLimits::default() }, jiff::Timestamp::now);
}

async fn look_again(world: &World) {
    world.tamper("UPDATE tasks SET visible = 0 WHERE state = 'restore'".to_owned()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_copied_from_an_archive_waits_for_its_restore() {
    let mut world = World::archive(false).await;
    world.put(&main(), true, &item("a"), "the content", "text/plain").await;
    // Without a restore it is an error that says so, and nothing is requested.
    let TaskOutcome::Failed(why) = world.duplicate(Some("a")).await.outcome else { panic!("it is archived") };
    assert!(why.contains("it is archived, and was not restored"), "{why}");
    assert_eq!(world.server().count("RestoreObject"), 0);

    allow(&mut world, &main(), restored());
    assert!(matches!(world.duplicate(Some("a")).await.outcome, TaskOutcome::Restore(..)));
    let [open] = world.open_tasks(&["a"]).await.try_into().unwrap();
    assert_eq!((open.state, open.attempts), (TaskState::Restore, 0));
    look_again(&world).await;
    assert!(matches!(world.process().await.outcome, TaskOutcome::Restore(..)));
    assert_eq!((world.server().count("RestoreObject"), world.server().end_restores()), (1, 1));
    look_again(&world).await;
    assert_eq!(world.process().await.outcome, TaskOutcome::Done);
    let copied = world.text(&replica(), &item("a")).await;
    assert_eq!(copied, Some(("the content".to_owned(), "text/plain".to_owned())));
    assert_eq!(world.catalogue.check().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_repaired_from_an_archive_waits_for_its_restore() {
    let mut world = World::to_archive().await;
    put_both(&world, "a", "the content").await;
    world.rot("a");
    let damaged = world.text(&main(), &item("a")).await.unwrap().0;
    allow(&mut world, &replica(), restored());
    let task = start(&world, "a", Some(1)).await;
    let processed = repairer(&world).process(&task, &Lease::unlimited()).await;
    assert!(matches!(processed.outcome, TaskOutcome::Restore(..)), "{:?}", processed.outcome);
    end(&world, task, &processed).await;
    assert_eq!(newest(&world, "a").await.ended, None);
    assert_eq!((world.server().count("RestoreObject"), world.server().end_restores()), (1, 1));
    look_again(&world).await;
    let task = take(&world).await;
    let processed = repairer(&world).process(&task, &Lease::unlimited()).await;
    assert_eq!(processed.outcome, TaskOutcome::Done);
    end(&world, task, &processed).await;
    assert_eq!(newest(&world, "a").await.ended.map(|ended| ended.1), Some(RepairEnd::Repaired));
    assert_repaired(&world, "a", "the content", &damaged).await;
}
