//! Busy servers, and answers that do not come: what was done is found out, or said to be unknown.

use std::time::Duration;

use queuekeeper_store::ErrorKind;
use queuekeeper_store::retry::RetryPolicy;
use queuekeeper_store::s3::Timeouts;
use queuekeeper_store::store::{Condition, Put, Store as _};
use queuekeeper_testkit::s3::{Effect, Fault, Point};

use super::common::{BUCKET, Fixture, RETRY, bytes, chunks, item};

const MIB: usize = 1024 * 1024;

fn if_absent() -> Put {
    Put { condition: Condition::IfAbsent, ..Put::default() }
}

#[tokio::test]
async fn a_busy_server_gets_fewer_requests_at_once_and_all_are_made_in_the_end() {
    let fixture = Fixture::start().await.probed().await;
    let limit = r#"queuekeeper_store_concurrency_limit{store="replica"}"#;
    assert!((fixture.metric(limit) - 32.0).abs() < 0.1);
    fixture.server.inject(Fault::new(Effect::SLOW_DOWN).on("PutObject").every(3));
    for n in 0..20 {
        fixture.put(&n.to_string(), "1").await.unwrap();
    }
    assert!(fixture.metric(limit) < 16.0);
    assert!(fixture.metric(r#"queuekeeper_store_retries_total{store="replica",operation="put"}"#) >= 9.0);
    fixture.server.clear_faults();
    for n in 0..200 {
        fixture.put(&n.to_string(), "1").await.unwrap();
    }
    assert!(fixture.metric(limit) > 10.0);

    fixture.server.inject(Fault::new(Effect::SLOW_DOWN).on("PutObject"));
    let error = fixture.put("busy", "1").await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Unavailable(_)), "{error}");
    assert_eq!(fixture.content("busy"), None);
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_done_once() {
    for checksums in [true, false] {
        // Without them, entity tags tell.
        let fixture = Fixture::start_with(|config| config.checksums = checksums).await.probed().await;
        lose_answers(&fixture).await;
    }
}

async fn lose_answers(fixture: &Fixture) {
    for (operation, size) in [("PutObject", 10), ("CompleteMultipartUpload", 9 * MIB)] {
        for (effect, times) in [(Effect::CutAnswer, 1), (Effect::CutAnswer, u64::MAX), (Effect::INTERNAL_ERROR, 1)] {
            let fault = fixture.server.inject(Fault::new(effect).on(operation).times(times));
            let content = bytes(size);
            let written = fixture.store.put(&item("a"), chunks(&content), if_absent()).await;
            assert!(fault.count() >= 1);
            fixture.server.clear_faults();
            let properties = fixture.store.head(&item("a")).await.unwrap().unwrap();
            assert_eq!(written.unwrap().etag, properties.etag, "{operation} {effect:?}");
            assert_eq!(fixture.content("a").unwrap(), content);
            assert!(fixture.store.delete(&item("a"), None).await.unwrap());
        }
    }
    assert_eq!(fixture.server.uploads(BUCKET), 0);
}

#[tokio::test]
async fn a_write_after_another_ones_is_not_taken_for_done() {
    let fixture = Fixture::start().await.probed().await;
    for size in [10, 9 * MIB] {
        let operation = if size == 10 { "PutObject" } else { "CompleteMultipartUpload" };
        fixture.put("a", "another one's").await.unwrap();
        fixture.server.inject(Fault::new(Effect::Stall(Point::Arrival, Some(Duration::ZERO))).on(operation));
        fixture.server.inject(Fault::new(Effect::INTERNAL_ERROR).on(operation).nth(1));
        let error = fixture.store.put(&item("a"), chunks(bytes(size)), if_absent()).await.unwrap_err();
        fixture.server.clear_faults();
        assert!(error.is_precondition(), "{error}");
        assert_eq!(fixture.content("a").unwrap(), b"another one's");
    }
    assert_eq!(fixture.server.uploads(BUCKET), 0);
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_unknown_where_what_is_there_cannot_be_compared() {
    let fixture = Fixture::start().await.probed().await;
    fixture.server.inject(Fault::new(Effect::CutAnswer).on("PutObject").times(1));
    fixture.server.inject(Fault::new(Effect::Refuse(403, "AccessDenied")).on("HeadObject"));
    let error = fixture.store.put(&item("a"), chunks("1"), if_absent()).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Unknown(_)), "{error}");
    fixture.server.clear_faults();
    assert_eq!(fixture.content("a").unwrap(), b"1");
}

#[tokio::test]
async fn a_write_that_lands_late_is_said_to_be_unknown_unless_it_can_be_prevented() {
    let fixture = Fixture::start_with(|config| config.retry.attempts = 1).await.probed().await;
    let late = Effect::Late { limit: None, is_answered: false };
    let small = fixture.server.inject(Fault::new(late).on("PutObject"));
    let error = fixture.store.put(&item("a"), chunks("1"), if_absent()).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Unknown(_)), "{error}");
    assert_eq!(fixture.content("a"), None);
    small.release();
    fixture.server.clear_faults();

    let large = fixture.server.inject(Fault::new(late).on("CompleteMultipartUpload"));
    let error = fixture.store.put(&item("b"), chunks(bytes(9 * MIB)), if_absent()).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Unavailable(_)), "{error}");
    large.release();
    fixture.server.clear_faults();
    // The store aborted it, so it finds nothing to complete.
    while fixture.server.connections() > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((fixture.content("b"), fixture.server.uploads(BUCKET)), (None, 0));
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_left_after_the_limit_and_parts_are_sent_again() {
    let fixture = Fixture::start().await.probed().await;
    fixture.put("a", "1").await.unwrap();
    // The limit is that of connecting and of the answer together. All else has the usual one: a busy machine may take
    // longer than this.
    let short = fixture.another(|config| {
        config.timeouts.connect = Duration::from_millis(800);
        config.timeouts.answer = Duration::from_millis(200);
    });
    let short = short.await;
    fixture.server.inject(Fault::new(Effect::Stall(Point::Arrival, None)).on("HeadObject").nth(1));
    assert!(short.head(&item("a")).await.unwrap().is_some());
    fixture.server.inject(Fault::new(Effect::Stall(Point::Arrival, None)).on("HeadObject"));
    let error = short.head(&item("a")).await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains("within 1 s"), "{error}");
    fixture.server.clear_faults();

    fixture.server.inject(Fault::new(Effect::CutUpload(MIB as u64)).on("UploadPart").every(2));
    let content = bytes(18 * MIB);
    fixture.put("large", &content).await.unwrap();
    assert!(fixture.content("large").unwrap() == content);
}

#[tokio::test]
async fn time_in_the_queue_of_the_store_does_not_count_against_the_time_for_repetitions() {
    let within = Duration::from_millis(30);
    let fixture = Fixture::start_with(|config| {
        config.concurrency = 1;
        config.retry = RetryPolicy { within, first: Duration::from_millis(1), most: Duration::from_millis(2), ..RETRY };
    });
    let fixture = fixture.await.probed().await;
    let slow = fixture.server.inject(Fault::new(Effect::Stall(Point::Arrival, None)).on("PutObject").nth(1));
    let failing = fixture.server.inject(Fault::new(Effect::INTERNAL_ERROR).on("HeadObject").nth(1));
    let putting = fixture.put("a", "1");
    let queued = async {
        slow.reached(1).await;
        let other = item("b");
        let waiting = fixture.store.delete(&other, None);
        let releasing = async {
            tokio::time::sleep(2 * within).await;
            slow.release();
        };
        tokio::join!(waiting, releasing).0
    };
    let (put, deleted) = tokio::join!(putting, queued);
    assert!(put.is_ok() && deleted.is_ok() && failing.count() == 1, "{put:?} {deleted:?}");
}

#[tokio::test]
async fn content_that_times_out_is_sent_again_although_its_time_has_passed() {
    // Long enough on a busy machine for the attempt that is answered, which is the last one: its time has passed then.
    let fixture = Fixture::start_with(|config| {
        config.timeouts.answer = Duration::from_secs(12);
        config.timeouts.connect = Duration::from_secs(1);
        config.retry.within = Duration::from_millis(50);
    });
    let fixture = fixture.await.probed().await;
    // A part has some minutes, by its size; it takes the same way.
    let fault = fixture.server.inject(Fault::new(Effect::Stall(Point::Arrival, None)).on("PutObject").nth(1));
    fixture.put("a", "1").await.unwrap();
    assert!(fault.count() == 1 && fixture.content("a").unwrap() == b"1");
}

#[tokio::test]
async fn limits_of_time_that_no_clock_reaches_are_none() {
    let most = Duration::MAX;
    let fixture = Fixture::start_with(|config| {
        config.timeouts = Timeouts { connect: most, answer: most, work: most, progress: most };
        config.retry.within = most;
    })
    .await
    .probed()
    .await;
    fixture.server.inject(Fault::new(Effect::INTERNAL_ERROR).on("PutObject").nth(1));
    fixture.put("a", "1").await.unwrap();
    fixture.put("b", bytes(9 * MIB)).await.unwrap();
    assert_eq!(fixture.read("a").await, b"1");
}
