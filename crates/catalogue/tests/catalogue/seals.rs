//! The chain of the reports of an account.

use queuekeeper_catalogue::Error;
use queuekeeper_catalogue::bit::{NewReport, SealHead};

use super::support::{World, on_both};

/// Runs of a space that have ended, with these numbers.
async fn runs(world: &World, account: &str, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        world
            .tamper(&format!(
                "INSERT INTO bit_runs (loop, account, store, space, asked, started, ended, is_forgotten)
                 VALUES ({number}, '{account}', 'main', 'space-a', 'read', 1, 2, FALSE)"
            ))
            .await;
    }
}

/// A document that has all that it was made of.
fn document(number: u64, before: Option<&SealHead>) -> String {
    format!("{number} {}", before.map_or("-", |before| &before.hash))
}

/// Records a report on a run, which lies at this place.
async fn record(world: &World, run: u64, place: &str) -> Result<(), Error> {
    let run = world.catalogue.bit_run(run).await?.unwrap();
    let report = NewReport { result: "success", place, coverage: "{}", is_complete: true, mail: None };
    world.catalogue.report_bit_run(&run, &report, document).await
}

on_both! {
    async fn reports_that_are_recorded_at_once_form_one_chain(world: World) {
        runs(&world, "one", 1..=12).await;
        runs(&world, "two", 13..=13).await;
        let catalogue = &world.catalogue;
        let place = |run: u64| format!("main/x/{run}");
        let of_run = async |run: u64| record(&world, run, &place(run)).await.unwrap();
        futures::future::join_all((1..=12).map(of_run)).await;
        // One that is tried again, and one of another account.
        of_run(7).await;
        of_run(13).await;
        let (mut before, mut places) = (None, Vec::new());
        for number in 1..=12 {
            let seal = catalogue.seal("one", number).await.unwrap().unwrap();
            assert_eq!(seal.text, document(number, before.as_ref()));
            places.push(seal.place.clone());
            before = Some(SealHead { number, hash: seal.hash(), place: seal.place });
        }
        places.sort();
        let mut all: Vec<_> = (1..=12).map(place).collect();
        all.sort();
        assert_eq!((catalogue.seal_head("one").await.unwrap(), places), (before, all));
        assert_eq!(catalogue.seal("one", 13).await.unwrap(), None);
        assert_eq!(catalogue.seal("two", 1).await.unwrap().unwrap().text, "1 -");
    }

    async fn a_seal_is_left_until_it_is_stored(world: World) {
        runs(&world, "one", 1..=2).await;
        let (catalogue, store, space) = (&world.catalogue, "main".parse().unwrap(), "space-a".parse().unwrap());
        for run in 1..=2 {
            record(&world, run, "main/x/k").await.unwrap();
        }
        let left = async || {
            let left = catalogue.seals_left("one", &store, &space).await.unwrap();
            left.into_iter().map(|seal| seal.number).collect::<Vec<_>>()
        };
        assert_eq!(left().await, [1, 2]);
        catalogue.seal_is_stored("one", 1).await.unwrap();
        assert_eq!(left().await, [2]);
        assert!(catalogue.seal("one", 1).await.unwrap().unwrap().is_stored);
        let other = catalogue.seals_left("one", &store, &"space-b".parse().unwrap()).await.unwrap();
        assert_eq!(other, []);
    }

    async fn a_report_is_recorded_with_its_seal_or_not_at_all(world: World) {
        runs(&world, "one", 1..=1).await;
        // The seal cannot be appended: its number is taken.
        world.tamper("INSERT INTO bit_seals VALUES ('one', 1, 99, 'p', 's', FALSE)").await;
        let catalogue = &world.catalogue;
        assert!(record(&world, 1, "main/x/k").await.is_err());
        assert_eq!(catalogue.bit_run(1).await.unwrap().unwrap().report, None);
        assert_eq!(catalogue.seal_head("one").await.unwrap(), None);
        world.tamper("DELETE FROM bit_seals").await;
        record(&world, 1, "main/x/k").await.unwrap();
        assert!(catalogue.bit_run(1).await.unwrap().unwrap().report.is_some());
    }
}
