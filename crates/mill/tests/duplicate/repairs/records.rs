//! What is recorded of a copy is put right by what was read, and what was written around the program only by asking.

use queuekeeper_catalogue::audit::{EventKind, Events};
use queuekeeper_catalogue::repair_stops::RepairStarted;
use queuekeeper_catalogue::repairs::RepairEnd;
use queuekeeper_catalogue::tasks::{NewTask, TaskKind, TaskOutcome, TaskQueue};
use queuekeeper_mill::bit::checker::Checker;
use queuekeeper_mill::bit::repair::RepairMode;
use queuekeeper_mill::bit::requested::{RemedyError, RemedyRequest, request_remedy};
use queuekeeper_mill::bit::verdict::Remedy;
use queuekeeper_mill::limits::StoreLimits;
use queuekeeper_mill::users::MILL;
use queuekeeper_mill::worker::Processed;

use super::found::{checker, is_wrong, process, subject};
use super::{asides, has, item, kept, main, newest, on_all, plain};
use crate::duplicate::world::World;

const OTHER: &str = r#"{"md5":"00000000000000000000000000000000"}"#;

/// Has an item checked to the end, and what is found decided.
async fn decide(world: &World, checker: &Checker, key: &str, finding: &str) -> Processed {
    let check = NewTask { queue: TaskQueue::BitIntegrity, subject: subject(key), source: None };
    world.catalogue.put_tasks(&[check]).await.unwrap();
    let mut found = Vec::new();
    while let Some(checked) = process(world, checker, TaskKind::Bit).await {
        found = checked.checked.map_or(found, |part| part.items);
    }
    assert_eq!(found[0].wrong.as_ref().unwrap().findings, [finding], "{key}");
    process(world, checker, TaskKind::BitError).await.unwrap()
}

async fn requested(world: &World, checker: &Checker, key: &str, remedy: Remedy) -> Result<RepairStarted, RemedyError> {
    let error = world.catalogue.bit_error(&main(), &item(key)).await.unwrap().unwrap();
    let request = RemedyRequest { remedy, user: "ada", reason: "a test", source: None };
    request_remedy(&world.catalogue, &checker.accounts["account1"], &error, request).await
}

/// Asks for a remedy, and has it carried out.
async fn resolve(world: &World, checker: &Checker, key: &str, remedy: Remedy) -> Processed {
    assert_eq!(requested(world, checker, key, remedy).await.unwrap(), RepairStarted::Started, "{key}");
    let repaired = process(world, checker, TaskKind::Repair).await.unwrap();
    if !is_wrong(world, key).await {
        // What waited for a decision is looked at now, and done.
        assert_eq!(process(world, checker, TaskKind::BitError).await.unwrap().outcome, TaskOutcome::Done, "{key}");
    }
    repaired
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
            world.change_record(table, key, digests).await;
            assert_eq!(decide(&world, &checker, key, finding).await.outcome, TaskOutcome::Done);
            assert_recorded(&world, key, "the content", MILL).await;
        }
        // A row that is removed behind the back of the catalogue stays counted.
        let problems = world.catalogue.check().await.unwrap();
        let is_of_counters = |what: &str| what.starts_with("counter ") || what.starts_with("the number of items in ");
        assert!(problems.iter().all(|problem| is_of_counters(&problem.what)), "{problems:?}");
    }

    async fn what_was_written_around_the_program_is_recorded_only_where_someone_asks_for_that(world: World) {
        let asks = checker(&world, &StoreLimits::default());
        for key in ["audit", "outside"] {
            world.put(&main(), true, &item(key), "the content", "text/plain").await;
        }
        world.change_record("audit_head", "audit", Some(OTHER)).await;
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
            assert!(matches!(decided.outcome, TaskOutcome::PutOff(_)), "{key}: {decided:?}");
            let records = world.catalogue.records_of_item(&main(), &item(key)).await.unwrap();
            assert_eq!(records.and_then(|after| after.index), before.and_then(|before| before.index), "{key}");
            let why = requested(&world, &asks, key, other).await.unwrap_err().to_string();
            assert!(why.contains("does not resolve this"), "{key}: {why}");
            assert_eq!(resolve(&world, &asks, key, remedy).await.outcome, TaskOutcome::Done);
            assert_recorded(&world, key, content, "ada").await;
            assert_eq!(newest(&world, key).await.ended.unwrap().1, RepairEnd::Recorded, "{key}");
        }
        let adopts = checker(&world, &StoreLimits { adopt: RepairMode::Automatic, ..StoreLimits::default() });
        world.put(&main(), false, &item("new"), "written outside", "text/plain").await;
        assert_eq!(decide(&world, &adopts, "new", "not_recorded").await.outcome, TaskOutcome::Done);
        assert_recorded(&world, "new", "written outside", MILL).await;
    }

    async fn what_is_recorded_is_what_was_seen_when_that_was_decided(world: World) {
        let asks = checker(&world, &StoreLimits::default());
        // A size alone does not say which content was meant.
        world.put(&main(), true, &item("size"), "the content", "text/plain").await;
        world.put(&main(), false, &item("size"), "written outside", "text/plain").await;
        decide(&world, &asks, "size", "changed_outside").await;
        assert_eq!(requested(&world, &asks, "size", Remedy::AcceptChange).await.unwrap(), RepairStarted::Started);
        world.tamper(r#"UPDATE repairs SET content = '{"size":15,"digests":{}}'"#.to_owned()).await;
        process(&world, &asks, TaskKind::Repair).await.unwrap();
        assert_eq!(newest(&world, "size").await.ended.unwrap().1, RepairEnd::Refused);

        world.put(&main(), true, &item("a"), "the content", "text/plain").await;
        world.put(&main(), false, &item("a"), "written outside", "text/plain").await;
        decide(&world, &asks, "a", "changed_outside").await;
        assert_eq!(requested(&world, &asks, "a", Remedy::AcceptChange).await.unwrap(), RepairStarted::Started);
        world.put(&main(), false, &item("a"), "written once more", "text/plain").await;
        let before = world.catalogue.records_of_item(&main(), &item("a")).await.unwrap();
        let processed = process(&world, &asks, TaskKind::Repair).await.unwrap();
        assert_eq!((&processed.outcome, processed.follow_ups.len()), (&TaskOutcome::Done, 1));
        assert_eq!(newest(&world, "a").await.ended.unwrap().1, RepairEnd::Refused);
        assert_eq!(world.catalogue.records_of_item(&main(), &item("a")).await.unwrap(), before);
        assert!(is_wrong(&world, "a").await);
    }

    async fn content_that_is_right_is_written_again_where_the_checksum_of_its_store_is_wrong(world: World) {
        let asks = checker(&world, &StoreLimits::default());
        world.put(&main(), true, &item("a"), "the content", "text/plain").await;
        world.misstate("a");
        let decided = decide(&world, &asks, "a", "store_checksum_wrong").await;
        assert!(matches!(decided.outcome, TaskOutcome::PutOff(_)), "{decided:?}");
        assert_eq!(resolve(&world, &asks, "a", Remedy::RewriteInPlace).await.outcome, TaskOutcome::Done);
        assert_recorded(&world, "a", "the content", MILL).await;
        let repair = newest(&world, "a").await;
        assert_eq!((repair.source, repair.ended.unwrap().1), (Some(main()), RepairEnd::Repaired));
        let [aside] = asides(&world, "a").await.try_into().unwrap();
        assert_eq!(has(&world, &main(), &kept(&aside.kept_as)).await, Some(plain("the content")));
    }
}
