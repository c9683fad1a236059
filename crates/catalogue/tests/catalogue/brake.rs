//! The brake.

use queuekeeper_catalogue::brake::{BrakeAnswer, BrakeLimit, Braked};
use queuekeeper_store::audit::{AuditSink as _, Change};

use super::support::{LEASE, done, intent, on_both};

const LIMIT: BrakeLimit = BrakeLimit { items: 3, percent: 50 };

on_both! {
    async fn no_more_is_allowed_in_a_day_than_the_limit_however_many_ask_at_once(world: World) {
        let (store, space) = ("main".parse().unwrap(), "space-a".parse().unwrap());
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let (catalogue, store, space) = (world.catalogue.clone(), "main".parse().unwrap(), "space-a".parse().unwrap());
            workers.spawn(async move {
                catalogue.brake(&Braked { account: "account", store: &store, space: &space }, LIMIT).await.unwrap()
            });
        }
        let answers = workers.join_all().await;
        assert_eq!(answers.iter().filter(|answer| answer.is_allowed).count(), 3);
        assert!(answers.iter().all(|answer| answer.limit == 3 && answer.number <= 3), "{answers:?}");
        // Other accounts, stores and spaces have their own.
        for (account, store, space) in [("other", "main", "space-a"), ("account", "replica", "space-a"), ("account", "main", "space-b")] {
            let (store, space) = (store.parse().unwrap(), space.parse().unwrap());
            let answer = world.catalogue.brake(&Braked { account, store: &store, space: &space }, LIMIT).await.unwrap();
            assert_eq!(answer, BrakeAnswer { is_allowed: true, number: 1, limit: 3 });
        }
        // With what a space has, the limit grows: half of eight items.
        for number in 0..8 {
            let intent = intent(format!("key-{number}").as_bytes());
            world.catalogue.begin(&intent, LEASE).await.unwrap();
            world.catalogue.settle(&intent, &done(Change::Add, number)).await.unwrap();
        }
        let of = Braked { account: "account", store: &store, space: &space };
        assert_eq!(world.catalogue.brake(&of, LIMIT).await.unwrap(), BrakeAnswer { is_allowed: true, number: 4, limit: 4 });
        let refused = BrakeAnswer { is_allowed: false, number: 4, limit: 4 };
        assert_eq!(world.catalogue.brake(&of, LIMIT).await.unwrap(), refused);
        while world.catalogue.fold().await.unwrap() > 0 {}
        assert_eq!(world.catalogue.brake(&of, LIMIT).await.unwrap(), refused);
        // What a person allows counts.
        world.catalogue.count_effect(&of).await.unwrap();
        assert_eq!(world.catalogue.brake(&of, LIMIT).await.unwrap(), BrakeAnswer { number: 5, ..refused });
        // A day later, it is forgotten.
        world.tamper("UPDATE effects SET minute = minute - 1439").await;
        assert!(!world.catalogue.brake(&of, LIMIT).await.unwrap().is_allowed);
        world.tamper("UPDATE effects SET minute = minute - 1").await;
        assert_eq!(world.catalogue.brake(&of, LIMIT).await.unwrap(), BrakeAnswer { is_allowed: true, number: 1, limit: 4 });
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }
}
