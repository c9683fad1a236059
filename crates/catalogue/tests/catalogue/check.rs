//! What `check` finds when the database was changed by hand.

use std::time::Duration;

use queuekeeper_store::Digests;
use queuekeeper_store::audit::{AuditSink as _, Change, Intent, Settlement};

use super::inventory::{files, version};
use super::support::{LEASE, World, done, etag, intent, on_both};

/// Three events, and an object with two versions.
async fn fill(world: &World) {
    for number in 1..=3 {
        let intent = intent(&[number]);
        world.catalogue.begin(&intent, LEASE).await.unwrap();
        world.catalogue.settle(&intent, &done(Change::Add, number)).await.unwrap();
    }
    for number in 1..=2 {
        world.catalogue.record_version(&version("ark:/99999/a", number), files(3)).await.unwrap();
    }
    assert_eq!(world.catalogue.check().await.unwrap(), []);
}

on_both! {
    async fn a_change_that_a_killed_process_left_is_found_until_it_is_settled(world: World) {
        let catalogue = &world.catalogue;
        let (dead, living) = (intent(b"a\xff"), intent(b"b"));
        catalogue.begin(&dead, Duration::ZERO).await.unwrap();
        catalogue.begin(&living, LEASE).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        let findings = catalogue.check().await.unwrap();
        let texts: Vec<_> = findings.iter().map(ToString::to_string).collect();
        let what = "a change of a killed process is not settled: add of main/space-a/a\\xff by ada; make a change";
        assert!(texts.len() == 1 && texts[0].starts_with(what), "{texts:?}");
        catalogue.settle(&dead, &Settlement::NotDone).await.unwrap();
        assert_eq!(catalogue.check().await.unwrap(), []);
    }
}

on_both! {
    async fn what_deletions_and_properties_leave_in_the_index_is_right_and_is_compared_with_what_was_written(world: World) {
        let catalogue = &world.catalogue;
        let no_content = |change, etag| Settlement::Done { change, etag, size: None, digests: Digests::default() };
        let described = |key: &[u8]| Intent { properties: Some("{}".to_owned()), change: Change::Properties, ..intent(key) };
        for (intent, settlement) in [
            (intent(b"a"), done(Change::Add, 1)),
            (intent(b"a"), done(Change::Update, 2)),
            (described(b"a"), no_content(Change::Properties, None)),
            (intent(b"b"), done(Change::Copy, 3)),
            (described(b"b"), no_content(Change::Properties, Some(etag(9)))),
            (intent(b"b"), no_content(Change::Delete, None)),
            (intent(b"c"), done(Change::Add, 4)),
            (intent(b"c"), no_content(Change::Delete, None)),
            (intent(b"c"), done(Change::Add, 5)),
            (intent(b"d"), done(Change::Add, 6)),
            (intent(b"d"), no_content(Change::Delete, None)),
            (intent(b""), no_content(Change::CreateSpace, None)),
        ] {
            catalogue.begin(&intent, LEASE).await.unwrap();
            catalogue.settle(&intent, &settlement).await.unwrap();
        }
        assert_eq!(catalogue.check().await.unwrap(), []);
        for table in ["copies", "audit_head"] {
            world.tamper(&format!("UPDATE {table} SET digests = '{{}}'")).await;
        }
        let findings = catalogue.check().await.unwrap();
        for key in ["a", "b", "c", "d"] {
            let of_item = findings.iter().filter(|finding| finding.what.ends_with(&format!(": main/space-a/{key}")));
            assert_eq!(of_item.count(), 2, "{findings:?}");
        }
    }
}

/// Changes, and what is said of each.
const TAMPERED: &[(&str, &str)] = &[
    ("UPDATE audit_log SET user_name = 'eve' WHERE seq = 1", "event 1 of the audit log was altered"),
    ("UPDATE audit_log SET user_name = 'eve' WHERE seq = 3", "event 3 of the audit log was altered"),
    ("UPDATE audit_log SET change = 'nothing' WHERE seq = 2", "event 2 of the audit log is unreadable"),
    ("DELETE FROM audit_log WHERE seq = 2", "the audit log lacks the events 2 to 2"),
    ("DELETE FROM audit_log WHERE seq = 3", "the audit log ends with event 2, but 3 events were written"),
    ("UPDATE counter_deltas SET delta = delta + 1 WHERE name = 'content_bytes'", "counter content_bytes of \"main\""),
    ("INSERT INTO counters VALUES ('objects', 'ghost', 3)", "counter objects of \"ghost\" is 3, but there are 0"),
    ("UPDATE copies SET seq = 77", "the content index and the last event of a copy differ: main/space-a/"),
    ("UPDATE copies SET digests = '{}' WHERE seq = 2", "the content index differs from the audit log for a copy"),
    ("UPDATE copies SET size = 77 WHERE seq = 2", "the content index differs from the audit log for a copy"),
    ("UPDATE copies SET etag = 'x' WHERE seq = 2", "the content index differs from the audit log for a copy"),
    ("UPDATE copies SET properties = '{}' WHERE seq = 2", "the content index differs from the audit log"),
    ("UPDATE copies SET is_deleted = NOT is_deleted WHERE seq = 2", "the content index differs from the audit log"),
    ("DELETE FROM copies WHERE seq = 2", "the content index lacks a copy that has an event: main/space-a/\\u{2}"),
    ("UPDATE audit_head SET digests = '{}' WHERE seq = 2", "(audit_head) differs from the audit log: main/"),
    ("UPDATE audit_head SET size = 77 WHERE seq = 2", "(audit_head) differs from the audit log: main/space-a/"),
    ("UPDATE audit_head SET seq = 1 WHERE seq = 2", "(audit_head) differs from the audit log: main/space-a/"),
    ("UPDATE objects SET current_version = 1", "the current version of an object is not its newest one: ark:/99999/a"),
    ("DELETE FROM files WHERE path LIKE '%1.tif'", "the files of a version differ from those recorded"),
    ("INSERT INTO local_ids SELECT 'owner', 'id', 'ark:/99999/gone', id FROM catalogue", "belongs to no object"),
];

on_both! {
    async fn each_change_behind_the_back_of_the_program_is_found_with_what_to_do(world: World) {
        fill(&world).await;
        let tables = ["audit_log", "counters", "counter_deltas", "copies", "audit_head", "objects", "files", "local_ids"];
        for table in tables {
            world.tamper(&format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}")).await;
        }
        for (change, what) in TAMPERED {
            world.tamper(change).await;
            let findings = world.catalogue.check().await.unwrap();
            let found = findings.iter().find(|finding| finding.what.contains(what));
            assert!(found.is_some_and(|finding| !finding.fix.is_empty()), "{change}: {findings:?}");
            for table in tables {
                let key = match table {
                    "audit_log" => "seq",
                    "counters" => "name, scope",
                    "copies" | "audit_head" => "item, store",
                    "files" => "version, path",
                    "local_ids" => "owner, local_id",
                    _ => "id",
                };
                // Referenced rows are updated, others put back as they were.
                match table {
                    "objects" => world.tamper("UPDATE objects SET current_version = 2").await,
                    "counter_deltas" => {
                        let sql = "UPDATE counter_deltas SET delta = (SELECT delta FROM kept_counter_deltas AS kept
                            WHERE kept.id = counter_deltas.id)";
                        world.tamper(sql).await;
                    }
                    _ => {
                        world.tamper(&format!("DELETE FROM {table}")).await;
                        world.tamper(&format!("INSERT INTO {table} SELECT * FROM kept_{table} ORDER BY {key}")).await;
                    }
                }
            }
            assert_eq!(world.catalogue.check().await.unwrap(), [], "after {change}");
        }
    }
}
