//! Copies are repaired from other ones, whatever else is wrong, and whenever the process dies.

mod cold;
pub(super) mod dying;
mod found;
mod killed;
mod records;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::asides::Aside;
use queuekeeper_catalogue::audit::Events;
use queuekeeper_catalogue::brake::BrakeLimit;
use queuekeeper_catalogue::repair_stops::RepairStarted;
use queuekeeper_catalogue::repairs::{NewRepair, Repair, RepairEnd};
use queuekeeper_catalogue::tasks::{
    EndedTask, NewTask, TakenTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject, Tasks,
};
use queuekeeper_mill::bit::checker::Checker;
use queuekeeper_mill::bit::item::ROUND;
use queuekeeper_mill::bit::repairer::Repairer;
use queuekeeper_mill::worker::{Lease, Processed, Processor as _};
use queuekeeper_store::audit::{AuditSink as _, Change, Intent, Settlement, Subject};
use queuekeeper_store::store::{Item, Properties};
use queuekeeper_store::{Digests, Key, StoreName};
use uuid::Uuid;

use super::world::{World, item, main, on_all, replica};

const LEASE: Duration = Duration::from_mins(5);

fn repairer(world: &World) -> Repairer {
    let checker = Checker {
        catalogue: world.catalogue.clone(),
        accounts: world.duplicator.accounts.clone(),
        stores: world.duplicator.stores.clone(),
        round: ROUND,
        clock: Timestamp::now,
    };
    Repairer { checker, limit: BrakeLimit::default(), keep: Duration::from_hours(1) }
}

fn task_of(key: &str) -> NewTask {
    let subject = TaskSubject {
        kind: TaskKind::Repair,
        account: "account1".to_owned(),
        space: "theses".parse().unwrap(),
        key: Some(key.parse().unwrap()),
        destination: Some(main()),
    };
    NewTask { queue: TaskQueue::BitError, subject, source: None }
}

/// Starts the repair of an item at the source of copies, and takes its task.
async fn start(world: &World, key: &str, most_a_day: Option<u64>) -> TakenTask {
    let (store, item) = (main(), item(key));
    let (account, user, reason, remedy) = ("account1", "ada", "a test", "repair_from_copy");
    let new = NewRepair { account, store: &store, item: &item, user, reason, remedy, content: None, most_a_day };
    let started = world.catalogue.start_repair(&new, task_of(key)).await.unwrap();
    assert_eq!(started, RepairStarted::Started);
    take(world).await
}

async fn take(world: &World) -> TakenTask {
    let tasks = Tasks { queue: TaskQueue::BitError, account: "account1", kinds: &[TaskKind::Repair], limit: 1 };
    world.catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap().remove(0)
}

/// Writes the end of a task; one that failed is not tried again.
async fn end(world: &World, task: TakenTask, processed: &Processed) {
    let outcome = match &processed.outcome {
        TaskOutcome::Failed(_) => TaskOutcome::Done,
        other => other.clone(),
    };
    let ended = EndedTask { task, outcome, follow_ups: Vec::new(), checked: processed.checked.clone() };
    assert_eq!(world.catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
}

async fn repair(world: &World, key: &str, most_a_day: Option<u64>) -> Processed {
    let task = start(world, key, most_a_day).await;
    let processed = repairer(world).process(&task, &Lease::unlimited()).await;
    end(world, task, &processed).await;
    processed
}

/// An item at the source, with its copy.
async fn put_both(world: &World, key: &str, text: &str) {
    world.put(&main(), true, &item(key), text, "text/plain").await;
    assert_eq!(world.duplicate(Some(key)).await.outcome, TaskOutcome::Done);
}

/// The repairs of a copy, the newest first.
async fn repairs_of(world: &World, store: &StoreName, key: &str) -> Vec<Repair> {
    let all = world.catalogue.repairs("account1", None, 100).await.unwrap();
    all.into_iter().filter(|repair| repair.store == *store && repair.item == item(key)).collect()
}

async fn newest(world: &World, key: &str) -> Repair {
    repairs_of(world, &main(), key).await.remove(0)
}

async fn asides(world: &World, key: &str) -> Vec<Aside> {
    world.catalogue.asides(&main(), &item(key), None, 9).await.unwrap()
}

fn kept(key: &str) -> Item {
    Item::new("x-queuekeeper-aside".parse().unwrap(), Key::new(key.as_bytes()).unwrap())
}

/// What a store has of an item, with what a user says of it.
async fn has(world: &World, store: &StoreName, item: &Item) -> Option<(String, String)> {
    world.text(store, item).await
}

fn plain(text: &str) -> (String, String) {
    (text.to_owned(), "text/plain".to_owned())
}

/// Asserts that the copy of an item is proven again, by the record as well, and that what was damaged is kept once.
async fn assert_repaired(world: &World, key: &str, good: &str, damaged: &str) {
    assert_eq!(has(world, &main(), &item(key)).await, Some(plain(good)), "{key}");
    let records = world.catalogue.records_of_item(&main(), &item(key)).await.unwrap().unwrap();
    let (index, audit) = (records.index.unwrap(), records.audit.unwrap());
    let there = world.bare[&main()].head(&item(key)).await.unwrap().unwrap();
    assert_eq!((index.etag, index.seq), (Some(there.etag), audit.seq), "{key}");
    let source = world.catalogue.copy(&replica(), &item(key)).await.unwrap().unwrap();
    for digests in [&index.digests, &audit.digests] {
        assert_eq!(digests.agree(&source.digests), Some(true), "{key}");
    }
    let [aside] = asides(world, key).await.try_into().unwrap();
    assert_eq!(has(world, &main(), &kept(&aside.kept_as)).await, Some(plain(damaged)), "{key}");
    let repair = newest(world, key).await;
    assert_eq!((repair.source, repair.kept_as), (Some(replica()), Some(aside.kept_as)), "{key}");
    assert_eq!(repair.ended.map(|ended| ended.1), Some(RepairEnd::Repaired), "{key}");
}

/// How many events the audit log has of an item.
async fn events(world: &World, item: Item) -> usize {
    world.catalogue.events(&Events::Item(main(), item), None, 99).await.unwrap().len()
}

on_all! {
    async fn a_damaged_copy_is_written_again_and_one_that_is_missing_too(world: World) {
        put_both(&world, "a", "the content").await;
        world.rot("a");
        let damaged = has(&world, &main(), &item("a")).await.unwrap().0;
        assert_ne!(damaged, "the content");
        let processed = repair(&world, "a", Some(1)).await;
        assert_eq!((&processed.outcome, processed.follow_ups.len()), (&TaskOutcome::Done, 0));
        let checked = &processed.checked.unwrap().items[0];
        assert_eq!((checked.result, checked.proof), ("success", Some("read")));
        assert_repaired(&world, "a", "the content", &damaged).await;
        // Its proof is of the state that was written.
        assert!(world.catalogue.copy(&main(), &item("a")).await.unwrap().unwrap().proven.is_some());
        assert_eq!(events(&world, item("a")).await, 2);
        let aside = asides(&world, "a").await.remove(0);
        assert_eq!(events(&world, kept(&aside.kept_as)).await, 1);

        put_both(&world, "b", "gone").await;
        world.bare[&main()].delete(&item("b"), None).await.unwrap();
        assert_eq!(repair(&world, "b", None).await.outcome, TaskOutcome::Done);
        assert_eq!(has(&world, &main(), &item("b")).await, Some(plain("gone")));
        assert_eq!(asides(&world, "b").await, []);
        assert_eq!(newest(&world, "b").await.ended.unwrap().1, RepairEnd::Repaired);
    }

    async fn nothing_is_written_that_is_not_proven_and_nothing_over_what_is_right(world: World) {
        // Both copies are rotten: neither is written, and the other one is checked.
        put_both(&world, "rotten", "the content").await;
        world.rot("rotten");
        let damaged = has(&world, &main(), &item("rotten")).await;
        world.put(&replica(), false, &item("rotten"), "the c0ntent", "text/plain").await;
        let processed = repair(&world, "rotten", None).await;
        let TaskOutcome::Failed(why) = &processed.outcome else { panic!("{processed:?}") };
        assert!(why.contains("replica has other content than recorded for it"), "{why}");
        let [check] = &processed.follow_ups[..] else { panic!("{processed:?}") };
        assert_eq!((check.subject.kind, &check.subject.destination), (TaskKind::Bit, &Some(replica())));
        assert_eq!(has(&world, &main(), &item("rotten")).await, damaged);
        assert_eq!(asides(&world, "rotten").await, []);
        assert_eq!(newest(&world, "rotten").await.ended, None);

        // What is right by now is left alone, and what has no open repair as well.
        put_both(&world, "healthy", "the content").await;
        assert_eq!(repair(&world, "healthy", None).await.outcome, TaskOutcome::Done);
        assert_eq!(newest(&world, "healthy").await.ended.unwrap().1, RepairEnd::Healthy);
        world.catalogue.put_tasks(&[task_of("healthy")]).await.unwrap();
        let task = take(&world).await;
        let processed = repairer(&world).process(&task, &Lease::unlimited()).await;
        assert_eq!((&processed.outcome, processed.follow_ups.len()), (&TaskOutcome::Done, 1));
        end(&world, task, &processed).await;
        assert_eq!(events(&world, item("healthy")).await, 1);

        // What was changed outside is written over only where an operator has asked for that.
        put_both(&world, "changed", "the content").await;
        world.put(&main(), false, &item("changed"), "mine", "text/plain").await;
        let is_kept_checksum = !world.bare[&main()].head(&item("changed")).await.unwrap().unwrap().checksums.is_empty();
        assert!(is_kept_checksum);
        let processed = repair(&world, "changed", Some(10)).await;
        assert_eq!((&processed.outcome, processed.follow_ups.len()), (&TaskOutcome::Done, 1));
        assert_eq!(newest(&world, "changed").await.ended.unwrap().1, RepairEnd::Refused);
        assert_eq!(has(&world, &main(), &item("changed")).await, Some(plain("mine")));
        assert_eq!(repair(&world, "changed", None).await.outcome, TaskOutcome::Done);
        assert_repaired(&world, "changed", "the content", "mine").await;
    }

    async fn what_is_just_being_changed_is_not_written_over(world: World) {
        put_both(&world, "a", "the content").await;
        let there = world.bare[&main()].head(&item("a")).await.unwrap().unwrap();
        let subject = Subject { store: main(), space: item("a").space, key: Some(item("a").key) };
        let under_way = Intent {
            id: Uuid::now_v7(),
            holder: Uuid::now_v7(),
            user: "depositor".to_owned(),
            subject,
            change: Change::Update,
            seen: Some(there.etag),
            size: None,
            digests: Digests::default(),
            source: None,
            upload: None,
            properties: None,
        };
        world.catalogue.begin(&under_way, LEASE).await.unwrap();
        world.put(&main(), false, &item("a"), "new content", "text/plain").await;
        let task = start(&world, "a", None).await;
        let lease = Lease::unlimited();
        let processed = repairer(&world).process(&task, &lease).await;
        assert!(matches!(processed.outcome, TaskOutcome::PutOff(_)), "{processed:?}");
        assert_eq!(has(&world, &main(), &item("a")).await, Some(plain("new content")));
        // Its record has followed.
        let Properties { size, etag, checksums: digests, .. } =
            world.bare[&main()].head(&item("a")).await.unwrap().unwrap();
        let done = Settlement::Done { change: Change::Update, etag: Some(etag), size: Some(size), digests };
        world.catalogue.settle(&under_way, &done).await.unwrap();
        let processed = repairer(&world).process(&task, &lease).await;
        assert_eq!(processed.outcome, TaskOutcome::Done);
        assert_eq!(newest(&world, "a").await.ended.unwrap().1, RepairEnd::Healthy);
        assert_eq!(has(&world, &main(), &item("a")).await, Some(plain("new content")));
    }

    async fn a_wave_of_repairs_is_held_until_an_operator_releases_it(world: World) {
        let limit = BrakeLimit { items: 1, percent: 0 };
        for key in ["a", "b"] {
            put_both(&world, key, "the content").await;
            world.rot(key);
        }
        let damaged = has(&world, &main(), &item("b")).await.unwrap().0;
        let repairer = Repairer { limit, ..repairer(&world) };
        let task = start(&world, "a", None).await;
        let processed = repairer.process(&task, &Lease::unlimited()).await;
        assert_eq!(processed.outcome, TaskOutcome::Done);
        end(&world, task, &processed).await;
        let task = start(&world, "b", None).await;
        let processed = repairer.process(&task, &Lease::unlimited()).await;
        assert!(matches!(&processed.outcome, TaskOutcome::Held(why) if why.contains("the limit being 1")), "{processed:?}");
        assert_eq!(has(&world, &main(), &item("b")).await, Some(plain(&damaged)));
        let released = TakenTask { is_released: true, ..task.clone() };
        let processed = repairer.process(&released, &Lease::unlimited()).await;
        assert_eq!(processed.outcome, TaskOutcome::Done);
        end(&world, task, &processed).await;
        assert_repaired(&world, "b", "the content", &damaged).await;
    }
}

/// A store as a world has it, by name, shared.
type Stores = std::collections::BTreeMap<StoreName, Arc<dyn queuekeeper_store::Store>>;
