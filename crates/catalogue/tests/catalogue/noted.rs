//! Changes that are recorded together.

use queuekeeper_catalogue::audit::{EventKind, Events};
use queuekeeper_store::audit::{AuditSink as _, Change};
use queuekeeper_store::noted::NotedChange;
use queuekeeper_store::store::{EntityTag, Item, Written};
use queuekeeper_store::{Key, StoreName};

use super::support::{LEASE, digests, done, etag, intent, on_both};

fn item(key: &str) -> Item {
    Item::new("space-a".parse().unwrap(), key.parse().unwrap())
}

fn made(key: &str, change: Change, seen: Option<EntityTag>, number: Option<u8>) -> NotedChange {
    let after = number.map(|number| Written { size: number.into(), etag: etag(number), digests: digests(number) });
    NotedChange { space: item(key).space, key: Some(item(key).key), change, seen, after }
}

on_both! {
    async fn changes_are_recorded_together_in_their_order_and_once(world: World) {
        let (catalogue, main) = (&world.catalogue, "main".parse::<StoreName>().unwrap());
        let space = NotedChange { key: None, ..made("x", Change::CreateSpace, None, None) };
        let changes = [
            space.clone(),
            made("b", Change::Add, None, Some(1)),
            made("a", Change::Add, None, Some(2)),
            made("b", Change::Update, Some(etag(1)), Some(3)),
            made("c", Change::Add, None, Some(4)),
            made("c", Change::Delete, Some(etag(4)), None),
        ];
        assert_eq!(catalogue.record_changes(&main, "ingest", &changes).await.unwrap(), [].into());
        let events = catalogue.events_after(0, 100).await.unwrap();
        let seen: Vec<_> = events.iter().map(|event| (event.subject.key.clone(), event.kind)).collect();
        let expected: Vec<_> = changes.iter().map(|one| (one.key.clone(), EventKind::Made(one.change))).collect();
        assert_eq!(seen, expected);
        assert!(events.iter().all(|event| event.user == "ingest"));
        let b = catalogue.copy(&main, &item("b")).await.unwrap().unwrap();
        assert_eq!((b.etag, b.size, b.digests, b.seq, b.is_deleted), (Some(etag(3)), 3, digests(3), 4, false));
        let c = catalogue.copy(&main, &item("c")).await.unwrap().unwrap();
        assert_eq!((c.size, c.seq, c.is_deleted), (4, 6, true));
        // The answer was lost. Of the first state of an item, nothing is written over the second one.
        let again = catalogue.record_changes(&main, "ingest", &changes[1..]).await.unwrap();
        assert_eq!(again, [item("b")].into());
        let events = catalogue.events(&Events::Item(main.clone(), item("a")), None, 100).await.unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(catalogue.check().await.unwrap(), []);
        catalogue.fold().await.unwrap();
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn what_was_made_to_something_else_is_not_recorded(world: World) {
        let (catalogue, main) = (&world.catalogue, "main".parse::<StoreName>().unwrap());
        let other = intent(b"a");
        catalogue.begin(&other, LEASE).await.unwrap();
        catalogue.settle(&other, &done(Change::Add, 7)).await.unwrap();
        let changes = [
            made("a", Change::Update, Some(etag(6)), Some(8)),
            made("new", Change::Update, Some(etag(6)), Some(8)),
            made("b", Change::Add, None, Some(1)),
        ];
        let stale = catalogue.record_changes(&main, "ingest", &changes).await.unwrap();
        assert_eq!(stale, [item("a"), item("new")].into());
        let a = catalogue.copy(&main, &Item::new(item("a").space, Key::new(*b"a").unwrap())).await.unwrap().unwrap();
        assert_eq!((a.etag, a.seq), (Some(etag(7)), 1));
        assert_eq!(catalogue.copy(&main, &item("b")).await.unwrap().unwrap().seq, 2);
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn more_changes_than_one_statement_holds_are_recorded_at_once(world: World) {
        let (catalogue, main) = (&world.catalogue, "main".parse::<StoreName>().unwrap());
        let changes: Vec<_> = (0..250).map(|at| made(&format!("k{at:03}"), Change::Add, None, Some(1))).collect();
        assert_eq!(catalogue.record_changes(&main, "ingest", &changes).await.unwrap(), [].into());
        assert_eq!(catalogue.events_after(0, 1000).await.unwrap().len(), 250);
        assert_eq!(catalogue.items(&item("k").space, None, 1000).await.unwrap().len(), 250);
        assert_eq!(catalogue.check().await.unwrap(), []);
    }
}
