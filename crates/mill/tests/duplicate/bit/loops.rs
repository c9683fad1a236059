//! Loops through spaces: their pages, limits and lists.

use queuekeeper_catalogue::counters::Counter;
use queuekeeper_catalogue::pauses::PauseScope;
use queuekeeper_catalogue::tasks::TaskKind;
use queuekeeper_mill::bit::lists::SpaceLists;
use queuekeeper_mill::bit::verify::Scope;
use queuekeeper_mill::producer::Step;
use queuekeeper_store::Item;
use queuekeeper_store::error::Operation;
use uuid::Uuid;

use super::world::Bit;
use crate::duplicate::world::{World, item, main, on_all};

async fn write(world: &World, keys: &[&str]) {
    for key in keys {
        world.put(&main(), true, &item(key), &format!("content of {key}"), "text/plain").await;
    }
}

on_all! {
    async fn what_is_right_costs_one_request_an_item(world: World) {
        let bit = Bit::new(&world, "read");
        write(&world, &["a", "b/c", "d", "e", "f"]).await;
        assert_eq!(bit.run_loop().await, (1, 0));
        let calls = |operation| bit.faults.calls(operation);
        assert_eq!((calls(Operation::Get), calls(Operation::Head)), (5, 0));
        // One listing of the producer, and one of the page.
        assert_eq!(calls(Operation::List), 2);
        assert_eq!(bit.counts().await, [("success".to_owned(), 5)].into());
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }

    async fn the_policy_of_a_store_says_what_is_read(world: World) {
        write(&world, &["a", "b", "c"]).await;
        let bit = Bit::new(&world, "provider");
        bit.run_loop().await;
        assert_eq!((bit.faults.calls(Operation::Get), bit.faults.calls(Operation::Head)), (0, 3));
        assert_eq!(bit.counts().await, [("success".to_owned(), 3)].into());
        let proven = world.catalogue.copy(&main(), &item("a")).await.unwrap().unwrap().proven;
        assert_eq!(proven.map(|(_, proof)| proof).as_deref(), Some("provider"));

        // A checksum that differs is not read here, and is called wrong in the third round.
        world.misstate("a");
        world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
        assert_eq!(bit.run_loop().await, (1, 3));
        assert_eq!(bit.faults.calls(Operation::Get), 0);
        assert_eq!(bit.errors().await["a"].findings, ["store_checksum_differs"]);

        // None has its turn in a loop of so many: only what differs from the record is read.
        let sample = Bit::new(&world, "read 1/4000000000");
        world.put(&main(), false, &item("b"), "written around it", "text/plain").await;
        world.tamper("UPDATE loops SET next_start = 0, lease_end = 0".to_owned()).await;
        sample.run_loop().await;
        assert_eq!(sample.counts().await, [("failure".to_owned(), 2), ("skipped".to_owned(), 1)].into());
        assert_eq!(sample.errors().await["b"].findings, ["changed_outside"]);
        assert_eq!(sample.errors().await["a"].findings, ["store_checksum_wrong"]);
    }

    async fn a_space_is_cut_into_pages_and_any_process_goes_on_with_it(world: World) {
        let mut bit = Bit::new(&world, "read");
        write(&world, &["a", "b", "c", "d", "e"]).await;
        let maps = Item::new("account1.maps".parse().unwrap(), item("m").key);
        world.stores[&main()].create_space(&maps.space).await.unwrap();
        world.put(&main(), true, &maps, "a map", "text/plain").await;
        (bit.producer.part, bit.producer.reports) = (2, true);
        assert_eq!(bit.producer.step().await.unwrap(), Step::Advanced);
        // The first space alone, as long as its checks have not ended.
        let waiting = async || {
            let figures = world.catalogue.counters().await.unwrap();
            let of = |kind: TaskKind| {
                figures.get(&(Counter::WaitingTasks, kind.as_str().to_owned())).copied().unwrap_or(0)
            };
            (of(TaskKind::BitPage), of(TaskKind::BitReport))
        };
        bit.producer.step().await.unwrap();
        assert_eq!(waiting().await, (1, 0));
        bit.producer.most_waiting = 1;
        assert_eq!(bit.producer.step().await.unwrap(), Step::Checking);
        bit.settle().await;
        assert_eq!(bit.producer.step().await.unwrap(), Step::Advanced);
        // Written between pages, or behind the last one, it is in one of them.
        write(&world, &["a1", "z"]).await;
        let other = Bit::new(&world, "read");
        assert_eq!(other.producer.step().await.unwrap(), Step::Follows);
        world.catalogue.resign("bit", bit.producer.holder).await.unwrap();
        other.run_loop().await;
        assert_eq!(bit.counts().await, [("success".to_owned(), 7)].into());
        let run = world.catalogue.newest_bit_run("account1", &main(), &"maps".parse().unwrap()).await.unwrap().unwrap();
        assert!(run.ended.is_some());
        assert_eq!(waiting().await.1, 1);
        assert_eq!(other.producer.step().await.unwrap(), Step::Idle);
    }

    async fn lists_say_what_is_checked_and_a_pause_stops_a_loop(world: World) {
        let mut bit = Bit::new(&world, "read");
        write(&world, &["a"]).await;
        let lists = |include: &str, exclude: &str| SpaceLists { include: include.parse().unwrap(), exclude: exclude.parse().unwrap() };
        bit.producer.lists = lists("", "/account1/1/the*");
        assert_eq!(bit.producer.step().await.unwrap(), Step::Idle);
        bit.producer.lists = lists("/*/main/theses", "");
        world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
        assert_eq!(bit.producer.step().await.unwrap(), Step::Advanced);
        let scope = PauseScope::Account("account1".to_owned());
        world.catalogue.pause(&scope, "ada", "the rack moves").await.unwrap();
        assert_eq!(bit.producer.step().await.unwrap(), Step::Paused(1));
        world.catalogue.resume(&scope).await.unwrap();
        bit.run_loop().await;
        assert_eq!(bit.counts().await, [("success".to_owned(), 1)].into());
    }

    async fn what_was_wrong_ends_with_what_is_neither_stored_nor_recorded_any_more(world: World) {
        let bit = Bit::new(&world, "read");
        write(&world, &["a", "z"]).await;
        let (foreign, store) = (item("foreign"), &world.bare[&main()]);
        let is_wrong = async || bit.errors().await.into_keys().collect::<Vec<_>>();
        let maps = Item::new("account1.maps".parse().unwrap(), foreign.key.clone());
        for is_verified in [false, true] {
            world.put(&main(), false, &foreign, "written around it", "text/plain").await;
            world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
            bit.run_loop().await;
            assert_eq!(is_wrong().await, ["foreign"]);
            store.delete(&foreign, None).await.unwrap();
            if is_verified {
                let space = Some("theses".parse().unwrap());
                let scope = Scope { account: "account1".to_owned(), store: main(), space, key: None };
                assert_eq!(bit.checker.verify(&scope, &mut |_said| {}).await.unwrap().proven, 2);
            } else {
                world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
                assert_eq!(bit.run_loop().await, (1, 1));
                // It was not listed, so that it stands for no other item.
                assert_eq!(bit.counts().await, [("success".to_owned(), 2)].into());
            }
            assert_eq!(is_wrong().await, [""; 0]);
        }
        // So does what goes with its space.
        store.create_space(&maps.space).await.unwrap();
        world.put(&main(), false, &maps, "written around it", "text/plain").await;
        world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
        bit.run_loop().await;
        assert_eq!(is_wrong().await, ["foreign"]);
        store.delete(&maps, None).await.unwrap();
        store.delete_space(&maps.space).await.unwrap();
        world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
        bit.run_loop().await;
        assert_eq!(is_wrong().await, [""; 0]);
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }

    async fn of_a_space_that_was_emptied_every_item_is_missed(world: World) {
        let mut bit = Bit::new(&world, "read");
        bit.producer.holder = Uuid::now_v7();
        let keys = ["a", "b", "c"];
        write(&world, &keys).await;
        for key in keys {
            world.bare[&main()].delete(&item(key), None).await.unwrap();
        }
        world.bare[&main()].delete_space(&item("a").space).await.unwrap();
        bit.run_loop().await;
        let errors = bit.errors().await;
        assert_eq!(errors.len(), 3);
        assert!(errors.values().all(|error| error.findings == ["content_missing"]), "{errors:?}");
    }
}
