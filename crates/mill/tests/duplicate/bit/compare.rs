//! The listing of a store and the content index side by side.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use queuekeeper_mill::bit::compare::Compared;
use queuekeeper_mill::bit::comparer::CompareSaid;
use queuekeeper_mill::bit::verify::Scope;
use queuekeeper_store::Item;
use queuekeeper_store::error::Operation;
use queuekeeper_testkit::faulty::{Fault, Rule};
use serde_json::{Value, json};

use super::world::Bit;
use crate::duplicate::world::{World, item, main, on_all, space};

/// Keys as depositors write them.
const KEYS: [&str; 6] = ["a", "b\tc\\", "d/e", "é%2F\"", "x<b>", "z"];

fn scope() -> Scope {
    Scope { account: "account1".to_owned(), store: main(), space: Some("theses".parse().unwrap()), key: None }
}

async fn compare(bit: &Bit, keeps: bool) -> Result<(Compared, BTreeMap<String, &'static str>), String> {
    let mut found = BTreeMap::new();
    let mut say = |said: CompareSaid<'_>| {
        if let CompareSaid::Differs(difference) = said {
            assert_eq!(found.insert(difference.key.to_string(), difference.kind.as_str()), None);
        }
    };
    let compared = bit.checker.compare(&scope(), keeps, &mut say).await?;
    Ok((compared, found))
}

async fn write(world: &World) {
    for key in KEYS {
        world.put(&main(), true, &item(key), "content", "text/plain").await;
    }
}

/// What the account has in its space for reports.
async fn kept_files(world: &World) -> BTreeMap<String, String> {
    let admin = "account1.x-duracloud-admin".parse().unwrap();
    let listed = world.bare[&main()].list(&admin, b"", None).try_collect::<Vec<_>>().await;
    let mut files = BTreeMap::new();
    for listed in listed.unwrap_or_default() {
        let item = Item::new(Clone::clone(&admin), listed.key);
        let content = world.bare[&main()].get(&item, None, None).await.unwrap();
        let chunks = content.chunks.try_collect::<Vec<_>>().await.unwrap();
        files.insert(item.key.to_string(), String::from_utf8(chunks.concat()).unwrap());
    }
    files
}

on_all! {
    async fn each_kind_of_difference_is_named_and_nothing_is_read(world: World) {
        let bit = Bit::new(&world, "read");
        write(&world).await;
        let (compared, found) = compare(&bit, false).await.unwrap();
        assert_eq!((compared.agreeing.items, compared.agreeing.bytes, compared.differing(), found.len()), (6, 42, 0, 0));
        // What agrees costs no request of its own.
        assert_eq!(bit.faults.calls(Operation::Head), 0);

        let [bare, recorded] = [&world.bare[&main()], &world.stores[&main()]];
        bare.delete(&item("a"), None).await.unwrap();
        world.put(&main(), false, &item("b\tc\\"), "another size", "text/plain").await;
        world.put(&main(), false, &item("d/e"), "changed", "text/plain").await;
        world.put(&main(), false, &item("foreign"), "content", "text/plain").await;
        recorded.delete(&item("z"), None).await.unwrap();
        world.put(&main(), false, &item("z"), "content", "text/plain").await;
        // It was deleted properly: neither is there.
        recorded.delete(&item("x<b>"), None).await.unwrap();
        let (compared, found) = compare(&bit, true).await.unwrap();
        assert!(["checksum", "entity_tag"].contains(&found["d/e"]), "{found:?}");
        let others: Vec<_> = found.iter().filter(|(key, _)| *key != "d/e").map(|(key, kind)| (&**key, *kind)).collect();
        let kinds: Vec<_> = others.iter().map(|(_, kind)| *kind).collect();
        assert_eq!(kinds, ["missing", "size", "not_recorded", "deleted"], "{others:?}");
        assert_eq!((compared.agreeing.items, compared.differing(), compared.changing), (1, 5, 0));
        assert_eq!(bit.faults.calls(Operation::Get), 0);

        // It is kept, the key of each line so that it is one.
        let kept = world.catalogue.comparisons_of("account1", &"theses".parse().unwrap()).await.unwrap().remove(0);
        assert_eq!((kept.store.clone(), kept.differing), (main(), 5));
        let result: Value = serde_json::from_str(&kept.result).unwrap();
        assert_eq!(result["differences"]["size"], json!({"items": 1, "bytes": 12}), "{result}");
        let files = kept_files(&world).await;
        let (_, key) = kept.place.split_once("x-duracloud-admin/").unwrap();
        let table: Vec<Vec<_>> = files[key].lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(table.len(), 6, "{table:?}");
        assert!(table.contains(&vec!["account1", "main", "theses", "b%09c%5C", "size", "12", "7"]), "{table:?}");
        assert!(table.contains(&vec!["account1", "main", "theses", "a", "missing", "", "7"]), "{table:?}");
        let document: Value = serde_json::from_str(&files[&key.replace(".tsv", ".json")]).unwrap();
        assert_eq!((&document["compared"], &document["table"]["key"]), (&result, &json!(key)), "{document}");

        // Another one, at the same moment or not, is kept beside it.
        let before = kept_files(&world).await.len();
        compare(&bit, true).await.unwrap();
        assert_eq!(kept_files(&world).await.len(), before + 2);
        let nowhere = Scope { space: Some("nowhere".parse().unwrap()), ..scope() };
        assert_eq!(bit.checker.compare(&nowhere, true, &mut |_said| {}).await.unwrap(), Compared::default());
        assert_eq!(kept_files(&world).await.len(), before + 2);

        // A check notes what it finds there as observed.
        let only = Scope { key: Some(item("foreign").key), ..scope() };
        bit.checker.verify(&only, &mut |_said| {}).await.unwrap();
        assert_eq!(compare(&bit, false).await.unwrap().1["foreign"], "observed");
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }

    async fn what_changes_between_listing_and_look_is_no_difference(world: World) {
        let bit = Bit::new(&world, "read");
        write(&world).await;
        bit.faults.add(Rule::new(Fault::StallAt(5)).on(Operation::List).times(1));
        let compared = tokio::spawn({
            let checker = bit.checker.clone();
            async move { checker.compare(&scope(), false, &mut |_said| {}).await.unwrap() }
        });
        bit.faults.until_stalled(1).await;
        world.put(&main(), true, &item("a"), "another content", "text/plain").await;
        world.stores[&main()].delete(&item("d/e"), None).await.unwrap();
        world.put(&main(), true, &item("aa"), "content", "text/plain").await;
        bit.faults.release();
        let compared = compared.await.unwrap();
        assert_eq!((compared.differing(), compared.changing), (0, 0), "{compared:?}");
        // The one that was written meanwhile is among them, or came behind the listing: its record says that it is
        // there.
        assert_eq!(compared.agreeing.items, 6);
        assert!(bit.faults.calls(Operation::Head) >= 3);
    }

    async fn a_listing_that_fails_midway_is_an_error_and_keeps_nothing(world: World) {
        let bit = Bit::new(&world, "read");
        write(&world).await;
        world.put(&main(), false, &item("b\tc\\"), "another size", "text/plain").await;
        bit.faults.add(Rule::new(Fault::BreakAt(3)).on(Operation::List));
        for keeps in [false, true] {
            let why = compare(&bit, keeps).await.unwrap_err();
            assert!(!why.is_empty());
        }
        assert_eq!(kept_files(&world).await, BTreeMap::new());
        assert_eq!(world.catalogue.comparisons("account1", "", 10).await.unwrap(), []);
        bit.faults.clear();
        // A table that cannot be written is named as the cause.
        bit.faults.add(Rule::new(Fault::Permanent).on(Operation::Put));
        let why = compare(&bit, true).await.unwrap_err();
        assert!(why.contains("comparisons/"), "{why}");
        assert_eq!(world.catalogue.comparisons("account1", "", 10).await.unwrap(), []);
        bit.faults.clear();
        // A space that is gone as a whole is one in which everything is missing.
        for listed in world.bare[&main()].list(&space(), b"", None).try_collect::<Vec<_>>().await.unwrap() {
            world.bare[&main()].delete(&Item::new(space(), listed.key), None).await.unwrap();
        }
        let (compared, found) = compare(&bit, false).await.unwrap();
        assert_eq!((compared.agreeing.items, compared.differing(), found["d/e"]), (0, 6, "missing"));
    }
}
