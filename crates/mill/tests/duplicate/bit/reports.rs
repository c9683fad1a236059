//! The report on a space, with what it covers, as files of the account.

use std::collections::BTreeMap;

use queuekeeper_catalogue::bit::{BitRun, StoredReport};
use queuekeeper_catalogue::tasks::{
    Decided, Decision, EndedTask, NewTask, TakenTask, TaskKind, TaskOutcome, TaskQueue, TaskState, TaskSubject, Tasks,
};
use queuekeeper_mill::bit::mail::ReportMail;
use queuekeeper_mill::bit::reporter::Reporter;
use queuekeeper_mill::producer::Step;
use queuekeeper_mill::worker::{Lease, Processor as _};
use queuekeeper_store::error::Operation;
use queuekeeper_store::store::Item;
use queuekeeper_testkit::faulty::{Fault, Rule};
use serde_json::Value;

use super::world::{Bit, LEASE};
use crate::duplicate::world::{World, item, main, on_all};

pub(super) async fn write(world: &World, keys: &[&str]) {
    for key in keys {
        world.put(&main(), true, &item(key), "0123456789", "text/plain").await;
    }
}

/// Goes through a loop to its end, and takes the task of the report.
pub(super) async fn requested(world: &World, bit: &mut Bit) -> TakenTask {
    bit.producer.reports = true;
    bit.run_loop().await;
    take_report(world).await
}

/// Begins a loop, of which the page is checked: one item is there, and another is recorded and not listed.
async fn check_page_without(world: &World, bit: &mut Bit, late: &str) {
    write(world, &["a", late]).await;
    world.bare[&main()].delete(&item(late), None).await.unwrap();
    while bit.producer.step().await.unwrap() != Step::Checking {}
    assert!(bit.process(TaskKind::BitPage).await.is_some());
}

/// A check of one item, as whoever finds it wrong while it is copied requests it.
fn look_at(name: &str) -> NewTask {
    let key = Some(item(name).key);
    let (account, space) = ("account1".to_owned(), "theses".parse().unwrap());
    let subject = TaskSubject { kind: TaskKind::Bit, account, space, key, destination: Some(main()) };
    NewTask { queue: TaskQueue::BitIntegrity, subject, source: None }
}

async fn newest_run(world: &World) -> BitRun {
    world.catalogue.newest_bit_run("account1", &main(), &"theses".parse().unwrap()).await.unwrap().unwrap()
}

/// Goes through a loop in which nothing can be read: the checks of so many items go to the dead letters.
async fn die(world: &World, bit: &Bit, items: usize) {
    bit.faults.add(Rule::new(Fault::Permanent).on(Operation::Get));
    while bit.producer.step().await.unwrap() != Step::Checking {}
    assert!(bit.process(TaskKind::BitPage).await.is_some());
    for _ in 0..items * 3 {
        assert!(bit.process(TaskKind::Bit).await.is_some());
        world.tamper("UPDATE tasks SET visible = 0 WHERE state = 'waiting'".to_owned()).await;
    }
}

pub(super) async fn take_report(world: &World) -> TakenTask {
    let tasks = Tasks { queue: TaskQueue::BitReport, account: "account1", kinds: &[TaskKind::BitReport], limit: 1 };
    world.catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap().remove(0)
}

/// Goes through a loop to its end, and has the report written.
pub(super) async fn report(world: &World, bit: &mut Bit) -> StoredReport {
    let task = requested(world, bit).await;
    write_report(world, bit, task).await;
    newest_run(world).await.report.unwrap()
}

async fn write_reports(world: &World, bit: &Bit) {
    let task = take_report(world).await;
    write_report(world, bit, task).await;
}

pub(super) async fn write_report(world: &World, bit: &Bit, task: TakenTask) {
    let reporter = Reporter { checker: bit.checker.clone(), mail: ReportMail::default() };
    write_report_by(world, &reporter, task).await;
}

pub(super) async fn write_report_by(world: &World, reporter: &Reporter, task: TakenTask) {
    let processed = reporter.process(&task, &Lease::unlimited()).await;
    assert_eq!(processed.outcome, TaskOutcome::Done);
    let catalogue = &world.catalogue;
    let ended = EndedTask { task, outcome: TaskOutcome::Done, follow_ups: Vec::new(), checked: None };
    assert_eq!(catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
}

/// What lies at a place, with this ending.
pub(super) async fn file(world: &World, place: &str, ending: &str) -> String {
    let mut parts = place.splitn(3, '/');
    let mut part = || parts.next().unwrap();
    let store = part().parse().unwrap();
    let item = Item::new(part().parse().unwrap(), format!("{}.{ending}", part()).parse().unwrap());
    world.text(&store, &item).await.unwrap().0
}

/// The items of each part of a coverage that has some.
pub(super) fn parts(coverage: &str) -> BTreeMap<String, (u64, u64)> {
    let line = |line: &str| {
        let fields: Vec<_> = line.split('\t').collect();
        (fields[0].to_owned(), (fields[2].parse().unwrap(), fields[3].parse().unwrap()))
    };
    coverage.lines().skip(1).map(line).filter(|(_, amount)| *amount != (0, 0)).collect()
}

fn amounts<const N: usize>(amounts: [(&str, u64); N]) -> BTreeMap<String, (u64, u64)> {
    amounts.into_iter().map(|(part, items)| (part.to_owned(), (items, items * 10))).collect()
}

on_all! {
    async fn a_report_says_what_is_wrong_and_what_it_covers(world: World) {
        let mut bit = Bit::new(&world, "read");
        write(&world, &["a", "b", "c"]).await;
        let stored = report(&world, &mut bit).await;
        assert_eq!((&*stored.result, stored.is_complete, stored.is_newest), ("success", Some(true), true));
        assert_eq!(parts(&file(&world, &stored.place, "coverage.tsv").await), amounts([("stored", 3), ("read", 3)]));
        let table = file(&world, &stored.place, "tsv").await;
        assert_eq!((table.lines().count(), table.matches("\tsuccess\tread\t").count()), (4, 3), "{table}");

        // A rotten one, one that is gone, one that nobody knows.
        write(&world, &["lost", "rotten"]).await;
        world.rot("rotten");
        world.bare[&main()].delete(&item("lost"), None).await.unwrap();
        world.put(&main(), false, &item("un known"), "0123456789", "text/plain").await;
        world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
        let stored = report(&world, &mut bit).await;
        assert_eq!((&*stored.result, stored.is_complete, stored.is_newest), ("failure", Some(true), true));
        let kept: Value = serde_json::from_str(stored.coverage.as_deref().unwrap()).unwrap();
        assert_eq!((&kept["missing"]["items"], &kept["read"]["bytes"]), (&1.into(), &30.into()));
        let covered = amounts([("stored", 5), ("read", 3), ("failed", 1), ("foreign", 1), ("missing", 1)]);
        assert_eq!(parts(&file(&world, &stored.place, "coverage.tsv").await), covered);
        let document: Value = serde_json::from_str(&file(&world, &stored.place, "json").await).unwrap();
        let items = document["items"].as_array().unwrap();
        let found: BTreeMap<_, _> = items.iter().map(|item| (item["key_encoded"].as_str().unwrap(), &item["findings"])).collect();
        assert_eq!(found.len(), 6);
        for (key, finding) in [("rotten", "content_damaged"), ("lost", "content_missing"), ("un%20known", "not_recorded")] {
            assert_eq!(found[key], &serde_json::json!([finding]));
        }
        assert_eq!(document["lacks"].as_array().unwrap().len(), 3);
        let events = file(&world, &stored.place, "premis.xml").await;
        for (text, number) in [("<premis:event>", 6), ("Outcome>success<", 3), ("Outcome>fail<", 3), ("/un%20known<", 1)] {
            assert_eq!(events.matches(text).count(), number, "{text} {events}");
        }
        let table = file(&world, &stored.place, "tsv").await;
        let row = table.lines().find(|line| line.contains("\trotten\t")).unwrap();
        let fields: Vec<_> = row.split('\t').collect();
        assert_eq!((fields[5], fields[6], fields[11]), ("failure", "", "content damaged"));
        assert!(fields[7].starts_with("sha256:") && fields[7] != fields[9] && fields[9] == fields[10], "{row}");
    }

    async fn what_is_stored_once_others_were_listed_counts_as_they_do(world: World) {
        let mut bit = Bit::new(&world, "read");
        check_page_without(&world, &mut bit, "late").await;
        world.put(&main(), false, &item("late"), "0123456789", "text/plain").await;
        let stored = report(&world, &mut bit).await;
        assert_eq!((&*stored.result, stored.is_complete), ("success", Some(true)));
        assert_eq!(parts(&file(&world, &stored.place, "coverage.tsv").await), amounts([("stored", 2), ("read", 2)]));
    }

    async fn what_is_put_back_once_its_check_has_missed_it_counts_as_listed(world: World) {
        let mut bit = Bit::new(&world, "read");
        check_page_without(&world, &mut bit, "late").await;
        // What is missing is looked for again, some time later.
        while bit.process(TaskKind::Bit).await.is_some() {
            world.tamper("UPDATE tasks SET visible = 0".to_owned()).await;
        }
        let run = newest_run(&world).await.id;
        let checks = world.catalogue.checks_of_run(run, "failure", 0, 10).await.unwrap();
        assert_eq!(checks.iter().map(|check| &check.key).collect::<Vec<_>>(), [&item("late").key]);
        assert_eq!(world.catalogue.bit_items_left(run, None, 10).await.unwrap(), []);
        world.put(&main(), false, &item("late"), "0123456789", "text/plain").await;
        world.catalogue.put_tasks(&[look_at("late")]).await.unwrap();
        let stored = report(&world, &mut bit).await;
        assert_eq!((&*stored.result, stored.is_complete), ("success", Some(true)));
        assert_eq!(parts(&file(&world, &stored.place, "coverage.tsv").await), amounts([("stored", 2), ("read", 2)]));
    }

    async fn what_was_not_checked_is_no_success(world: World) {
        let mut bit = Bit::new(&world, "read");
        write(&world, &["a", "b"]).await;
        die(&world, &bit, 2).await;
        let stored = report(&world, &mut bit).await;
        assert_eq!(stored.result, "incomplete");
        assert_eq!(parts(&file(&world, &stored.place, "coverage.tsv").await), amounts([("stored", 2), ("dead", 2)]));

        // A store without reading proves by its own checksums, which is what is requested here.
        bit.faults.clear();
        let mut bit = Bit::new(&world, "provider");
        world.tamper("UPDATE loops SET next_start = 0, lease_end = 0".to_owned()).await;
        world.tamper("DELETE FROM tasks".to_owned()).await;
        let stored = report(&world, &mut bit).await;
        assert_eq!(stored.result, "success");
        assert_eq!(parts(&file(&world, &stored.place, "coverage.tsv").await), amounts([("stored", 2), ("provider", 2)]));
    }

    async fn an_item_that_is_checked_again_counts_once_and_hides_none_whose_check_was_dropped(world: World) {
        let mut bit = Bit::new(&world, "read");
        write(&world, &["again", "dropped", "gone"]).await;
        die(&world, &bit, 3).await;
        bit.faults.clear();
        world.stores[&main()].delete(&item("gone"), None).await.unwrap();
        let key = |subject: &TaskSubject| subject.key.clone().unwrap();
        for letter in world.catalogue.dead_letters("account1", 0, 10).await.unwrap() {
            let what = if key(&letter.subject) == item("dropped").key { Decided::Drop } else { Decided::Retry };
            let decision = Decision { what, of: &[TaskState::Dead], user: "ada", reason: "it is read again" };
            assert!(world.catalogue.decide_task(letter.id, &decision).await.unwrap());
            bit.settle().await;
            for _look in 0..3 * usize::from(key(&letter.subject) == item("again").key) {
                world.catalogue.put_tasks(&[look_at("again")]).await.unwrap();
                assert_eq!(bit.settle().await, (0, 1));
            }
        }
        // The last look finds it rotten.
        world.rot("again");
        world.catalogue.put_tasks(&[look_at("again")]).await.unwrap();
        let stored = report(&world, &mut bit).await;
        assert_eq!((&*stored.result, stored.is_complete), ("failure", Some(false)));
        let mut covered = amounts([("stored", 3), ("failed", 1), ("dropped", 1), ("gone", 1)]);
        assert_eq!(parts(&file(&world, &stored.place, "coverage.tsv").await), covered);
        assert_eq!(file(&world, &stored.place, "tsv").await.lines().count(), 2);

        // Whoever drops the check of an item that is not listed leaves no success behind, either.
        world.rot("again");
        world.bare[&main()].delete(&item("dropped"), None).await.unwrap();
        world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
        while bit.producer.step().await.unwrap() != Step::Checking {}
        assert!(bit.process(TaskKind::BitPage).await.is_some());
        bit.faults.add(Rule::new(Fault::Permanent).on(Operation::Head));
        for _attempt in 0..6 {
            bit.process(TaskKind::Bit).await.unwrap();
            world.tamper("UPDATE tasks SET visible = 0 WHERE state = 'waiting'".to_owned()).await;
        }
        bit.faults.clear();
        for letter in world.catalogue.dead_letters("account1", 0, 10).await.unwrap() {
            let decision = Decision { what: Decided::Drop, of: &[TaskState::Dead], user: "ada", reason: "it is gone" };
            assert!(world.catalogue.decide_task(letter.id, &decision).await.unwrap());
        }
        let stored = report(&world, &mut bit).await;
        assert_eq!((&*stored.result, stored.is_complete), ("incomplete", Some(false)));
        covered = amounts([("stored", 1), ("dropped", 2)]);
        assert_eq!(parts(&file(&world, &stored.place, "coverage.tsv").await), covered);
    }

    async fn a_report_that_is_written_after_later_loops_covers_its_own_loop_alone(world: World) {
        let mut bit = Bit::new(&world, "read");
        bit.producer.reports = true;
        write(&world, &["a", "b"]).await;
        let mut runs = Vec::new();
        for number in 1..=3 {
            if number > 1 {
                world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
                die(&world, &bit, 2).await;
            }
            bit.run_loop().await;
            runs.push(newest_run(&world).await.id);
        }
        write_reports(&world, &bit).await;
        let dead = amounts([("stored", 2), ("dead", 2)]);
        let expected = [("success", amounts([("stored", 2), ("read", 2)])), ("incomplete", dead.clone()), ("incomplete", dead)];
        for (run, (result, covered)) in runs.into_iter().zip(expected) {
            let stored = world.catalogue.bit_run(run).await.unwrap().unwrap().report.unwrap();
            assert_eq!((&*stored.result, parts(&file(&world, &stored.place, "coverage.tsv").await)), (result, covered));
            assert_eq!(stored.is_complete, Some(result == "success"));
        }
    }
}
