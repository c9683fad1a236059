//! The brake, and what is kept aside of what it allows.

use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::asides::{AsideEnd, NewAside};
use queuekeeper_catalogue::brake::{BrakeAnswer, BrakeLimit, Braked};
use queuekeeper_store::Item;
use queuekeeper_store::audit::{AuditSink as _, Change};

use super::support::{LEASE, done, intent, on_both};

const LIMIT: BrakeLimit = BrakeLimit { items: 3, percent: 50 };

const DAY: Duration = Duration::from_hours(24);

/// Asks for an effect on an item of a space, whose content is to be kept under a key.
async fn ask(
    catalogue: &Catalogue,
    (account, store, space): (&str, &str, &str),
    kept_as: &str,
    limit: Option<BrakeLimit>,
) -> Option<BrakeAnswer> {
    let (store, space) = (store.parse().unwrap(), space.parse().unwrap());
    let item = Item::new(space, "a/b".parse().unwrap());
    let of = Braked { account, store: &store, space: &item.space };
    let aside = NewAside { item: &item, kept_as, reason: "delete", keep: DAY * 30 };
    catalogue.put_aside(&of, &aside, limit).await.unwrap()
}

const A: (&str, &str, &str) = ("account", "main", "space-a");

fn allowed(number: u64, limit: u64) -> BrakeAnswer {
    BrakeAnswer { is_allowed: true, number, limit }
}

fn refused(number: u64, limit: u64) -> BrakeAnswer {
    BrakeAnswer { is_allowed: false, number, limit }
}

on_both! {
    async fn no_more_is_allowed_in_a_day_than_the_limit_however_many_ask_at_once(world: World) {
        let catalogue = &world.catalogue;
        let mut workers = tokio::task::JoinSet::new();
        for number in 0..10 {
            let catalogue = catalogue.clone();
            workers.spawn(async move { ask(&catalogue, A, &format!("first-{number}"), Some(LIMIT)).await.unwrap() });
        }
        let answers = workers.join_all().await;
        assert_eq!(answers.iter().filter(|answer| answer.is_allowed).count(), 3);
        assert!(answers.iter().all(|answer| answer.limit == 3 && answer.number <= 3), "{answers:?}");
        // What is refused is not recorded.
        assert_eq!(world.look("SELECT CAST(COUNT(*) AS TEXT) FROM asides").await, ["3"]);
        // Other accounts, stores and spaces have their own.
        for of in [("other", "main", "space-a"), ("account", "replica", "space-a"), ("account", "main", "space-b")] {
            assert_eq!(ask(catalogue, of, &format!("{of:?}"), Some(LIMIT)).await, Some(allowed(1, 3)));
        }
        // With what a space has, the limit grows: half of eight items.
        for number in 0..8 {
            let intent = intent(format!("key-{number}").as_bytes());
            catalogue.begin(&intent, LEASE).await.unwrap();
            catalogue.settle(&intent, &done(Change::Add, number)).await.unwrap();
        }
        assert_eq!(ask(catalogue, A, "fourth", Some(LIMIT)).await, Some(allowed(4, 4)));
        assert_eq!(ask(catalogue, A, "fifth", Some(LIMIT)).await, Some(refused(4, 4)));
        while catalogue.fold().await.unwrap() > 0 {}
        assert_eq!(ask(catalogue, A, "fifth", Some(LIMIT)).await, Some(refused(4, 4)));
        // What an operator allows counts.
        assert_eq!(ask(catalogue, A, "fifth", None).await, Some(allowed(5, u64::MAX)));
        assert_eq!(ask(catalogue, A, "sixth", Some(LIMIT)).await, Some(refused(5, 4)));
        // A day later, it is forgotten. A minute may have passed since the first ones were counted.
        world.tamper("UPDATE effects SET minute = minute - 1438").await;
        assert_eq!(ask(catalogue, A, "sixth", Some(LIMIT)).await, Some(refused(5, 4)));
        world.tamper("UPDATE effects SET minute = minute - 2").await;
        assert_eq!(ask(catalogue, A, "sixth", Some(LIMIT)).await, Some(allowed(1, 4)));
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn what_is_asked_again_within_a_day_is_allowed_and_neither_counted_nor_kept_twice(world: World) {
        let catalogue = &world.catalogue;
        let (store, item) = ("main".parse().unwrap(), Item::new("space-a".parse().unwrap(), "a/b".parse().unwrap()));
        let limit = Some(BrakeLimit { items: 1, percent: 0 });
        assert_eq!(ask(catalogue, A, "once", limit).await, Some(allowed(1, 1)));
        let first = catalogue.asides(&store, &item, None, 10).await.unwrap();
        assert_eq!((first.len(), first[0].until.duration_since(first[0].time).as_hours()), (1, 30 * 24));
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..5 {
            let catalogue = catalogue.clone();
            workers.spawn(async move { ask(&catalogue, A, "once", Some(BrakeLimit { items: 1, percent: 0 })).await });
        }
        assert!(workers.join_all().await.iter().all(|answer| *answer == Some(allowed(1, 1))));
        assert_eq!(catalogue.asides(&store, &item, None, 10).await.unwrap(), first);
        assert_eq!(ask(catalogue, A, "another", limit).await, Some(refused(1, 1)));

        // A day later the brake has forgotten it: then it counts, and is kept from then on.
        world.tamper("UPDATE asides SET time = time - 86400000, kept_until = kept_until - 86400000").await;
        assert_eq!(ask(catalogue, A, "once", limit).await, Some(refused(1, 1)));
        world.tamper("UPDATE effects SET minute = minute - 1440").await;
        assert_eq!(ask(catalogue, A, "once", limit).await, Some(allowed(1, 1)));
        let again = catalogue.asides(&store, &item, None, 10).await.unwrap();
        assert!(again.len() == 1 && again[0].id == first[0].id && again[0].until >= first[0].until, "{again:?}");
    }

    async fn nothing_is_removed_before_its_time_and_nothing_is_kept_under_a_key_that_is_being_removed(world: World) {
        let catalogue = &world.catalogue;
        let (store, item) = ("main".parse().unwrap(), Item::new("space-a".parse().unwrap(), "a/b".parse().unwrap()));
        for key in ["1", "2"] {
            assert!(ask(catalogue, A, key, None).await.unwrap().is_allowed);
        }
        let [second, first] = &catalogue.asides(&store, &item, None, 10).await.unwrap()[..] else { panic!() };
        assert_eq!(catalogue.overdue_asides(None).await.unwrap(), []);
        assert!(!catalogue.leave_aside(first.id).await.unwrap());
        world.tamper("UPDATE asides SET kept_until = 1000 * id").await;
        let overdue = catalogue.overdue_asides(None).await.unwrap();
        assert_eq!(overdue.iter().map(|aside| aside.kept_as.as_str()).collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(catalogue.overdue_asides(Some(&overdue[0])).await.unwrap().len(), 1);
        assert_eq!(catalogue.aside_keys(&store, "0", "1").await.unwrap(), ["1"]);
        // Only who began to remove it ends it, and another process may go on with that.
        catalogue.end_aside(first.id, AsideEnd::Removed).await.unwrap();
        assert_eq!(catalogue.overdue_asides(None).await.unwrap().len(), 2);
        for _ in 0..2 {
            assert!(catalogue.leave_aside(first.id).await.unwrap());
        }
        assert_eq!(ask(catalogue, A, "1", None).await, None);
        catalogue.end_aside(first.id, AsideEnd::Removed).await.unwrap();
        assert!(!catalogue.leave_aside(first.id).await.unwrap());
        assert_eq!(catalogue.overdue_asides(None).await.unwrap().len(), 1);
        assert_eq!(catalogue.aside_keys(&store, "0", "3").await.unwrap(), ["2"]);
        let ended = catalogue.asides(&store, &item, Some(second.id), 10).await.unwrap().remove(0);
        assert_eq!(ended.ended.map(|(_, end)| end), Some(AsideEnd::Removed));
        // From then on it is kept as if it had never been.
        assert_eq!(ask(catalogue, A, "1", None).await, Some(allowed(3, u64::MAX)));
        assert_eq!(catalogue.asides(&store, &item, Some(second.id), 10).await.unwrap()[0].ended, None);
    }
}
