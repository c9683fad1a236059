//! Open bit errors by space, by key, and counted.

use std::collections::BTreeMap;
use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::bit::{CheckedItem, CheckedPart, Evidence, Wrong};
use queuekeeper_catalogue::counters::Counter;
use queuekeeper_catalogue::tasks::{EndedTask, NewTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject, Tasks};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, SpaceName, StoreName};

use super::support::{LEASE, World, on_both};

fn key(key: &str) -> Key {
    Key::new(key.as_bytes()).unwrap()
}

fn store(name: &str) -> StoreName {
    name.parse().unwrap()
}

fn space(name: &str) -> SpaceName {
    name.parse().unwrap()
}

/// Ends a check of a copy, with something wrong or nothing.
async fn check(world: &World, store: &StoreName, item: &Item, is_wrong: bool) {
    let subject = TaskSubject {
        kind: TaskKind::Bit,
        account: "account".to_owned(),
        space: item.space.clone(),
        key: Some(item.key.clone()),
        destination: Some(store.clone()),
    };
    let new = NewTask { queue: TaskQueue::BitIntegrity, subject, source: None };
    world.catalogue.put_tasks(&[new]).await.unwrap();
    let kinds = [TaskKind::Bit];
    let tasks = Tasks { queue: TaskQueue::BitIntegrity, account: "account", kinds: &kinds, limit: 1 };
    let task = world.catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap().remove(0);
    let wrong = is_wrong.then(|| Wrong {
        findings: vec!["content_damaged"],
        detail: "content damaged".to_owned(),
        observed: None,
    });
    let checked = CheckedItem {
        item: item.clone(),
        id: None,
        bytes: 7,
        result: if is_wrong { "failure" } else { "nothing" },
        proof: None,
        seq: None,
        evidence: Evidence::default(),
        wrong,
        is_missing: false,
        unread: None,
    };
    let checked = CheckedPart::of("account".to_owned(), store.clone(), vec![checked]);
    let ended = EndedTask { task, outcome: TaskOutcome::Done, follow_ups: Vec::new(), checked: Some(checked) };
    assert_eq!(world.catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
}

/// The figures of spaces that are not 0.
async fn by_space(catalogue: &Catalogue) -> BTreeMap<String, i64> {
    let mut figures = catalogue.counter(Counter::SpaceBitErrors).await.unwrap();
    figures.retain(|_scope, open| *open != 0);
    figures
}

on_both! {
    async fn open_bit_errors_are_counted_by_space_and_found_by_key(world: World) {
        let catalogue = &world.catalogue;
        let [theses, maps] = ["theses", "maps"].map(space);
        assert_eq!(catalogue.oldest_bit_error("account").await.unwrap(), None);
        for (store_name, space, name) in [
            ("main", &theses, "a/1"), ("main", &theses, "a/2"), ("main", &theses, "a0"), ("main", &maps, "a/1"),
            ("replica", &theses, "a/2"), ("replica", &theses, "b"),
        ] {
            check(&world, &store(store_name), &Item::new(space.clone(), key(name)), true).await;
        }
        // The same once more is no other one.
        check(&world, &store("main"), &Item::new(maps.clone(), key("a/1")), true).await;
        for _folded in 0..2 {
            let expected = [("main/maps", 1), ("main/theses", 3), ("replica/theses", 2)];
            assert_eq!(by_space(catalogue).await, expected.map(|(scope, open)| (scope.to_owned(), open)).into());
            catalogue.fold().await.unwrap();
        }
        let oldest = catalogue.oldest_bit_error("account").await.unwrap().unwrap();
        assert_eq!(oldest, catalogue.bit_errors("account", 0, 1).await.unwrap()[0].found);

        let range = (key("a/"), key("a0"));
        let part = async |most| {
            let range = (Some(&range.0), Some(&range.1));
            catalogue.bit_errors_of_part(&store("main"), &theses, range, most).await.unwrap()
        };
        let keys = |found: Vec<queuekeeper_catalogue::bit::BitError>| -> Vec<_> {
            found.into_iter().map(|error| error.item.key.to_string()).collect()
        };
        assert_eq!(keys(part(9).await), ["a/1", "a/2", "a0"], "the end of the range is in it");
        assert_eq!(keys(part(1).await), ["a/1"]);

        let stores = [store("main"), store("replica"), store("cold")];
        let wanted = ["a/2", "b", "none"].map(key);
        let found = catalogue.bit_errors_of_keys(&stores, &theses, &wanted).await.unwrap();
        let of: Vec<_> = found.keys().map(|(store, key)| format!("{store}/{key}")).collect();
        assert_eq!(of, ["main/a/2", "replica/a/2", "replica/b"]);
        let error = catalogue.bit_error(&store("replica"), &Item::new(theses.clone(), key("b"))).await.unwrap().unwrap();
        assert_eq!(found[&(store("replica"), key("b"))], error.id);
        assert_eq!(catalogue.bit_errors_of_keys(&stores, &theses, &[]).await.unwrap(), BTreeMap::new());

        // What has ended is in none of them.
        check(&world, &store("replica"), &Item::new(theses.clone(), key("b")), false).await;
        assert_eq!(by_space(catalogue).await.get("replica/theses"), Some(&1));
        assert_eq!(catalogue.bit_errors_of_keys(&stores, &theses, &[key("b")]).await.unwrap(), BTreeMap::new());
        let problems = catalogue.check().await.unwrap();
        assert!(!problems.iter().any(|problem| problem.what.contains("counter ")), "{problems:?}");
        world.tamper("UPDATE counters SET value = 9 WHERE name = 'space_bit_errors' AND scope = 'main/maps'").await;
        let problems = catalogue.check().await.unwrap();
        let what = "counter space_bit_errors of \"main/maps\" is 9, but there are 1";
        assert!(problems.iter().any(|problem| problem.what.contains(what)), "{problems:?}");
    }

    async fn a_copy_that_was_repaired_automatically_is_known_for_a_week(world: World) {
        let (main, item) = (store("main"), Item::new(space("theses"), key("a")));
        let catalogue = &world.catalogue;
        assert!(!catalogue.was_repaired_lately(&main, &item).await.unwrap());
        let (user, reason, remedy) = ("mill", "content damaged", "repair_from_copy");
        let new = queuekeeper_catalogue::repairs::NewRepair {
            account: "account", store: &main, item: &item, user, reason, remedy, content: None, most_a_day: Some(1),
        };
        let subject = TaskSubject {
            kind: TaskKind::Repair,
            account: "account".to_owned(),
            space: item.space.clone(),
            key: Some(item.key.clone()),
            destination: Some(main.clone()),
        };
        let task = NewTask { queue: TaskQueue::BitError, subject, source: None };
        catalogue.start_repair(&new, task).await.unwrap();
        assert!(!catalogue.was_repaired_lately(&main, &item).await.unwrap(), "it has not ended");
        let end = queuekeeper_catalogue::repairs::RepairEnd::Repaired;
        catalogue.end_repair(&main, &item, end, "done").await.unwrap();
        assert!(catalogue.was_repaired_lately(&main, &item).await.unwrap());
        let week = Duration::from_hours(7 * 24).as_millis() + 1;
        world.tamper(&format!("UPDATE repairs SET ended = ended - {week}")).await;
        assert!(!catalogue.was_repaired_lately(&main, &item).await.unwrap());
    }
}

/// What was open before the schema counted it is counted by the step to it.
#[tokio::test(flavor = "multi_thread")]
async fn bit_errors_that_are_open_are_counted_when_the_schema_is_brought_up_to_date() {
    let world = World::sqlite().await;
    check(&world, &store("main"), &Item::new(space("theses"), key("a")), true).await;
    check(&world, &store("main"), &Item::new(space("theses"), key("b")), true).await;
    for sql in [
        "DELETE FROM counters WHERE name = 'space_bit_errors'",
        "DELETE FROM counter_deltas WHERE name = 'space_bit_errors'",
        "ALTER TABLE bit_items DROP COLUMN is_missing",
        "DELETE FROM queuekeeper_schema WHERE version >= 20",
    ] {
        world.tamper(sql).await;
    }
    assert_eq!(by_space(&world.catalogue).await, BTreeMap::new());
    let again = Catalogue::open(&world.url).await.unwrap();
    assert_eq!(by_space(&again).await, [("main/theses".to_owned(), 2)].into());
    again.close().await;
}
