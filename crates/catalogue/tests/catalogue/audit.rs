//! Intents, and the events that they lead to.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::audit::{EventKind, Events};
use queuekeeper_store::audit::{AuditSink as _, Begun, Change, Intent, Settlement, SinkError};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Digests, Key};
use uuid::Uuid;

use super::support::{LEASE, digests, done, etag, intent, on_both, subject};

/// A lease that has ended when the next statement runs.
const NO_LEASE: Duration = Duration::ZERO;

/// All that an intent can hold.
fn full(key: &[u8]) -> Intent {
    Intent {
        seen: Some(etag(1)),
        size: Some(u64::from(u32::MAX) + 1),
        digests: digests(2),
        source: Some(("space-b".parse().unwrap(), Key::new(*b"\xff\x00 source").unwrap())),
        upload: Some("upload \u{1f600}".to_owned()),
        properties: Some(r#"{"content_type":"text/plain"}"#.to_owned()),
        ..intent(key)
    }
}

on_both! {
    async fn an_item_has_one_open_intent_and_a_repeated_call_finds_its_own(world: World) {
        let (catalogue, first, second) = (&world.catalogue, intent(b"a"), intent(b"a"));
        assert_eq!(catalogue.begin(&first, LEASE).await, Ok(Begun::Ours));
        assert_eq!(catalogue.begin(&first, LEASE).await, Ok(Begun::Ours));
        let Ok(Begun::Busy(rival)) = catalogue.begin(&second, LEASE).await else { panic!("not busy") };
        assert!(rival.left <= LEASE && rival.left > LEASE / 2, "{rival:?}");
        let age = rival.since.map(|since| Timestamp::now().duration_since(since).as_secs());
        assert!(age.is_some_and(|age| age < 60), "{rival:?}");
        assert_eq!((rival.user.as_str(), rival.change), ("ada", Change::Add));
        // Other items are free, also the space itself and the same key elsewhere.
        for free in [
            intent(b"b"),
            intent(b""),
            Intent { subject: subject("main", "space-b", b"a"), ..intent(b"") },
            Intent { subject: subject("replica", "space-a", b"a"), ..intent(b"") },
        ] {
            assert_eq!(catalogue.begin(&free, LEASE).await, Ok(Begun::Ours), "{:?}", free.subject);
        }
        catalogue.settle(&first, &done(Change::Add, 1)).await.unwrap();
        assert_eq!(catalogue.begin(&second, LEASE).await, Ok(Begun::Ours));
    }

    async fn an_intent_whose_lease_has_ended_is_taken_over_with_all_it_holds(world: World) {
        let (catalogue, dead, late) = (&world.catalogue, full(b"\x00\xff"), intent(b"\x00\xff"));
        catalogue.begin(&dead, NO_LEASE).await.unwrap();
        let Ok(Begun::Left(left)) = catalogue.begin(&late, LEASE).await else { panic!("not left") };
        assert_ne!(left.holder, dead.holder);
        assert_eq!(*left, Intent { holder: left.holder, ..dead.clone() });
        // It is the taker's now, and the new one was not written.
        assert_eq!(catalogue.extend(&dead, LEASE).await, Err(SinkError::Lost));
        assert_eq!(catalogue.settle(&dead, &done(Change::Add, 1)).await, Err(SinkError::Lost));
        assert!(matches!(catalogue.begin(&late, LEASE).await, Ok(Begun::Busy(_))));
        catalogue.settle(&left, &Settlement::NotDone).await.unwrap();
        assert_eq!(catalogue.begin(&late, LEASE).await, Ok(Begun::Ours));
        assert_eq!(catalogue.events(&Events::All, None, 10).await.unwrap(), []);
    }

    async fn left_intents_of_a_store_are_taken_one_by_one_and_living_ones_are_not(world: World) {
        let catalogue = &world.catalogue;
        let elsewhere = Intent { subject: subject("replica", "space-a", b"a"), ..intent(b"") };
        catalogue.begin(&elsewhere, NO_LEASE).await.unwrap();
        catalogue.begin(&intent(b"living"), LEASE).await.unwrap();
        let dead = [full(b"a"), full(b"b")];
        for each in &dead {
            catalogue.begin(each, NO_LEASE).await.unwrap();
        }
        let main = "main".parse().unwrap();
        let mut taken = Vec::new();
        while let Some(left) = catalogue.take_left(&main, LEASE).await.unwrap() {
            taken.push(left);
        }
        taken.sort_by_key(|intent| intent.id);
        assert_eq!(taken.len(), 2);
        for (left, dead) in taken.iter().zip(&dead) {
            assert_ne!(left.holder, dead.holder);
            assert_eq!(*left, Intent { holder: left.holder, ..dead.clone() });
            assert_eq!(catalogue.extend(dead, LEASE).await, Err(SinkError::Lost));
        }
    }

    async fn extending_keeps_an_intent_and_writes_down_what_became_known(world: World) {
        let (catalogue, dead) = (&world.catalogue, intent(b"a"));
        catalogue.begin(&dead, NO_LEASE).await.unwrap();
        let known = Intent { upload: Some("upload".to_owned()), size: Some(7), digests: digests(7), ..dead };
        catalogue.extend(&known, LEASE).await.unwrap();
        assert!(matches!(catalogue.begin(&intent(b"a"), LEASE).await, Ok(Begun::Busy(_))));
        catalogue.extend(&known, NO_LEASE).await.unwrap();
        let left = catalogue.take_left(&known.subject.store, LEASE).await.unwrap().unwrap();
        assert_eq!(left, Intent { holder: left.holder, ..known });
    }

    async fn settling_again_in_the_same_way_succeeds_and_appends_nothing(world: World) {
        let catalogue = &world.catalogue;
        let observed = Settlement::Observed { etag: None, size: None, digests: Digests::default(), why: "gone".to_owned() };
        for settlement in [done(Change::Add, 1), observed, Settlement::NotDone] {
            let intent = intent(b"a");
            catalogue.begin(&intent, LEASE).await.unwrap();
            catalogue.settle(&intent, &settlement).await.unwrap();
            let before = catalogue.events(&Events::All, None, 10).await.unwrap();
            catalogue.settle(&intent, &settlement).await.unwrap();
            // The process that took it over found the same.
            catalogue.settle(&Intent { holder: Uuid::now_v7(), ..intent.clone() }, &settlement).await.unwrap();
            assert_eq!(catalogue.events(&Events::All, None, 10).await.unwrap(), before);
            for other in [done(Change::Update, 1), done(Change::Add, 9)] {
                assert_eq!(catalogue.settle(&intent, &other).await, Err(SinkError::Lost), "{settlement:?} {other:?}");
            }
        }
        let unknown = intent(b"a");
        assert_eq!(catalogue.settle(&unknown, &Settlement::NotDone).await, Err(SinkError::Lost));
        assert_eq!(world.number("SELECT COUNT(*) FROM audit_log").await, 2);
    }

    async fn a_deletion_of_what_another_one_has_deleted_before_appends_nothing(world: World) {
        let catalogue = &world.catalogue;
        let deletion = |seen| Intent { change: Change::Delete, seen: Some(etag(seen)), ..intent(b"a") };
        let deleted = Settlement::Done { change: Change::Delete, etag: None, size: None, digests: Digests::default() };
        let events = async || catalogue.events(&Events::All, None, 10).await.unwrap().len();
        let add = async |number| {
            let add = intent(b"a");
            catalogue.begin(&add, LEASE).await.unwrap();
            catalogue.settle(&add, &done(Change::Add, number)).await.unwrap();
        };
        add(1).await;
        // The second looked before the first began, and began after it was recorded.
        let ([first, second], other) = ([deletion(1), deletion(1)], deletion(9));
        for (deletion, recorded) in [(&first, 2), (&second, 2), (&other, 3)] {
            assert_eq!(catalogue.begin(deletion, LEASE).await, Ok(Begun::Ours));
            for _again in 0..2 {
                catalogue.settle(deletion, &deleted).await.unwrap();
            }
            assert_eq!(events().await, recorded, "{deletion:?}");
        }
        assert_eq!(catalogue.settle(&second, &Settlement::NotDone).await, Ok(()));
        assert_eq!(catalogue.settle(&first, &Settlement::NotDone).await, Err(SinkError::Lost));

        // What comes late after it was settled otherwise is not taken for recorded.
        add(2).await;
        let late = deletion(2);
        catalogue.begin(&late, LEASE).await.unwrap();
        catalogue.settle(&late, &Settlement::NotDone).await.unwrap();
        assert_eq!(catalogue.settle(&late, &deleted).await, Err(SinkError::Lost));
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }

    async fn properties_that_another_one_has_recorded_before_append_nothing(world: World) {
        let catalogue = &world.catalogue;
        let add = intent(b"a");
        catalogue.begin(&add, LEASE).await.unwrap();
        catalogue.settle(&add, &done(Change::Add, 1)).await.unwrap();
        let text = |text: &str| Some(format!(r#"{{"content_type":"text/{text}"}}"#));
        for (properties, recorded) in [("plain", 2), ("plain", 2), ("html", 3), ("plain", 4)] {
            let (seen, properties) = (Some(etag(1)), text(properties));
            let set = Intent { change: Change::Properties, seen, properties, ..intent(b"a") };
            assert_eq!(catalogue.begin(&set, LEASE).await, Ok(Begun::Ours));
            for _again in 0..2 {
                catalogue.settle(&set, &done(Change::Properties, 1)).await.unwrap();
            }
            assert_eq!(catalogue.events(&Events::All, None, 10).await.unwrap().len(), recorded);
        }
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }

    async fn an_event_says_all_that_is_known_and_each_has_the_hash_of_the_one_before(world: World) {
        let catalogue = &world.catalogue;
        let intents = [full(b"a"), intent(b"b"), intent(b"")];
        let settlements = [
            done(Change::Copy, 1),
            Settlement::Observed { etag: Some(etag(3)), size: Some(3), digests: digests(3), why: "changed".to_owned() },
            Settlement::Done { change: Change::CreateSpace, etag: None, size: None, digests: Digests::default() },
        ];
        for (intent, settlement) in intents.iter().zip(&settlements) {
            catalogue.begin(intent, LEASE).await.unwrap();
            catalogue.settle(intent, settlement).await.unwrap();
        }
        let events = catalogue.events_after(0, 10).await.unwrap();
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(events[0].previous_hash, [0; 32]);
        for pair in events.windows(2) {
            assert_eq!(pair[1].previous_hash, pair[0].hash());
            assert!(pair[1].time >= pair[0].time);
        }
        for (event, intent) in events.iter().zip(&intents) {
            assert_eq!((&event.user, &event.subject), (&intent.user, &intent.subject));
            assert_eq!((event.intent, &event.source), (intent.id, &intent.source));
            assert_eq!(event.properties, intent.properties);
        }
        let kinds = events.iter().map(|event| event.kind).collect::<Vec<_>>();
        assert_eq!(
            kinds,
            [EventKind::Made(Change::Copy), EventKind::Observed, EventKind::Made(Change::CreateSpace)]
        );
        assert_eq!((events[1].why.as_deref(), &events[1].digests), (Some("changed"), &digests(3)));
        assert_eq!((events[0].size, &events[0].etag), (Some(1), &Some(etag(1))));
    }

    async fn lists_go_on_before_a_number_and_hold_what_was_asked_for(world: World) {
        let catalogue = &world.catalogue;
        for number in 1..=6u8 {
            let store = if number % 2 == 0 { "main" } else { "replica" };
            let space = if number % 3 == 0 { "space-a" } else { "space-b" };
            let change = Intent {
                user: format!("user-{}", number % 2),
                subject: subject(store, space, b"a"),
                ..intent(b"")
            };
            catalogue.begin(&change, LEASE).await.unwrap();
            let settlement = match number {
                5 => Settlement::Observed { etag: None, size: None, digests: Digests::default(), why: "gone".to_owned() },
                _ => done(Change::Add, number),
            };
            catalogue.settle(&change, &settlement).await.unwrap();
        }
        let (main, space) = ("main".parse().unwrap(), "space-b".parse().unwrap());
        let item = Item::new("space-a".parse().unwrap(), Key::new(*b"a").unwrap());
        for (which, before, limit, expected) in [
            (Events::All, None, 3, vec![6, 5, 4]),
            (Events::All, Some(4), 10, vec![3, 2, 1]),
            (Events::Store("main".parse().unwrap()), None, 10, vec![6, 4, 2]),
            (Events::Space(main, space), None, 10, vec![4, 2]),
            (Events::Item("replica".parse().unwrap(), item), None, 10, vec![3]),
            (Events::User("user-1".to_owned()), Some(5), 1, vec![3]),
            (Events::Observed, None, 10, vec![5]),
        ] {
            let events = catalogue.events(&which, before, limit).await.unwrap();
            assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), expected, "{which:?}");
        }
    }

    async fn of_many_that_begin_at_once_one_has_the_item_and_numbers_have_no_gap(world: World) {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let catalogue = world.catalogue.clone();
            tasks.spawn(async move {
                for round in 0..3u8 {
                    let change = intent(b"contended");
                    while catalogue.begin(&change, LEASE).await.unwrap() != Begun::Ours {
                        tokio::task::yield_now().await;
                    }
                    catalogue.settle(&change, &done(Change::Add, round)).await.unwrap();
                }
            });
        }
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
        let events = world.catalogue.events_after(0, 100).await.unwrap();
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), (1..=60).collect::<Vec<u64>>());
        assert!(events.windows(2).all(|pair| pair[1].previous_hash == pair[0].hash()));
        assert_eq!(world.number("SELECT COUNT(*) FROM items").await, 1);
    }
}
