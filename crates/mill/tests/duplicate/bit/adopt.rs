//! What a store has and no record knows of is taken into the record, and nothing else is.

use queuekeeper_catalogue::audit::Events;
use queuekeeper_catalogue::tasks::TaskOutcome;
use queuekeeper_mill::bit::adopt::{AdoptSaid, Adopted};
use queuekeeper_mill::bit::verify::Scope;
use queuekeeper_mill::limits::StoreLimits;
use queuekeeper_store::error::Operation;
use queuekeeper_testkit::faulty::{Fault, Rule};

use super::world::Bit;
use crate::duplicate::world::{item, main, on_all, replica};

fn scope() -> Scope {
    let space = Some("theses".parse().unwrap());
    Scope { account: "account1".to_owned(), store: main(), space, key: None }
}

/// Adopts the space, or only counts what is to be adopted: what it came to, and what was left.
async fn adopt(bit: &Bit, user: Option<&str>) -> (Adopted, Vec<String>) {
    let mut left = Vec::new();
    let mut say = |said: AdoptSaid| {
        if let AdoptSaid::Left(key, why) = said {
            left.push(format!("{key}: {why}"));
        }
    };
    let adopted = bit.checker.adopt(&scope(), user, &mut say).await.unwrap();
    (adopted, left)
}

on_all! {
    async fn what_another_copy_is_recorded_as_something_else_of_is_left_to_an_operator(world: World) {
        let limits = StoreLimits { proof: "read".parse().unwrap(), ..StoreLimits::default() };
        let bit = Bit::with_limits(&world, &limits, Some(&replica()));
        for key in ["same", "size", "bytes"] {
            world.put(&main(), true, &item(key), "the content", "text/plain").await;
            assert_eq!(world.duplicate(Some(key)).await.outcome, TaskOutcome::Done);
            for table in ["copies", "audit_head"] {
                world.change_record(table, key, None).await;
            }
        }
        world.put(&main(), false, &item("size"), "longer content", "text/plain").await;
        world.put(&main(), false, &item("bytes"), "damaged one", "text/plain").await;
        // What is counted is not read.
        let (plan, _) = adopt(&bit, None).await;
        assert_eq!((plan.items, plan.left), (2, 1));
        let (adopted, left) = adopt(&bit, Some("ada")).await;
        assert_eq!((adopted.items, adopted.left), (1, 2), "{left:?}");
        assert!(left.iter().all(|line| line.contains("in replica is recorded with other content")), "{left:?}");
        assert!(world.catalogue.copy(&main(), &item("bytes")).await.unwrap().is_none());
    }

    async fn only_what_has_no_record_is_adopted_and_a_second_adoption_goes_on(world: World) {
        let bit = Bit::new(&world, "read");
        for key in ["deleted", "other", "recorded"] {
            world.put(&main(), true, &item(key), "content", "text/plain").await;
        }
        world.stores[&main()].delete(&item("deleted"), None).await.unwrap();
        for key in ["a", "b", "deleted", "other"] {
            world.put(&main(), false, &item(key), "written outside", "text/plain").await;
        }
        let before = world.catalogue.records_of_item(&main(), &item("other")).await.unwrap();
        let (plan, left) = adopt(&bit, None).await;
        assert_eq!((plan.items, plan.bytes, plan.recorded, plan.left), (2, 30, 1, 2), "{left:?}");
        assert!(world.catalogue.copy(&main(), &item("a")).await.unwrap().is_none());

        // What one that was broken off has adopted is recorded.
        bit.faults.add(Rule::new(Fault::Temporary).on(Operation::Get).times(1));
        let (first, left) = adopt(&bit, Some("ada")).await;
        assert_eq!((first.items, first.left), (1, 3), "{left:?}");
        bit.faults.clear();
        let (second, left) = adopt(&bit, Some("ada")).await;
        assert_eq!((second.items, second.bytes, second.recorded, second.left), (1, 15, 2, 2));
        assert_eq!(
            left,
            [
                "deleted: it was deleted, but exists again: mill errors lists it once it is checked",
                "other: it differs from its record in the listing: mill verify checks it"
            ]
        );
        for key in ["a", "b"] {
            let copy = world.catalogue.copy(&main(), &item(key)).await.unwrap().unwrap();
            assert_eq!((copy.size, copy.is_deleted, copy.proven.is_some()), (15, false, true), "{key}");
            let events = world.catalogue.events(&Events::Item(main(), item(key)), None, 9).await.unwrap();
            assert_eq!(events.iter().map(|event| event.user.as_str()).collect::<Vec<_>>(), ["ada"], "{key}");
        }
        assert_eq!(world.catalogue.records_of_item(&main(), &item("other")).await.unwrap(), before);
        assert!(world.catalogue.copy(&main(), &item("deleted")).await.unwrap().unwrap().is_deleted);
        // What is adopted is proven from then on.
        bit.run_loop().await;
        assert_eq!(bit.errors().await.into_keys().collect::<Vec<_>>(), ["deleted", "other"]);

        let reserved = Scope { space: Some("x-queuekeeper-aside".parse().unwrap()), ..scope() };
        assert!(bit.checker.adopt(&reserved, Some("ada"), &mut |_said| {}).await.is_err());
        let all = Scope { space: None, ..scope() };
        assert!(bit.checker.adopt(&all, Some("ada"), &mut |_said| {}).await.is_err());
    }
}
