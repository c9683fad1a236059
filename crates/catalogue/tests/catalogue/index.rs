//! What the content index says after changes.

use queuekeeper_catalogue::Catalogue;
use queuekeeper_store::audit::{AuditSink as _, Change, Intent, Settlement};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Digests, Key};

use super::support::{LEASE, digests, done, etag, intent, on_both, subject};

async fn change(catalogue: &Catalogue, store: &str, key: &[u8], settlement: &Settlement) {
    let properties = Some(r#"{"content_type":"text/plain"}"#.to_owned());
    let intent = Intent { subject: subject(store, "space-a", key), properties, ..intent(key) };
    catalogue.begin(&intent, LEASE).await.unwrap();
    catalogue.settle(&intent, settlement).await.unwrap();
}

on_both! {
    async fn items_are_listed_by_pages_in_byte_order_with_all_their_copies(world: World) {
        let catalogue = &world.catalogue;
        let keys: [&[u8]; 6] = [b"\x00", b"a-b", b"a.b", b"a/b", b"\xc3\xa9", b"\xff\xff"];
        for at in [4, 2, 0, 5, 1, 3] {
            change(catalogue, "replica", keys[at], &done(Change::Add, 9)).await;
            change(catalogue, "main", keys[at], &done(Change::Add, 9)).await;
        }
        let space = "space-a".parse().unwrap();
        let (mut listed, mut after) = (Vec::new(), None::<Key>);
        loop {
            let page = catalogue.items(&space, after.as_ref(), 4).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            listed.extend(page);
        }
        assert_eq!(listed.iter().map(|item| item.key.as_bytes()).collect::<Vec<_>>(), keys);
        for item in &listed {
            let stores = item.copies.iter().map(|copy| copy.store.as_str()).collect::<Vec<_>>();
            assert_eq!(stores, ["main", "replica"]);
            let copy = &item.copies[0];
            assert_eq!((copy.size, &copy.digests, &copy.etag), (9, &digests(9), &Some(etag(9))));
            assert!(!copy.is_deleted && copy.proven.is_none());
        }
        for (prefix, expected) in [(&b""[..], &keys[..]), (b"a", &keys[1..4]), (b"a-", &keys[1..2]), (b"a/b", &keys[3..4]), (b"\xff", &keys[5..]), (b"b", &[])] {
            let found = catalogue.items_with_prefix(&space, prefix, None, 9).await.unwrap();
            assert_eq!(found.iter().map(|item| item.key.as_bytes()).collect::<Vec<_>>(), expected);
        }
        let some: Vec<_> = [b"\xff\xff".as_slice(), b"never", b"a-b"].map(|key| Key::new(key).unwrap()).into();
        let [one, other] = [1, 5].map(|at| listed[at].clone());
        assert_eq!(catalogue.items_of(&space, &some).await.unwrap(), [one, other]);
        assert_eq!(catalogue.items_of(&"space-b".parse().unwrap(), &some).await.unwrap(), []);
        assert_eq!(catalogue.items_of(&space, &[]).await.unwrap(), []);
        let after = Key::new(b"a-b".as_slice()).unwrap();
        assert_eq!(catalogue.items_with_prefix(&space, b"a", Some(&after), 1).await.unwrap()[0].key.as_bytes(), keys[2]);
        assert_eq!(catalogue.items(&"space-b".parse().unwrap(), None, 9).await.unwrap(), []);
    }

    async fn each_change_leaves_what_the_item_is_after_it(world: World) {
        let catalogue = &world.catalogue;
        let observed =
            Settlement::Observed { etag: Some(etag(8)), size: Some(8), digests: digests(8), why: "changed".to_owned() };
        let properties = Settlement::Done {
            change: Change::Properties, etag: Some(etag(3)), size: None, digests: Digests::default(),
        };
        let deleted = Settlement::Done { change: Change::Delete, etag: None, size: None, digests: Digests::default() };
        // Nothing is known of this one before, and its properties alone do not tell what it is.
        change(catalogue, "main", b"unknown", &properties).await;
        for (settlement, number, tag, is_deleted, has_properties) in [
            (done(Change::Add, 1), 1, Some(etag(1)), false, false),
            (properties, 1, Some(etag(3)), false, true),
            (observed, 1, Some(etag(3)), false, true),
            (done(Change::Update, 2), 2, Some(etag(2)), false, false),
            (deleted, 2, None, true, false),
            (done(Change::Copy, 4), 4, Some(etag(4)), false, false),
        ] {
            change(catalogue, "main", b"a", &settlement).await;
            let item = catalogue.items(&"space-a".parse().unwrap(), None, 1).await.unwrap().remove(0);
            let copy = &item.copies[0];
            assert_eq!((copy.size, &copy.digests), (u64::from(number), &digests(number)), "{settlement:?}");
            assert_eq!((&copy.etag, copy.is_deleted), (&tag, is_deleted), "{settlement:?}");
            assert_eq!(copy.properties.is_some(), has_properties, "{settlement:?}");
            let at = Item::new("space-a".parse().unwrap(), item.key.clone());
            assert_eq!(catalogue.copy(&copy.store, &at).await.unwrap().as_ref(), Some(copy));
            assert_eq!(catalogue.copy(&"replica".parse().unwrap(), &at).await.unwrap(), None);
        }
        let unknown = catalogue.items(&"space-a".parse().unwrap(), Some(&Key::new(*b"a").unwrap()), 9).await.unwrap();
        assert_eq!((unknown.len(), unknown[0].copies.len()), (1, 0));
        assert_eq!(catalogue.check().await.unwrap(), []);
    }
}
