//! Listings: pages, prefixes, and pages that are wrong.

use std::time::Instant;

use futures::{StreamExt as _, TryStreamExt as _};
use queuekeeper_store::store::{Listed, Store as _};
use queuekeeper_store::{ErrorKind, Key};
use queuekeeper_testkit::s3::{Effect, Fault, PageFault};

use super::common::{BUCKET, Fixture, item};

fn number(n: u32) -> String {
    format!("copies/maps/{n:07}")
}

#[tokio::test]
async fn pages_follow_each_other_and_one_is_asked_for_ahead() {
    let fixture = Fixture::start().await.probed().await;
    fixture.server.plant(BUCKET, (0..25_000).map(number), b"x");
    fixture.server.plant(BUCKET, ["copies/maps0", "copies/map", "copies/maps/"], b"y");
    let space = item("a").space;
    let mut listing = fixture.store.list(&space, b"", None);
    assert!(listing.next().await.is_some());
    let started = Instant::now();
    while fixture.server.count("ListObjectsV2") < 2 {
        assert!(started.elapsed().as_secs() < 60, "the second page is not requested");
        tokio::task::yield_now().await;
    }
    let count = listing.try_fold(1, async |count, _| Ok(count + 1)).await.unwrap();
    assert_eq!(count, 25_000);
    assert_eq!(fixture.server.count("ListObjectsV2"), 26);

    let of = async |prefix: &[u8], after: Option<&[u8]>| {
        let after = after.map(|after| Key::new(after).unwrap());
        let listed: Vec<Listed> = fixture.store.list(&space, prefix, after.as_ref()).try_collect().await.unwrap();
        listed.len()
    };
    assert_eq!(of(b"001", None).await, 10_000);
    assert_eq!(of(b"001", Some(b"0019990")).await, 9);
    assert_eq!(of(b"001", Some(b"0009999")).await, 10_000);
    assert_eq!(of(b"", Some(b"0024998")).await, 1);
    assert_eq!(of(b"", Some(b"0024998\xff")).await, 1);
    assert_eq!(of(b"", Some(b"\xff")).await, 0);
    assert_eq!(of(b"0\xff", None).await, 0);
}

#[tokio::test]
async fn bytes_that_are_no_text_still_name_a_place_in_the_order_of_keys() {
    let fixture = Fixture::start().await;
    for key in ["a", "\u{e9}", "\u{e9}1", "\u{ea}"] {
        fixture.put(key, key).await.unwrap();
    }
    let space = item("a").space;
    // The first byte of both letters, and then between them.
    let prefixed: Vec<Listed> = fixture.store.list(&space, b"\xc3", None).try_collect().await.unwrap();
    assert_eq!(prefixed.len(), 3);
    let after = Key::new(*b"\xc3\xa9\xff").unwrap();
    let rest: Vec<Listed> = fixture.store.list(&space, b"", Some(&after)).try_collect().await.unwrap();
    assert_eq!(rest.iter().map(|listed| listed.key.as_str().unwrap()).collect::<Vec<_>>(), ["\u{ea}"]);
}

#[tokio::test]
async fn a_page_against_the_order_ends_the_listing_by_name_and_a_failed_one_is_asked_for_again() {
    for fault in [PageFault::Repeat, PageFault::Backwards] {
        let fixture = Fixture::start().await;
        fixture.server.plant(BUCKET, (0..3_000).map(number), b"x");
        let fault = fixture.server.inject(Fault::new(Effect::Page(fault)).on("ListObjectsV2").nth(2));
        let mut listing = fixture.store.list(&item("a").space, b"", None);
        let mut good = 0;
        let error = loop {
            match listing.next().await {
                Some(Ok(_)) => good += 1,
                Some(Err(error)) => break error,
                None => panic!("the listing ends as if it were whole, after {good}"),
            }
        };
        assert!(good >= 1_000 && fault.count() == 1);
        assert!(matches!(error.kind, ErrorKind::Answer(_)), "{error}");
        assert!(error.to_string().contains("0000999") || error.to_string().contains("0001999"), "{error}");
        assert!(listing.next().await.is_none());
    }
    let fixture = Fixture::start().await.probed().await;
    fixture.server.plant(BUCKET, (0..3_000).map(number), b"x");
    fixture.server.inject(Fault::new(Effect::INTERNAL_ERROR).on("ListObjectsV2").every(2));
    let listed: Vec<Listed> = fixture.store.list(&item("a").space, b"", None).try_collect().await.unwrap();
    assert_eq!(listed.len(), 3_000);
    assert!(fixture.metric(r#"queuekeeper_store_retries_total{store="replica",operation="list"}"#) >= 1.0);
}
