//! What few items show in a list.

use super::*;
use crate::mirror::page::{Cursor, InvalidCursor};

fn there(path: &str, age: i64) -> (String, Option<String>, i64, Option<i64>) {
    (path.to_owned(), Some(String::new()), age, Some(1))
}

fn filter(order: LockOrder, age: Option<usize>) -> LockQuery {
    LockQuery { kind: None, age, session: None, order }
}

/// Where the second page of two locks begins.
fn second(image: &Image, order: LockOrder) -> Cursor {
    let part = PageRequest { after: None, size: 1 };
    image.lock_page(filter(order, None), &part, now(), Offset::default()).unwrap().next.unwrap()
}

#[test]
fn locks_of_one_instant_are_listed_by_their_paths_whichever_came_first() {
    let locks = [3, 2, 1].map(|number| there(&format!("/jobs/jid000000000{number}/lock"), 5_000));
    let image = image(locks.to_vec());
    for order in [LockOrder::Oldest, LockOrder::Newest] {
        let page = |part: &PageRequest| image.lock_page(filter(order, None), part, now(), Offset::default()).unwrap();
        let listed: Vec<_> = all(1, page).into_iter().map(|lock| lock.path.to_string()).collect();
        assert_eq!(listed, [1, 2, 3].map(|number| format!("/jobs/jid000000000{number}/lock")), "{order:?}");
    }
}

#[test]
fn locks_at_the_bounds_of_an_age_are_counted_before_the_page_that_follows_them() {
    // The last moments of the first minute, and the first ones behind it.
    for (age, order, ages) in
        [(0, LockOrder::Oldest, [59_999, 59_998, 59_997]), (1, LockOrder::Newest, [60_000, 60_001, 60_002])]
    {
        let names = ["a", "b", "c"].map(|name| format!("/locks/storage/{name}"));
        let image = image(names.iter().zip(ages).map(|(name, age)| there(name, age)).collect());
        let page =
            |part: &PageRequest| image.lock_page(filter(order, Some(age)), part, now(), Offset::default()).unwrap();
        let listed: Vec<_> = all(1, page).into_iter().map(|lock| lock.path.to_string()).collect();
        assert_eq!(listed, names, "{order:?}");
    }
}

#[test]
fn a_page_goes_on_in_the_order_that_it_began_in_only() {
    // Both locks are faults, since no job stores their objects.
    let image = image(["a", "b"].map(|name| there(&format!("/locks/storage/{name}"), 300_000_000)).to_vec());
    for [began, other] in [[LockOrder::Oldest, LockOrder::Newest], [LockOrder::Guards, LockOrder::Session]] {
        let part = PageRequest { after: Some(second(&image, began)), size: 1 };
        let page = |order| image.lock_page(filter(order, None), &part, now(), Offset::default());
        assert_eq!((page(began).is_ok(), page(other).err()), (true, Some(InvalidCursor)), "{other:?}");
    }
    let limits = Limits::default();
    let query = FaultQuery { now_ms: NOW_MS, offset: Offset::default(), limits: &limits, space: None };
    let page = |order, after| image.fault_page(None, order, &PageRequest { after, size: 1 }, query);
    let next = page(FaultOrder::Oldest, None).unwrap().next;
    assert!(next.is_some() && page(FaultOrder::Oldest, next.clone()).is_ok());
    assert_eq!(page(FaultOrder::Newest, next).err(), Some(InvalidCursor));
}

#[test]
fn the_batches_with_the_most_jobs_and_with_the_most_failed_ones_come_first() {
    let mut znodes = Vec::new();
    for (batch, failed, completed) in [(1, 1, 1), (2, 0, 4), (3, 2, 1)] {
        let path = format!("/batches/bid{batch:010}");
        znodes.push(there(&path, 0));
        let folders = [("batch-failed", failed), ("batch-completed", completed)];
        for (folder, jobs) in folders {
            znodes.push(there(&format!("{path}/states/{folder}"), 0));
            znodes.extend((0..jobs).map(|job| there(&format!("{path}/states/{folder}/jid{job:010}"), 0)));
        }
    }
    let image = image(znodes);
    for (order, expected) in [(BatchOrder::Jobs, [2, 3, 1]), (BatchOrder::Failed, [3, 1, 2])] {
        let page =
            |part: &PageRequest| image.batch_page(&BatchQuery::default(), order, part, Offset::default()).unwrap();
        let listed: Vec<_> = all(2, page).into_iter().map(|detail| detail.batch.id.number()).collect();
        assert_eq!(listed, expected, "{order:?}");
    }
}
