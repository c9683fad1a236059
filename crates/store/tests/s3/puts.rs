//! Writing: digests, conditions, parts, and what ends it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use queuekeeper_store::store::{Condition, EntityTag, Put, Store as _, UserProperties};
use queuekeeper_store::{Algorithm, Digests, ErrorKind, Hashers};
use queuekeeper_testkit::s3::{Effect, Fault, Point};
use tokio_util::sync::CancellationToken;

use super::common::{BUCKET, Fixture, NotingGuard, bytes, chunks, item};

const MIB: usize = 1024 * 1024;

fn digests(content: &[u8], algorithms: impl IntoIterator<Item = Algorithm>) -> Digests {
    let mut hashers = Hashers::new(algorithms);
    hashers.update(content);
    hashers.finish()
}

#[tokio::test]
async fn content_of_any_size_comes_back_with_its_digests_and_properties() {
    let fixture = Fixture::start().await;
    let user = UserProperties {
        content_type: Some("image/tiff".to_owned()),
        content_encoding: Some("gzip".to_owned()),
        metadata: [("creator".to_owned(), "A. Author".to_owned())].into(),
    };
    for size in [0, 1, 8 * MIB, 8 * MIB + 1, 17 * MIB] {
        let content = bytes(size);
        let all = digests(&content, Algorithm::ALL);
        let of = |algorithms: &[Algorithm]| {
            all.iter().filter(|one| algorithms.contains(&one.algorithm())).cloned().collect()
        };
        for known in [true, false] {
            let expected: Digests = of(&[Algorithm::Sha256, Algorithm::Md5]);
            let put = Put {
                size: known.then_some(size as u64),
                expected: expected.clone(),
                compute: vec![Algorithm::Sha1],
                user: user.clone(),
                condition: Condition::IfAbsent,
                ..Put::default()
            };
            let key = format!("{size}-{known}");
            let written = fixture.store.put(&item(&key), chunks(&content), put).await.unwrap();
            let computed = of(&[Algorithm::Sha256, Algorithm::Md5, Algorithm::Sha1]);
            assert_eq!((written.size, &written.digests), (size as u64, &computed));
            let properties = fixture.store.head(&item(&key)).await.unwrap().unwrap();
            assert_eq!((properties.size, &properties.user), (size as u64, &user));
            assert_eq!(properties.etag, written.etag);
            assert_eq!(properties.checksums.agree(&all), Some(true), "{size} {known}: {:?}", properties.checksums);
            let is_whole = size <= 8 * MIB;
            let kept = if is_whole { Algorithm::Sha256 } else { Algorithm::Crc64Nvme };
            assert!(is_whole && !known || properties.checksums.get(kept).is_some(), "{size} {known}");
            assert_eq!(properties.checksums.get(Algorithm::Md5).is_some(), is_whole, "{size} {known}");
            assert!(fixture.content(&key).unwrap() == content, "{size} {known}");
        }
    }
    assert_eq!(fixture.server.uploads(BUCKET), 0);
}

#[tokio::test]
async fn content_that_is_not_what_was_expected_never_appears() {
    let fixture = Fixture::start().await;
    for size in [10, 9 * MIB] {
        let content = bytes(size);
        let other = digests(b"other", [Algorithm::Sha512]);
        for (put, is_right) in [
            (
                Put { expected: other, ..Put::default() },
                (|kind| matches!(kind, ErrorKind::Digest { .. })) as fn(&_) -> _,
            ),
            (Put { size: Some(size as u64 + 1), ..Put::default() }, |kind| matches!(kind, ErrorKind::Size { .. })),
            (Put { size: Some(size as u64 - 1), ..Put::default() }, |kind| matches!(kind, ErrorKind::Size { .. })),
            (Put { guard: Some(NotingGuard::shut()), ..Put::default() }, |kind| matches!(kind, ErrorKind::Stopped(_))),
        ] {
            let error = fixture.store.put(&item("a"), chunks(&content), put).await.unwrap_err();
            assert!(is_right(&error.kind), "{error}");
        }
        let broken = stream::iter([Ok(Bytes::from(content)), Err(std::io::Error::other("the disk is gone"))]);
        let error = fixture.store.put(&item("a"), broken.boxed(), Put::default()).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Source(_)) && error.to_string().contains("the disk is gone"));
    }
    assert_eq!(fixture.content("a"), None);
    assert_eq!(fixture.server.uploads(BUCKET), 0);
}

#[tokio::test]
async fn conditions_hold_for_content_of_every_size() {
    let fixture = Fixture::start().await;
    let put = async |size: usize, condition: &Condition| {
        let put = Put { condition: condition.clone(), ..Put::default() };
        fixture.store.put(&item("a"), chunks(bytes(size)), put).await
    };
    let is_precondition =
        |result: Result<_, queuekeeper_store::Error>| result.is_err_and(|error| error.is_precondition());
    let wrong = Condition::IfMatch(EntityTag("0".repeat(32)));
    for size in [10, 9 * MIB] {
        assert!(is_precondition(put(size, &wrong).await), "there is nothing to match");
        let written = put(size, &Condition::IfAbsent).await.unwrap();
        assert!(is_precondition(put(11, &Condition::IfAbsent).await));
        assert!(is_precondition(put(10 * MIB, &Condition::IfAbsent).await));
        assert!(is_precondition(put(size + 1, &wrong).await));
        let written = put(size + 2, &Condition::IfMatch(written.etag)).await.unwrap();
        assert_eq!(fixture.content("a").unwrap(), bytes(size + 2));
        let other = Some(&EntityTag("0".repeat(32)));
        assert!(is_precondition(fixture.store.delete(&item("a"), other).await.map(|_| written.clone())));
        assert!(fixture.store.delete(&item("a"), Some(&written.etag)).await.unwrap());
        assert!(!fixture.store.delete(&item("a"), Some(&written.etag)).await.unwrap());
    }
    assert_eq!(fixture.server.uploads(BUCKET), 0);
}

#[tokio::test]
async fn the_gate_sees_the_upload_before_its_parts_and_the_digests_before_content_appears() {
    let fixture = Fixture::start().await.probed().await;
    let guard = Arc::new(NotingGuard::default());
    let put = Put { guard: Some(Arc::clone(&guard) as _), compute: vec![Algorithm::Sha256], ..Put::default() };
    let stalled = fixture.server.inject(Fault::new(Effect::Stall(Point::Arrival, None)).on("UploadPart").nth(1));
    let content = bytes(9 * MIB);
    let at = item("a");
    let putting = fixture.store.put(&at, chunks(&content), put);
    let watching = async {
        stalled.reached(1).await;
        assert_eq!((guard.begun.lock().len(), guard.passed.lock().len()), (1, 0));
        stalled.release();
    };
    let (written, ()) = tokio::join!(putting, watching);
    written.unwrap();
    let expected = digests(&content, [Algorithm::Sha256]);
    assert_eq!(*guard.passed.lock(), [(content.len() as u64, expected)]);

    // What a dead process left is ended by another one.
    let upload = guard.begun.lock()[0].clone();
    fixture.store.abort_upload(&item("a"), &upload).await.unwrap();
    fixture.store.abort_upload(&item("a"), "no-such-upload").await.unwrap();
    assert_eq!(fixture.content("a").unwrap(), content);
}

#[tokio::test]
async fn an_upload_that_is_ended_is_aborted_and_one_that_is_dropped_is_swept() {
    let fixture = Fixture::start().await.probed().await;
    let abort = CancellationToken::new();
    let put = Put { abort: abort.clone(), ..Put::default() };
    let endless = || chunks(vec![7; 20 * MIB]).chain(stream::pending()).boxed();
    let ending = async {
        while fixture.server.count("UploadPart") < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        abort.cancel();
    };
    let at = item("a");
    let (ended, ()) = tokio::join!(fixture.store.put(&at, endless(), put), ending);
    assert!(matches!(ended.unwrap_err().kind, ErrorKind::Stopped(_)));
    assert_eq!(fixture.server.uploads(BUCKET), 0);

    let stalled = fixture.server.inject(Fault::new(Effect::Stall(Point::Arrival, None)).on("UploadPart"));
    tokio::select! {
        _ = fixture.store.put(&at, chunks(bytes(9 * MIB)), Put::default()) => panic!("it is stalled"),
        () = stalled.reached(1) => {}
    }
    fixture.server.clear_faults();
    assert_eq!(fixture.store.sweep(Timestamp::UNIX_EPOCH).await.unwrap(), 0);
    let soon = Timestamp::now() + Duration::from_mins(1);
    assert_eq!(fixture.store.sweep(soon).await.unwrap(), 1);
    assert_eq!((fixture.server.uploads(BUCKET), fixture.content("a")), (0, None));
}

#[tokio::test]
async fn many_writers_together_hold_little_content_at_once() {
    let fixture = Fixture::start().await.probed().await;
    let stalled = fixture.server.inject(Fault::new(Effect::Stall(Point::Arrival, None)).on("UploadPart"));
    let putting = (0..9).map(|n| {
        let store = fixture.store.clone();
        tokio::spawn(async move { store.put(&item(&n.to_string()), chunks(vec![7; 9 * MIB]), Put::default()).await })
    });
    let putting: Vec<_> = putting.collect();
    // 64 MiB are eight parts, and none is let go while the server takes none.
    stalled.reached(8).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(stalled.count(), 8);
    stalled.release();
    fixture.server.clear_faults();
    for put in putting {
        put.await.unwrap().unwrap();
    }
    assert_eq!(fixture.server.keys(BUCKET).len(), 10);
}
