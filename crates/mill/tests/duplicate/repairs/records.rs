//! What is recorded of a copy is put right by what was read, and what was written around the program only by asking.

use queuekeeper_catalogue::audit::{EventKind, Events};
use queuekeeper_catalogue::tasks::{NewTask, Outcome, Queue, TaskKind};
use queuekeeper_mill::audit::MILL;
use queuekeeper_mill::bit::checker::Checker;
use queuekeeper_mill::bit::decisions::Decider;
use queuekeeper_mill::bit::repair::RepairMode;
use queuekeeper_mill::bit::verdict::Remedy;
use queuekeeper_mill::limits::StoreLimits;
use queuekeeper_mill::worker::{Lease, Processed};

use super::found::{checker, is_wrong, process, subject};
use super::{has, item, main, on_all, plain};
use crate::duplicate::world::World;

const OTHER: &str = r#"{"md5":"00000000000000000000000000000000"}"#;

/// Changes the row that a table has of an item, or removes it.
async fn change_record(world: &World, table: &str, key: &str, digests: Option<&str>) {
    let id = world.catalogue.records_of_item(&main(), &item(key)).await.unwrap().unwrap().id;
    let change = match digests {
        Some(digests) => format!("UPDATE {table} SET digests = '{digests}'"),
        None => format!("DELETE FROM {table}"),
    };
    world.tamper(format!("{change} WHERE item = {id} AND store = 'main'")).await;
}

/// Has an item checked to the end, and what is found decided.
async fn decide(world: &World, checker: &Checker, key: &str, finding: &str) -> Processed {
    let check = NewTask { queue: Queue::BitIntegrity, subject: subject(key), source: None };
    world.catalogue.put_tasks(&[check]).await.unwrap();
    let mut found = Vec::new();
    while let Some(checked) = process(world, checker, TaskKind::Bit).await {
        found = checked.checked.map_or(found, |part| part.items);
    }
    assert_eq!(found[0].wrong.as_ref().unwrap().findings, [finding], "{key}");
    process(world, checker, TaskKind::BitError).await.unwrap()
}

/// Asserts that all that is recorded of a copy is what its store has, and that an event of this user says so.
async fn assert_recorded(world: &World, key: &str, content: &str, user: &str) {
    assert!(!is_wrong(world, key).await, "{key}");
    assert_eq!(has(world, &main(), &item(key)).await, Some(plain(content)), "{key}");
    let there = world.bare[&main()].head(&item(key)).await.unwrap().unwrap();
    let records = world.catalogue.records_of_item(&main(), &item(key)).await.unwrap().unwrap();
    let (index, audit) = (records.index.unwrap(), records.audit.unwrap());
    assert_eq!((index.size, &index.etag, index.is_deleted), (there.size, &Some(there.etag), false), "{key}");
    assert_eq!((&audit.digests, audit.seq, audit.is_deleted), (&index.digests, index.seq, false), "{key}");
    assert_eq!(index.digests.agree(&there.checksums), Some(true), "{key}");
    let last = world.catalogue.events(&Events::Item(main(), item(key)), None, 1).await.unwrap().remove(0);
    assert_eq!((last.seq, last.user.as_str(), &last.digests), (index.seq, user, &index.digests), "{key}");
    assert!(matches!(last.kind, EventKind::Made(_)), "{key}: {last:?}");
    assert!(world.catalogue.copy(&main(), &item(key)).await.unwrap().unwrap().proven.is_some(), "{key}");
}

on_all! {
    async fn a_record_that_the_content_and_the_other_record_prove_wrong_is_put_right(world: World) {
        let checker = checker(&world, &StoreLimits::default());
        for (key, table, digests, finding) in [
            ("index", "copies", Some(OTHER), "index_wrong"),
            ("noindex", "copies", None, "index_wrong"),
            ("noaudit", "audit_head", None, "audit_absent"),
        ] {
            world.put(&main(), true, &item(key), "the content", "text/plain").await;
            change_record(&world, table, key, digests).await;
            assert_eq!(decide(&world, &checker, key, finding).await.outcome, Outcome::Done);
            assert_recorded(&world, key, "the content", MILL).await;
        }
        // A row that is removed behind the back of the catalogue stays counted.
        let problems = world.catalogue.check().await.unwrap();
        assert!(problems.iter().all(|problem| problem.what.starts_with("counter ")), "{problems:?}");
    }

    async fn what_was_written_around_the_program_is_recorded_only_where_someone_asks_for_that(world: World) {
        let asks = checker(&world, &StoreLimits::default());
        let (decider, lease) = (Decider(asks.clone()), Lease::unlimited());
        for key in ["audit", "outside"] {
            world.put(&main(), true, &item(key), "the content", "text/plain").await;
        }
        change_record(&world, "audit_head", "audit", Some(OTHER)).await;
        for key in ["outside", "foreign"] {
            world.put(&main(), false, &item(key), "written outside", "text/plain").await;
        }
        for (key, finding, remedy, other, content) in [
            ("audit", "audit_wrong", Remedy::AppendEvent, Remedy::Adopt, "the content"),
            ("outside", "changed_outside", Remedy::AcceptChange, Remedy::AppendEvent, "written outside"),
            ("foreign", "not_recorded", Remedy::Adopt, Remedy::AcceptChange, "written outside"),
        ] {
            let before = world.catalogue.records_of_item(&main(), &item(key)).await.unwrap();
            let decided = decide(&world, &asks, key, finding).await;
            assert!(matches!(decided.outcome, Outcome::PutOff(_)), "{key}: {decided:?}");
            let records = world.catalogue.records_of_item(&main(), &item(key)).await.unwrap();
            assert_eq!(records.and_then(|after| after.index), before.and_then(|before| before.index), "{key}");
            let why = decider.record(&subject(key), other, "ada", &lease).await.unwrap_err();
            assert!(why.contains("is no remedy for what is there now"), "{key}: {why}");
            assert_eq!(decider.record(&subject(key), remedy, "ada", &lease).await, Ok(()), "{key}");
            assert_recorded(&world, key, content, "ada").await;
            assert!(decider.record(&subject(key), remedy, "ada", &lease).await.is_err(), "{key}");
        }
        let adopts = checker(&world, &StoreLimits { adopt: RepairMode::Automatic, ..StoreLimits::default() });
        world.put(&main(), false, &item("new"), "written outside", "text/plain").await;
        assert_eq!(decide(&world, &adopts, "new", "not_recorded").await.outcome, Outcome::Done);
        assert_recorded(&world, "new", "written outside", MILL).await;
    }
}
