//! Content in an archive is proven after its restore, and budgets of a store hold for all that read from it.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::bit::{NewRequestedCheck, RequestedCheckState};
use queuekeeper_catalogue::budgets::BudgetUse;
use queuekeeper_catalogue::tasks::{
    EndedTask, NewTask, OpenTask, TaskKind, TaskOutcome, TaskQueue, TaskState, TaskSubject, Tasks,
};
use queuekeeper_mill::bit::item::ItemChecks;
use queuekeeper_mill::bit::verify::Scope;
use queuekeeper_mill::limits::{ColdStore, RestoreSettings, StoreLimits};
use queuekeeper_mill::producer::Step;
use queuekeeper_mill::worker::{Lease, Processor as _};
use queuekeeper_store::archive::{RestoreRequest, RestoreTier};
use queuekeeper_store::error::Operation;
use queuekeeper_testkit::faulty::{Fault, Rule};

use super::reports::{file, parts, report, take_report, write, write_report};
use super::world::{Bit, LEASE};
use crate::duplicate::world::{World, item, main, replica};

/// What is waited for between two looks at a restore: longer than a test.
const POLL: Duration = Duration::from_mins(30);

pub(in crate::duplicate) fn restored() -> ColdStore {
    let request = RestoreRequest { days: 2, tier: RestoreTier::Bulk };
    let restore = RestoreSettings { request, poll: POLL, limit: Duration::from_hours(72) };
    ColdStore { restore: Some(restore), ..ColdStore::default() }
}

fn bit(world: &World, cold: ColdStore) -> Bit {
    Bit::with_limits(world, &StoreLimits { cold, ..StoreLimits::default() }, Some(&replica()))
}

/// Runs each test with SQLite and with PostgreSQL.
macro_rules! on_both {
    ($(async fn $name:ident($world:ident: World) $body:block)*) => {
        $(
            async fn $name($world: World) $body

            mod $name {
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn with_sqlite() {
                    Box::pin(super::$name(super::World::archive(false).await)).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn with_postgres() {
                    Box::pin(super::$name(super::World::archive(true).await)).await;
                }
            }
        )*
    };
}

/// Goes on until the producer waits for checks, and those wait for their store.
async fn until_it_waits(bit: &Bit) {
    while bit.producer.step().await.unwrap() != Step::Checking {
        bit.settle().await;
    }
    bit.settle().await;
}

/// Lets the time pass until the store is looked at again.
async fn look_again(world: &World) {
    world.tamper("UPDATE tasks SET visible = 0 WHERE state = 'restore'".to_owned()).await;
}

async fn restoring(world: &World, keys: &[&str]) -> Vec<OpenTask> {
    let open = world.open_tasks(keys).await;
    open.into_iter().filter(|open| open.state == TaskState::Restore).collect()
}

/// How many tasks wait for a worker, and how many for a store.
async fn figures(world: &World) -> (u64, u64) {
    let figures = world.catalogue.task_figures().await.unwrap();
    let of = figures.into_iter().find(|of| of.queue == TaskQueue::BitIntegrity).unwrap();
    (of.waiting, of.restore)
}

fn names(number: usize) -> Vec<String> {
    (0..number).map(|number| format!("item-{number:02}")).collect()
}

/// Requests checks of single items.
async fn request(catalogue: &Catalogue, keys: &[String]) {
    let task = |key: &String| {
        let subject = TaskSubject {
            kind: TaskKind::Bit,
            account: "account1".to_owned(),
            space: "theses".parse().unwrap(),
            key: Some(key.parse().unwrap()),
            destination: Some(main()),
        };
        NewTask { queue: TaskQueue::BitIntegrity, subject, source: None }
    };
    catalogue.put_tasks(&keys.iter().map(task).collect::<Vec<_>>()).await.unwrap();
}

/// Checks all items whose checks are visible, at once; how many are done, and how many wait for the store.
async fn check_at_once(bit: &Bit) -> (usize, usize) {
    let catalogue = &bit.checker.catalogue;
    let tasks = Tasks { queue: TaskQueue::BitIntegrity, account: "account1", kinds: &[TaskKind::Bit], limit: 100 };
    let tasks = catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap();
    let lease = Lease::unlimited();
    let ended = join_all(tasks.into_iter().map(async |task| {
        let processed = ItemChecks(bit.checker.clone()).process(&task, &lease).await;
        let (outcome, follow_ups, checked) = (processed.outcome, processed.follow_ups, processed.checked);
        EndedTask { task, outcome, follow_ups, checked }
    }))
    .await;
    catalogue.end_tasks(&ended).await.unwrap();
    let of = |is: fn(&TaskOutcome) -> bool| ended.iter().filter(|ended| is(&ended.outcome)).count();
    let answer =
        (of(|outcome| *outcome == TaskOutcome::Done), of(|outcome| matches!(outcome, TaskOutcome::Restore(..))));
    assert_eq!(answer.0 + answer.1, ended.len(), "{ended:?}");
    answer
}

/// As a process does that begins anew: with connections of its own.
async fn restarted(world: &World, cold: ColdStore) -> Bit {
    let world = world.reopened().await;
    bit(&world, cold)
}

on_both! {
    async fn an_archived_item_is_proven_after_one_restore(world: World) {
        let mut bit = bit(&world, restored());
        write(&world, &["a", "b"]).await;
        until_it_waits(&bit).await;
        let server = world.server();
        assert_eq!((server.count("RestoreObject"), figures(&world).await), (2, (0, 2)));
        let [a, _] = restoring(&world, &["a", "b"]).await.try_into().unwrap();
        assert_eq!((a.attempts, a.worker, a.task.errors.len()), (0, None, 0));
        let why = a.waits_for.unwrap();
        assert!(why.starts_with("waits for its restore from the archive of main"), "{why}");

        // It takes its time, and is requested once.
        for _ in 0..3 {
            look_again(&world).await;
            assert_eq!((bit.settle().await, bit.producer.step().await.unwrap()), ((0, 2), Step::Checking));
        }
        assert_eq!((server.count("RestoreObject"), figures(&world).await), (2, (0, 2)));
        assert_eq!(bit.counts().await, BTreeMap::new());
        assert_eq!(server.end_restores(), 2);
        look_again(&world).await;
        let stored = report(&world, &mut bit).await;
        assert_eq!((&*stored.result, stored.is_complete), ("success", Some(true)));
        let covered = parts(&file(&world, &stored.place, "coverage.tsv").await);
        assert_eq!(covered, [("stored".to_owned(), (2, 20)), ("read".to_owned(), (2, 20))].into());
        assert_eq!((bit.errors().await.len(), figures(&world).await), (0, (0, 0)));
        assert_eq!(world.catalogue.check().await.unwrap(), []);

        // Where the restored copy is gone, the next check asks anew.
        server.expire_restores();
        request(&world.catalogue, &["a".to_owned()]).await;
        assert_eq!((bit.settle().await, server.count("RestoreObject")), ((0, 1), 3));
        let used = world.catalogue.budget_use(&main()).await.unwrap();
        assert_eq!(used, BudgetUse { restores: 3, bytes: 0 });
    }

    async fn a_check_on_request_waits_for_restores_and_is_not_taken_for_ended(world: World) {
        let (bit, space) = (bit(&world, restored()), "theses".parse().unwrap());
        write(&world, &["a", "b"]).await;
        let (account, store, user, reason) = ("account1", &main(), "ada", "a new disk");
        let new = NewRequestedCheck { account, store, space: &space, key: None, user, reason, items: 2, bytes: 20 };
        assert!(world.catalogue.request_check(&new).await.unwrap());
        let requested = async || world.catalogue.requested_check(account, store, &space, None).await.unwrap().unwrap();
        let settle = async || while bit.process(TaskKind::Check).await.is_some() {};
        for _ in 0..2 {
            settle().await;
            look_again(&world).await;
        }
        let check = requested().await;
        assert_eq!((check.state, check.proven, check.pending), (RequestedCheckState::UnderWay, 0, 2));
        assert_eq!((world.server().count("RestoreObject"), world.server().end_restores()), (2, 2));
        look_again(&world).await;
        settle().await;
        let check = requested().await;
        assert_eq!((check.state, check.proven, check.proven_bytes, check.unproven), (RequestedCheckState::Ended, 2, 20, 0));

        // With the bytes of one item a day, the page goes on tomorrow where it ended.
        let bit = restarted(&world, ColdStore { bytes_out_per_day: Some("15".parse().unwrap()), ..restored() }).await;
        assert!(world.catalogue.request_check(&new).await.unwrap());
        for _ in 0..2 {
            bit.process(TaskKind::Check).await.unwrap();
        }
        let check = requested().await;
        assert_eq!((check.state, check.is_listed, check.proven, check.pending), (RequestedCheckState::UnderWay, false, 1, 0));
    }

    async fn without_a_restore_an_archived_item_is_unproven_and_the_report_says_why(world: World) {
        let mut bit = bit(&world, ColdStore::default());
        write(&world, &["a", "b"]).await;
        let stored = report(&world, &mut bit).await;
        assert_eq!((&*stored.result, stored.is_complete), ("incomplete", Some(false)));
        assert_eq!(bit.counts().await, [("unproven".to_owned(), 2)].into());
        let coverage = file(&world, &stored.place, "coverage.tsv").await;
        let why = "it is archived, but no restore is configured for its store";
        assert!(coverage.contains(&format!("unread\t{why}\t2\t20\n")), "{coverage}");
        let table = file(&world, &stored.place, "tsv").await;
        assert_eq!(table.matches("\tunproven\t\t").count(), 2, "{table}");
        assert_eq!(table.matches(why).count(), 2, "{table}");
        // A check of one item comes to the same.
        request(&world.catalogue, &["a".to_owned()]).await;
        let checked = bit.process(TaskKind::Bit).await.unwrap().checked.unwrap();
        assert_eq!((checked.items[0].result, checked.items[0].proof, checked.items[0].unread), ("unproven", None, Some(why)));
        let scope = Scope { account: "account1".to_owned(), store: main(), space: None, key: None };
        let totals = bit.checker.verify(&scope, &mut |_| {}).await.unwrap();
        assert_eq!((totals.proven, totals.wrong, totals.unchecked), (0, 0, 2));
        assert_eq!((world.server().count("RestoreObject"), bit.errors().await.len()), (0, 0));
    }

    async fn restores_of_a_day_hold_with_many_workers_and_after_a_restart(world: World) {
        let cold = ColdStore { restores_per_day: 4, ..restored() };
        let keys = names(20);
        write(&world, &keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
        request(&world.catalogue, &keys).await;
        let (first, server) = (bit(&world, cold), world.server());
        assert_eq!((check_at_once(&first).await, server.count("RestoreObject")), ((0, 20), 4));
        let restarted = restarted(&world, cold).await;
        look_again(&world).await;
        assert_eq!((check_at_once(&restarted).await, server.count("RestoreObject")), ((0, 20), 4));
        let waiting = world.open_tasks(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let used_up = waiting.iter().filter(|open| open.waits_for.as_deref().unwrap().contains("(4) is used up"));
        assert_eq!(used_up.count(), 16);
        // The wait ends when the budget is there again, a day after it was used.
        let day = jiff::Timestamp::now().as_millisecond() + 23 * 3_600_000;
        let late = waiting.iter().filter(|open| open.visible.unwrap().as_millisecond() > day);
        assert_eq!(late.count(), 16);
        world.tamper("UPDATE budget_uses SET minute = minute - 1430".to_owned()).await;
        look_again(&world).await;
        check_at_once(&restarted).await;
        assert_eq!(server.count("RestoreObject"), 4, "a day has not passed yet");
        world.tamper("UPDATE budget_uses SET minute = minute - 11".to_owned()).await;
        assert_eq!(server.end_restores(), 4);
        look_again(&world).await;
        assert_eq!((check_at_once(&restarted).await, server.count("RestoreObject")), ((4, 16), 8));
    }

    async fn bytes_of_a_day_hold_with_many_workers_and_after_a_restart(world: World) {
        let cold = ColdStore { bytes_out_per_day: Some("35".parse().unwrap()), ..restored() };
        let keys = names(20);
        write(&world, &keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
        request(&world.catalogue, &keys).await;
        // What is refused as it is archived is not read.
        let first = bit(&world, cold);
        let read = || async { world.catalogue.budget_use(&main()).await.unwrap().bytes };
        assert_eq!((check_at_once(&first).await, read().await), ((0, 20), 0));
        look_again(&world).await;
        assert_eq!(check_at_once(&bit(&world, restored())).await, (0, 20));
        assert_eq!(world.server().end_restores(), 20);
        look_again(&world).await;
        assert_eq!((check_at_once(&first).await, read().await), ((3, 17), 30));
        let restarted = restarted(&world, cold).await;
        look_again(&world).await;
        assert_eq!((check_at_once(&restarted).await, read().await), ((0, 17), 30));
        let open = world.open_tasks(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let used_up = "waits because bytes_out_per_day of main (35 B) is used up";
        assert_eq!(open.iter().filter(|open| open.waits_for.as_deref() == Some(used_up)).count(), 17);
        // What is larger than a day's budget never fits.
        let smaller = ColdStore { bytes_out_per_day: Some("9".parse().unwrap()), ..cold };
        look_again(&world).await;
        let TaskOutcome::Failed(why) = bit(&world, smaller).process(TaskKind::Bit).await.unwrap().outcome else {
            panic!("it waits")
        };
        assert!(why.contains("its 10 bytes are more than bytes_out_per_day allows in a day (9 B)"), "{why}");
    }

    async fn a_page_goes_on_where_the_budget_of_the_day_ended(world: World) {
        let bit = bit(&world, ColdStore { restores_per_day: 4, ..restored() });
        let keys = names(10);
        write(&world, &keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
        until_it_waits(&bit).await;
        // Those that were requested, and the rest of the page as one.
        assert_eq!((world.server().count("RestoreObject"), figures(&world).await), (4, (0, 5)));
        world.tamper("UPDATE budget_uses SET minute = minute - 1441".to_owned()).await;
        world.server().end_restores();
        look_again(&world).await;
        until_it_waits(&bit).await;
        assert_eq!((world.server().count("RestoreObject"), figures(&world).await), (8, (0, 5)));
        assert_eq!(bit.counts().await, [("success".to_owned(), 4)].into());
    }

    async fn what_a_budget_did_not_reach_is_unread_and_comes_first_in_the_next_loop(world: World) {
        let mut bit = bit(&world, ColdStore { restores_per_day: 1, ..restored() });
        (bit.producer.part, bit.producer.reports) = (2, true);
        write(&world, &["a", "b", "c", "d"]).await;
        until_it_waits(&bit).await;
        // One was requested; the rest of its page waits, and the other page.
        assert_eq!((world.server().count("RestoreObject"), figures(&world).await), (1, (0, 3)));
        world.tamper(format!("UPDATE bit_runs SET listed = listed - {}", 72 * 3_600_000)).await;
        assert_eq!(bit.producer.step().await.unwrap(), Step::Idle);
        let tomorrow = async || {
            world.tamper("UPDATE budget_uses SET minute = minute - 1441".to_owned()).await;
            world.server().end_restores();
            look_again(&world).await;
            bit.settle().await;
            world.server().count("RestoreObject")
        };
        // They are checked nevertheless, which changes nothing of the report.
        assert_eq!(tomorrow().await, 2);
        write_report(&world, &bit, take_report(&world).await).await;
        let space = "theses".parse().unwrap();
        let run = world.catalogue.newest_bit_run("account1", &main(), &space).await.unwrap().unwrap();
        let stored = run.report.unwrap();
        assert_eq!((&*stored.result, stored.is_complete), ("incomplete", Some(false)));
        let covered = [("stored", (4, 40)), ("unread", (3, 30)), ("dropped", (1, 10))];
        let covered: BTreeMap<_, _> = covered.map(|(part, amount)| (part.to_owned(), amount)).into();
        assert_eq!(parts(&file(&world, &stored.place, "coverage.tsv").await), covered);
        assert_eq!(tomorrow().await, 3);
        let proven = async |key| world.catalogue.copy(&main(), &item(key)).await.unwrap().unwrap().proven.is_some();
        assert_eq!((proven("a").await, proven("c").await, proven("d").await), (true, true, false));

        // The page that was reached waits for the one that was not.
        world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
        while bit.producer.step().await.unwrap() != Step::Checking {}
        let first = bit.process(TaskKind::BitPage).await.unwrap();
        let waits = "waits for items that were not read in the last loop";
        assert!(matches!(&first.outcome, TaskOutcome::Restore(_, why) if why == waits), "{first:?}");
        bit.settle().await;
        assert_eq!(bit.counts().await, [("success".to_owned(), 1)].into());
        assert_eq!(tomorrow().await, 4);
        tomorrow().await;
        // One was requested late, and is read for itself and with its page.
        let stored = report(&world, &mut bit).await;
        assert_eq!(stored.result, "success");
        let covered = parts(&file(&world, &stored.place, "coverage.tsv").await);
        assert_eq!(covered, [("stored".to_owned(), (4, 40)), ("read".to_owned(), (4, 40))].into());
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }

    async fn a_restore_that_does_not_end_is_an_error_and_one_of_a_dead_process_is_asked_for(world: World) {
        let bit = bit(&world, restored());
        write(&world, &["a"]).await;
        request(&world.catalogue, &["a".to_owned()]).await;
        // It is allowed, and then the process dies.
        bit.faults.add(Rule::new(Fault::Permanent).on(Operation::Restore));
        assert!(matches!(bit.process(TaskKind::Bit).await.unwrap().outcome, TaskOutcome::Failed(_)));
        bit.faults.clear();
        world.tamper("UPDATE tasks SET visible = 0".to_owned()).await;
        assert!(matches!(bit.process(TaskKind::Bit).await.unwrap().outcome, TaskOutcome::Restore(POLL, _)));
        let used = || async { world.catalogue.budget_use(&main()).await.unwrap().restores };
        assert_eq!((world.server().count("RestoreObject"), used().await), (1, 1));

        world.tamper(format!("UPDATE restores SET asked = asked - {}", 72 * 3_600_000)).await;
        look_again(&world).await;
        let TaskOutcome::Failed(why) = bit.process(TaskKind::Bit).await.unwrap().outcome else { panic!("it waits") };
        assert!(why.contains("and has not ended within 72 h"), "{why}");
        assert_eq!(world.server().count("RestoreObject"), 1);
        // A day later it is requested again: the store may know of it.
        world.tamper(format!("UPDATE restores SET asked = asked - {}", 25 * 3_600_000)).await;
        world.tamper("UPDATE tasks SET visible = 0".to_owned()).await;
        assert!(matches!(bit.process(TaskKind::Bit).await.unwrap().outcome, TaskOutcome::Restore(POLL, _)));
        assert_eq!((world.server().count("RestoreObject"), used().await), (2, 2));
    }

    async fn a_report_waits_for_restores_up_to_the_limit_and_no_other_space_waits_for_them(world: World) {
        let mut bit = bit(&world, restored());
        bit.producer.reports = true;
        write(&world, &["a", "b"]).await;
        let other = queuekeeper_store::Item::new("account1.zines".parse().unwrap(), "z".parse().unwrap());
        world.stores[&main()].create_space(&other.space).await.unwrap();
        world.put(&main(), true, &other, "0123456789", "text/plain").await;
        until_it_waits(&bit).await;
        assert_eq!((world.server().count("RestoreObject"), figures(&world).await), (3, (0, 3)));
        let hour = 3_600_000;
        world.tamper(format!("UPDATE bit_runs SET listed = listed - {}", 71 * hour)).await;
        assert_eq!(bit.producer.step().await.unwrap(), Step::Checking);
        world.tamper(format!("UPDATE bit_runs SET listed = listed - {hour}")).await;
        assert_eq!(bit.producer.step().await.unwrap(), Step::Idle, "the runs of both spaces have ended");
        let task = take_report(&world).await;
        write_report(&world, &bit, task).await;
        let space = "theses".parse().unwrap();
        let run = world.catalogue.newest_bit_run("account1", &main(), &space).await.unwrap().unwrap();
        let stored = run.report.unwrap();
        assert_eq!((&*stored.result, stored.is_complete), ("incomplete", Some(false)));
        let coverage = file(&world, &stored.place, "coverage.tsv").await;
        let waits = "unread\tit waits for its restore, or for the budget of its store\t2\t20\n";
        assert!(coverage.contains(waits), "{coverage}");
        // What waits is checked nevertheless.
        world.server().end_restores();
        look_again(&world).await;
        bit.settle().await;
        let copy = world.catalogue.copy(&main(), &item("a")).await.unwrap().unwrap();
        assert_eq!(copy.proven.map(|(_, proof)| proof).as_deref(), Some("read"));
    }
}
