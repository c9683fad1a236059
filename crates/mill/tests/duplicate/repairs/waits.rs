//! What a bit error says that it waits for, in each situation.

use std::collections::BTreeSet;

use jiff::Timestamp;
use queuekeeper_catalogue::pauses::PauseScope;
use queuekeeper_catalogue::repair_stops::RepairStarted;
use queuekeeper_catalogue::tasks::{NewTask, TaskKind, TaskOutcome, TaskQueue};
use queuekeeper_mill::bit::checker::Checker;
use queuekeeper_mill::bit::repair::{ManualRepairReason, RepairMode};
use queuekeeper_mill::bit::requested::{RemedyRequest, request_remedy};
use queuekeeper_mill::bit::verdict::Remedy;
use queuekeeper_mill::bit::waits::{Wait, WaitReason, Waits};
use queuekeeper_mill::limits::StoreLimits;

use super::found::{checker, find, is_wrong, process, subject};
use super::{item, main, on_all, put_both};
use crate::duplicate::world::{World, replica};

/// What the bit error of an item waits for by what is configured for a checker.
async fn wait(world: &World, checker: &Checker, key: &str) -> Wait {
    let error = world.catalogue.bit_error(&main(), &item(key)).await.unwrap().unwrap();
    let waits = Waits::read(&world.catalogue, Timestamp::now()).await.unwrap();
    waits.of(&checker.accounts["account1"], &error).await.unwrap()
}

/// Asserts the reason, what the sentences have, and whether something may be decided.
#[track_caller]
fn assert_is(wait: &Wait, reason: WaitReason, why: &str, act: &str, may_decide: bool) {
    assert_eq!((wait.reason, wait.may_decide), (reason, may_decide), "{wait:?}");
    assert!(wait.why.contains(why) && wait.why.ends_with('.'), "{why:?} is not in {wait:?}");
    assert!(wait.act.contains(act), "{act:?} is not in {wait:?}");
}

on_all! {
    async fn a_bit_error_waits_for_who_starts_its_repair(world: World) {
        let limits = |repair, is_write_once| StoreLimits { repair, is_write_once, ..StoreLimits::default() };
        let asks = checker(&world, &StoreLimits::default());
        let automatic = checker(&world, &limits(RepairMode::Automatic, false));
        find(&world, &asks, "a").await;
        let policy = wait(&world, &asks, "a").await;
        assert_is(&policy, WaitReason::Manual(ManualRepairReason::Mode), "does not have repair: automatic", "", true);
        let once = checker(&world, &limits(RepairMode::Automatic, true));
        let once = wait(&world, &once, "a").await;
        assert_is(&once, WaitReason::Manual(ManualRepairReason::WriteOnce), "as write_once", "", true);
        let worker = wait(&world, &automatic, "a").await;
        assert_is(&worker, WaitReason::Worker, "repairs it from another copy automatically: its task waits in bit-error", "It continues as soon as", true);
        world.catalogue.stop_repairs(None, "ada", "a bad firmware").await.unwrap();
        let stopped = wait(&world, &automatic, "a").await;
        assert_is(&stopped, WaitReason::Stopped, "Automatic repairs in all stores were stopped by ada at", "resume-repairs --reason", true);
        world.catalogue.stop_repairs(Some(&main()), "queuekeeper:mill", "much is wrong").await.unwrap();
        let both = wait(&world, &automatic, "a").await;
        assert_is(&both, WaitReason::Stopped, "in main were stopped by the mill at", &format!("resume-repairs {} --reason", main()), true);
        world.catalogue.resume_repairs(None).await.unwrap();
        world.catalogue.resume_repairs(Some(&main())).await.unwrap();
        let scope = PauseScope::Store(main());
        world.catalogue.pause(&scope, "ada", "the rack moves").await.unwrap();
        let paused = wait(&world, &automatic, "a").await;
        let resume = format!("queuekeeper mill resume --store {} --reason", main());
        assert_is(&paused, WaitReason::Paused, "ada paused store", &resume, true);
        world.catalogue.resume(&scope).await.unwrap();

        // An operator's repair, that a stop does not concern.
        let error = world.catalogue.bit_error(&main(), &item("a")).await.unwrap().unwrap();
        let request = RemedyRequest { remedy: Remedy::RepairFromCopy, user: "ada", reason: "a test", source: None };
        let account = &asks.accounts["account1"];
        assert_eq!(request_remedy(&world.catalogue, account, &error, request).await.unwrap(), RepairStarted::Started);
        world.catalogue.stop_repairs(None, "ada", "a bad firmware").await.unwrap();
        let begun = wait(&world, &asks, "a").await;
        assert_is(&begun, WaitReason::Worker, "Its repair from another copy, which ada requested, waits in", "It continues as soon as", false);
        world.tamper("UPDATE tasks SET state = 'held' WHERE kind = 'REPAIR'".to_owned()).await;
        let held = wait(&world, &asks, "a").await;
        assert_is(&held, WaitReason::Held, "is held by the brake", "It is released by queuekeeper mill retry ", false);
        world.tamper("DELETE FROM tasks WHERE kind = 'REPAIR'".to_owned()).await;
        let dropped = wait(&world, &asks, "a").await;
        assert_is(&dropped, WaitReason::Dropped, "has no task any more", "Make a new decision", true);
        world.tamper("UPDATE repairs SET is_automatic = TRUE, ended = started, outcome = 'repaired', detail = ''".to_owned()).await;
        world.catalogue.resume_repairs(None).await.unwrap();
        let lately = wait(&world, &automatic, "a").await;
        assert_is(&lately, WaitReason::RepairedLately, "was already repaired automatically within the last 7 days", "", true);
        // Of another copy, and ten of them: no more start by themselves.
        world.tamper("UPDATE repairs SET space = 'other'".to_owned()).await;
        for _doubled in 0..4 {
            let more = "INSERT INTO repairs (account, store, space, key, user_name, is_automatic, reason, started, remedy, ended, outcome, detail)
                SELECT account, store, space, key, user_name, is_automatic, reason, started, remedy, ended, outcome, detail FROM repairs";
            world.tamper(more.to_owned()).await;
        }
        let many = wait(&world, &automatic, "a").await;
        assert_is(&many, WaitReason::Manual(ManualRepairReason::TooMany), "10 repairs were started automatically in", "", true);
        world.tamper("DELETE FROM repairs".to_owned()).await;
        world.tamper("DELETE FROM tasks WHERE kind = 'BIT_ERROR'".to_owned()).await;
        let no_task = wait(&world, &automatic, "a").await;
        assert_is(&no_task, WaitReason::NoTask, "once it has a task for it, and no such task is open", "--background", true);
    }

    async fn a_repair_that_the_mill_has_requested_says_why_it_does_not_begin(world: World) {
        let checker = checker(&world, &StoreLimits { repair: RepairMode::Automatic, ..StoreLimits::default() });
        find(&world, &checker, "a").await;
        assert_eq!(process(&world, &checker, TaskKind::BitError).await.unwrap().outcome, TaskOutcome::Done);
        let worker = wait(&world, &checker, "a").await;
        assert_is(&worker, WaitReason::Worker, "which the mill requested, waits in bit-error for a worker.", "", false);
        world.catalogue.stop_repairs(Some(&main()), "ada", "a bad firmware").await.unwrap();
        let stopped = wait(&world, &checker, "a").await;
        assert_is(&stopped, WaitReason::Stopped, "has not begun. Automatic repairs in", "They are resumed by queuekeeper mill resume-repairs ", false);
        world.catalogue.resume_repairs(Some(&main())).await.unwrap();
        // What its task says is what is shown: nothing was written by then.
        assert!(is_wrong(&world, "a").await);
        assert_eq!(process(&world, &checker, TaskKind::Repair).await.unwrap().outcome, TaskOutcome::Done);
        assert!(!is_wrong(&world, "a").await);
    }

    async fn what_no_other_copy_repairs_says_so_and_what_has_to_be_there_first(world: World) {
        let checker = checker(&world, &StoreLimits { repair: RepairMode::Automatic, ..StoreLimits::default() });
        put_both(&world, "rotten", "the content").await;
        for store in [main(), replica()] {
            world.rot_in(&store, "rotten");
        }
        let check = NewTask { queue: TaskQueue::BitIntegrity, subject: subject("rotten"), source: None };
        world.catalogue.put_tasks(&[check]).await.unwrap();
        let mut reasons = BTreeSet::new();
        for kind in [TaskKind::Bit, TaskKind::BitError, TaskKind::Repair] {
            while process(&world, &checker, kind).await.is_some() {
                if kind == TaskKind::Repair {
                    let failed = wait(&world, &checker, "rotten").await;
                    assert!(failed.why.contains("no other copy is good enough to repair it"), "{failed:?}");
                    reasons.insert((failed.reason.as_str(), failed.may_decide));
                }
                world.tamper("UPDATE tasks SET visible = 0 WHERE kind <> 'BIT_ERROR' AND state = 'waiting'".to_owned()).await;
            }
        }
        assert_eq!(reasons, [("no_good_copy", false), ("no_good_copy", true)].into(), "first it is tried again");
        let dead = wait(&world, &checker, "rotten").await;
        assert_is(&dead, WaitReason::NoGoodCopy, "failed in every attempt and is dead letter", "Once another store has a good copy", true);
    }
}
