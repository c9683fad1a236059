//! Deposits that are recorded at once.

use std::collections::BTreeSet;

use jiff::Timestamp;
use queuekeeper_catalogue::deposits::{NewDeposit, Sent};
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
}
