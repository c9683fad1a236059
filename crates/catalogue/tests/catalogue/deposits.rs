//! Deposits that are recorded at once.

use std::collections::BTreeSet;

use jiff::Timestamp;
use queuekeeper_catalogue::deposits::{NewDeposit, REFUSED, Sent};
use uuid::Uuid;

use super::support::on_both;

fn new(depositor: &str, objects: u64) -> NewDeposit {
    let (depositor, profile, batch) = (depositor.to_owned(), "demo".to_owned(), Uuid::now_v7());
    NewDeposit { batch, depositor, idempotency_key: None, profile, objects, bytes: 0 }
}

on_both! {
    async fn of_many_deposits_at_once_no_more_are_recorded_than_a_limit_lets_by(world: World) {
        let mut tasks = tokio::task::JoinSet::new();
        let may = |[sent]: [Sent; 1]| if sent.objects + 2 > 10 { Err(sent.objects) } else { Ok(()) };
        for _request in 0..20 {
            let catalogue = world.catalogue.clone();
            tasks.spawn(async move {
                catalogue.record_deposit_within(&new("ada", 2), [Timestamp::UNIX_EPOCH], may).await.unwrap()
            });
        }
        let (made, refused): (Vec<_>, Vec<_>) = tasks.join_all().await.into_iter().partition(Result::is_ok);
        assert_eq!((made.len(), refused), (5, vec![Err(10); 15]));
        assert_eq!(made.into_iter().collect::<Result<BTreeSet<_>, _>>().unwrap().len(), 5);
        assert_eq!(world.number("SELECT COUNT(*) FROM deposits").await, 5);
        // Another one has a limit of their own, and one that is recorded is not counted again.
        let catalogue = &world.catalogue;
        let bob = new("bob", 10);
        let nothing = |[sent]: [Sent; 1]| if sent.deposits > 0 { Err(sent.objects) } else { Ok(()) };
        for _again in 0..2 {
            let recorded = catalogue.record_deposit_within(&bob, [Timestamp::UNIX_EPOCH], nothing).await.unwrap();
            assert_eq!(recorded, Ok(bob.batch));
        }
    }

    async fn a_deposit_that_was_refused_counts_anew_when_it_is_sent_again(world: World) {
        let catalogue = &world.catalogue;
        let first = NewDeposit { idempotency_key: Some("key".to_owned()), ..new("ada", 1) };
        let most = |[sent]: [Sent; 1]| if sent.objects > 8 { Err(sent.objects) } else { Ok(()) };
        let record = async |new: &NewDeposit| {
            catalogue.record_deposit_within(new, [Timestamp::UNIX_EPOCH], most).await.unwrap()
        };
        assert_eq!(record(&first).await, Ok(first.batch));
        catalogue.deposit_ended(first.batch, &format!("{REFUSED}its digest differs")).await.unwrap();
        let larger = NewDeposit { objects: 9, bytes: 90, ..first.clone() };
        assert_eq!(record(&larger).await, Ok(first.batch));
        let found = catalogue.deposit(first.batch).await.unwrap().unwrap();
        assert_eq!((found.deposit.objects, found.deposit.bytes, found.outcome), (9, 90, None));
        catalogue.deposit_ended(first.batch, &format!("{REFUSED}its digest differs")).await.unwrap();
        // By itself it is not too much, beside others it is.
        assert_eq!(record(&larger).await, Ok(first.batch));
        catalogue.deposit_ended(first.batch, &format!("{REFUSED}its digest differs")).await.unwrap();
        assert_eq!(record(&new("ada", 9)).await, Err(9));
        catalogue.record_deposit(&new("ada", 20)).await.unwrap();
        assert_eq!(record(&larger).await, Err(20));
        // One that has become a batch does not.
        catalogue.deposit_ended(first.batch, "1 completed, 0 failed").await.unwrap();
        assert_eq!(record(&NewDeposit { bytes: 1_000, ..larger }).await, Ok(first.batch));
        let found = catalogue.deposit(first.batch).await.unwrap().unwrap();
        assert_eq!((found.deposit.bytes, found.outcome.unwrap().0), (90, "1 completed, 0 failed".to_owned()));
    }
}
