//! From the finding to the end of its repair.

use std::time::Duration;

use queuekeeper_catalogue::repair_stops::RepairStarted;
use queuekeeper_catalogue::repairs::RepairEnd;
use queuekeeper_catalogue::tasks::{
    EndedTask, NewTask, TaskKind, TaskOutcome, TaskQueue, TaskState, TaskSubject, Tasks,
};
use queuekeeper_mill::bit::checker::Checker;
use queuekeeper_mill::bit::decisions::Decider;
use queuekeeper_mill::bit::item::ItemChecks;
use queuekeeper_mill::bit::repair::RepairMode;
use queuekeeper_mill::bit::requested::{RemedyError, RemedyRequest, offers, request_remedy};
use queuekeeper_mill::bit::verdict::Remedy;
use queuekeeper_mill::limits::StoreLimits;
use queuekeeper_mill::worker::{Lease, Processed, Processor as _};

use super::{
    LEASE, assert_repaired, has, item, main, newest, on_all, put_both, repairer, repairs_of, replica, task_of,
};
use crate::duplicate::world::World;

pub(super) fn checker(world: &World, limits: &StoreLimits) -> Checker {
    let mut checker = repairer(world).checker;
    for account in checker.accounts.values_mut() {
        account.limits.insert(main(), limits.clone());
    }
    checker
}

/// Processes the task of a kind that is visible, with what it leads to; `None` where none is.
pub(super) async fn process(world: &World, checker: &Checker, kind: TaskKind) -> Option<Processed> {
    let queue = if kind == TaskKind::Bit { TaskQueue::BitIntegrity } else { TaskQueue::BitError };
    let tasks = Tasks { queue, account: "account1", kinds: &[kind], limit: 1 };
    let task = world.catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap().pop()?;
    let lease = Lease::unlimited();
    let processed = match kind {
        TaskKind::Bit => ItemChecks(checker.clone()).process(&task, &lease).await,
        TaskKind::BitError => Decider(checker.clone()).process(&task, &lease).await,
        _ => repairer(world).process(&task, &lease).await,
    };
    let Processed { outcome, follow_ups, checked } = processed.clone();
    // The next round is now.
    let outcome = if matches!(outcome, TaskOutcome::Later(_)) { TaskOutcome::Later(Duration::ZERO) } else { outcome };
    world.catalogue.end_tasks(&[EndedTask { task, outcome, follow_ups, checked }]).await.unwrap();
    Some(processed)
}

pub(super) fn subject(key: &str) -> TaskSubject {
    TaskSubject { kind: TaskKind::Bit, ..task_of(key).subject }
}

/// Damages an item with a good copy, and has it checked: what is there then.
pub(super) async fn find(world: &World, checker: &Checker, key: &str) -> String {
    put_both(world, key, "the content").await;
    world.rot(key);
    let damaged = has(world, &main(), &item(key)).await.unwrap().0;
    let check = NewTask { queue: TaskQueue::BitIntegrity, subject: subject(key), source: None };
    world.catalogue.put_tasks(&[check]).await.unwrap();
    let checked = process(world, checker, TaskKind::Bit).await.unwrap();
    assert_eq!(checked.checked.unwrap().items[0].wrong.as_ref().unwrap().findings, ["content_damaged"]);
    damaged
}

pub(super) async fn is_wrong(world: &World, key: &str) -> bool {
    world.catalogue.bit_error(&main(), &item(key)).await.unwrap().is_some()
}

on_all! {
    async fn damage_is_repaired_without_anyone_where_that_is_configured(world: World) {
        let checker = checker(&world, &StoreLimits { repair: RepairMode::Automatic, ..StoreLimits::default() });
        let damaged = find(&world, &checker, "a").await;
        assert!(is_wrong(&world, "a").await);
        let decided = process(&world, &checker, TaskKind::BitError).await.unwrap();
        assert_eq!(decided.outcome, TaskOutcome::Done);
        assert_eq!(world.catalogue.automatic_repairs_today(&main()).await.unwrap(), 1);
        // What has written nothing waits where repairs are stopped meanwhile.
        assert!(world.catalogue.stop_repairs(None, "ada", "a bad firmware").await.unwrap());
        let stopped = process(&world, &checker, TaskKind::Repair).await.unwrap();
        assert!(matches!(stopped.outcome, TaskOutcome::PutOff(_)), "{stopped:?}");
        assert_eq!(has(&world, &main(), &item("a")).await.unwrap().0, damaged);
        world.catalogue.resume_repairs(None).await.unwrap();
        world.tamper("UPDATE tasks SET visible = 0".to_owned()).await;
        let repaired = process(&world, &checker, TaskKind::Repair).await.unwrap();
        assert_eq!(repaired.outcome, TaskOutcome::Done);
        assert_repaired(&world, "a", "the content", &damaged).await;
        assert!(!is_wrong(&world, "a").await);
        let repair = newest(&world, "a").await;
        assert_eq!((repair.is_automatic, repair.reason.as_str()), (true, "content damaged"));
        for kind in [TaskKind::Bit, TaskKind::BitError, TaskKind::Repair] {
            assert!(process(&world, &checker, kind).await.is_none(), "{kind:?}");
        }
    }

    async fn damage_waits_for_an_operator_where_nothing_is_configured(world: World) {
        let checker = checker(&world, &StoreLimits::default());
        let damaged = find(&world, &checker, "a").await;
        let decided = process(&world, &checker, TaskKind::BitError).await.unwrap();
        assert!(matches!(decided.outcome, TaskOutcome::PutOff(wait) if wait > Duration::from_hours(1)), "{decided:?}");
        assert!(process(&world, &checker, TaskKind::Repair).await.is_none());
        let error = world.catalogue.bit_error(&main(), &item("a")).await.unwrap().unwrap();
        assert_eq!(error.repair_started, None);
        let (remedy, user) = (Remedy::RepairFromCopy, "ada");
        let request = RemedyRequest { remedy, user, reason: "the disk is new", source: None };
        // An account with one store has no other copy.
        let mut alone = checker.accounts["account1"].clone();
        alone.stores.retain(|_, store| *store == main());
        assert_eq!(offers(&alone, &error).unwrap(), []);
        let refused = request_remedy(&world.catalogue, &alone, &error, request).await.unwrap_err();
        assert!(matches!(refused, RemedyError::Never(..)), "{refused}");
        let asks = async || request_remedy(&world.catalogue, &checker.accounts["account1"], &error, request).await.unwrap();
        assert_eq!((asks().await, asks().await), (RepairStarted::Started, RepairStarted::Open));
        let error = world.catalogue.bit_error_numbered(error.id).await.unwrap().unwrap();
        assert!(error.repair_started.is_some());
        process(&world, &checker, TaskKind::Repair).await.unwrap();
        assert_repaired(&world, "a", "the content", &damaged).await;
        assert!(!is_wrong(&world, "a").await);
        let repair = newest(&world, "a").await;
        assert_eq!((repair.user.as_str(), &*repair.reason, repair.is_automatic), ("ada", "the disk is new", false));
        assert_eq!(repair.ended.unwrap().1, RepairEnd::Repaired);
        assert_eq!(world.catalogue.automatic_repairs_today(&main()).await.unwrap(), 0);
    }

    async fn what_is_rotten_or_gone_at_both_sides_is_found_at_both_and_written_at_none(world: World) {
        let checker = checker(&world, &StoreLimits { repair: RepairMode::Automatic, ..StoreLimits::default() });
        for (key, finding) in [("rotten", "content_damaged"), ("gone", "content_missing")] {
            put_both(&world, key, "the content").await;
            for store in [main(), replica()] {
                if key == "rotten" {
                    world.rot_in(&store, key);
                } else {
                    world.bare[&store].delete(&item(key), None).await.unwrap();
                }
            }
            let before = (has(&world, &main(), &item(key)).await, has(&world, &replica(), &item(key)).await);
            let check = NewTask { queue: TaskQueue::BitIntegrity, subject: subject(key), source: None };
            world.catalogue.put_tasks(&[check]).await.unwrap();
            // The repair fails three times, and has the other copy checked, which is wrong as well.
            for kind in [TaskKind::Bit, TaskKind::BitError, TaskKind::Repair, TaskKind::Bit] {
                while process(&world, &checker, kind).await.is_some() {
                    world.tamper("UPDATE tasks SET visible = 0 WHERE kind <> 'BIT_ERROR'".to_owned()).await;
                }
            }
            for store in [main(), replica()] {
                let error = world.catalogue.bit_error(&store, &item(key)).await.unwrap().unwrap();
                assert_eq!(error.findings, [finding], "{key} in {store}");
                let repairs = repairs_of(&world, &store, key).await;
                assert!(repairs.iter().all(|repair| repair.source.is_none()), "{key} in {store}: {repairs:?}");
            }
            // No worker ends that of the source: its task is a dead letter.
            assert!(newest(&world, key).await.ended.is_none(), "{key}");
            let subject = task_of(key).subject;
            let tasks = world.catalogue.tasks_of_item(&subject.account, &subject.space, &item(key).key).await.unwrap();
            let of_repair: Vec<_> = tasks.iter().filter(|open| open.task.subject == subject).collect();
            assert!(of_repair.iter().any(|open| open.state == TaskState::Dead), "{key}: {of_repair:?}");
            let after = (has(&world, &main(), &item(key)).await, has(&world, &replica(), &item(key)).await);
            assert_eq!(after, before, "{key}");
        }
        assert_eq!(world.catalogue.automatic_repairs_today(&main()).await.unwrap(), 2);
    }
}
