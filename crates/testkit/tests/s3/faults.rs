use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use queuekeeper_testkit::s3::{Effect, Fault, PageFault, Point};
use queuekeeper_testkit::wait::eventually;

use super::common::{BUCKET, code, get, put, refusal, start};

const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn one_request_in_three_has_to_slow_down() {
    let (server, client) = start().await;
    let fault = server.inject(Fault::new(Effect::SLOW_DOWN).on("PutObject").every(3).times(2));
    let mut refused = Vec::new();
    for n in 1..=12 {
        let put = client.put_object().bucket(BUCKET).key(format!("{n}")).body(ByteStream::from(vec![0; 1 << 20]));
        if let result @ Err(_) = put.send().await {
            assert_eq!(refusal(result), code(503, "SlowDown"));
            refused.push(n);
        }
    }
    assert_eq!((refused, fault.count(), server.keys(BUCKET).len()), (vec![3, 6], 2, 10));
    assert_eq!(server.count("PutObject"), 12);
    assert_eq!(server.requests().iter().filter(|request| request.status == Some(503)).count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_on_its_way_up_is_never_stored() {
    let (server, client) = start().await;
    let fault = server.inject(Fault::new(Effect::CutUpload(100_000)).on("PutObject"));
    let put = client.put_object().bucket(BUCKET).key("a").body(ByteStream::from(vec![1; 1 << 20])).send().await;
    assert_eq!(refusal(put).0, 0);
    fault.reached(1).await;
    server.clear_faults();
    assert_eq!(server.keys(BUCKET), Vec::<String>::new());
    assert_eq!(server.requests()[0].status, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_breaks_off_on_its_way_down_at_that_byte() {
    let (server, client) = start().await;
    server.plant(BUCKET, ["a"], &vec![7; 300_000]);
    server.inject(Fault::new(Effect::CutDownload(100_000)).on("GetObject"));
    let mut answer = client.get_object().bucket(BUCKET).key("a").send().await.unwrap();
    let mut came = 0;
    let broken = loop {
        match answer.body.next().await {
            Some(Ok(piece)) => came += piece.len(),
            other => break other,
        }
    };
    assert!(matches!(broken, Some(Err(_))), "{broken:?}");
    assert_eq!(came, 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn content_length_is_wrong_in_either_direction() {
    let (server, client) = start().await;
    server.plant(BUCKET, ["a"], &[7; 1000]);
    server.inject(Fault::new(Effect::LengthOffBy(-1)).on("GetObject").nth(1));
    server.inject(Fault::new(Effect::LengthOffBy(1)).on("GetObject").nth(2));
    let short = client.get_object().bucket(BUCKET).key("a").send().await.unwrap();
    assert_eq!((short.content_length(), short.body.collect().await.unwrap().to_vec().len()), (Some(999), 999));
    let long = client.get_object().bucket(BUCKET).key("a").send().await.unwrap();
    assert_eq!(long.content_length(), Some(1001));
    assert!(long.body.collect().await.is_err());
    assert_eq!(get(&client, "a").await, [7; 1000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_answer_is_lost_has_been_made() {
    let (server, client) = start().await;
    server.inject(Fault::new(Effect::CutAnswer).on_writes().nth(1));
    let lost = client.put_object().bucket(BUCKET).key("a").body(ByteStream::from_static(b"x")).send().await;
    assert_eq!(refusal(lost).0, 0);
    assert_eq!(server.content(BUCKET, "a").unwrap(), b"x");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_write_lands_after_its_client_has_gone() {
    let (server, client) = start().await;
    let late = Effect::Late { limit: None, is_answered: false };
    let fault = server.inject(Fault::new(late).on("PutObject").nth(1));
    let lost = client.put_object().bucket(BUCKET).key("a").body(ByteStream::from_static(b"late")).send().await;
    assert_eq!(refusal(lost).0, 0);
    put(&client, "a", b"early").await;
    fault.release();
    eventually(LIMIT, "the late write lands", async || server.content(BUCKET, "a").unwrap() == b"late").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_stop_before_and_after_they_are_made() {
    let (server, client) = start().await;
    let before = server.inject(Fault::new(Effect::Stall(Point::Commit, None)).on_writes().nth(2));
    let after = server.inject(Fault::new(Effect::Stall(Point::Answer, None)).on_writes().nth(3));
    put(&client, "1", b"x").await;
    let writes = tokio::spawn(async move {
        put(&client, "2", b"x").await;
        put(&client, "3", b"x").await;
    });
    before.reached(1).await;
    assert_eq!(server.keys(BUCKET), ["1"]);
    before.release();
    after.reached(1).await;
    assert_eq!(server.keys(BUCKET), ["1", "2", "3"]);
    assert!(!writes.is_finished());
    after.release();
    writes.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_waits_is_given_up_with_its_client() {
    let (server, client) = start().await;
    let fault = server.inject(Fault::new(Effect::Stall(Point::Commit, None)).on("PutObject"));
    let put = client.put_object().bucket(BUCKET).key("a").body(ByteStream::from_static(b"x"));
    let put = tokio::spawn(async move { put.send().await });
    fault.reached(1).await;
    put.abort();
    assert!(put.await.unwrap_err().is_cancelled());
    drop(client);
    eventually(LIMIT, "the connection is gone", async || server.connections() == 0).await;
    fault.release();
    assert_eq!(server.keys(BUCKET), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_listing_are_wrong_in_three_ways() {
    let (server, client) = start().await;
    server.plant(BUCKET, ["a", "b", "c", "d", "e", "f"], b"");
    let keys = async |fault| {
        server.clear_faults();
        server.inject(Fault::new(Effect::Page(fault)).on("ListObjectsV2").nth(2));
        let mut pages =
            client.list_objects_v2().bucket(BUCKET).max_keys(2).into_paginator().stop_on_duplicate_token(false).send();
        let mut keys = String::new();
        while let Some(page) = pages.next().await {
            keys.extend(page.unwrap().contents().iter().map(|object| object.key().unwrap()));
        }
        keys
    };
    assert_eq!(keys(PageFault::Repeat).await, "ababcdef");
    assert_eq!(keys(PageFault::Skip).await, "abef");
    assert_eq!(keys(PageFault::Backwards).await, "abdcef");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_wrong_refuses_requests_that_were_signed_by_another() {
    let (server, client) = start().await;
    server.set_clock_skew(-3_600_000);
    let put = || client.put_object().bucket(BUCKET).key("a").send();
    assert_eq!(refusal(put().await), code(403, "RequestTimeTooSkewed"));
    // The SDK has seen the server's clock in the answer, and signs by that from now on.
    put().await.unwrap();
    server.set_clock_skew(0);
    assert_eq!(refusal(put().await), code(403, "RequestTimeTooSkewed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn content_rots_and_nothing_else_shows_it() {
    let (server, client) = start().await;
    let etag = put(&client, "a", b"content").await;
    let copy = client.copy_object().bucket(BUCKET).key("copy").copy_source(format!("{BUCKET}/a"));
    copy.send().await.unwrap();
    server.rot(BUCKET, "a");
    let answer = client.get_object().bucket(BUCKET).key("a").send().await.unwrap();
    assert_eq!(answer.e_tag(), Some(etag.as_str()));
    assert_eq!(answer.body.collect().await.unwrap().to_vec(), b"conuent");
    assert_eq!(get(&client, "copy").await, b"content");
}
