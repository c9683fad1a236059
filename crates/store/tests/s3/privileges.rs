//! What a store needs to be allowed, by the policy documents of `SECURITY.md`.

use std::time::Duration;

use futures::TryStreamExt as _;
use jiff::Timestamp;
use queuekeeper_store::store::{Condition, Listed, Put, Store as _, UserProperties};
use queuekeeper_store::{Algorithm, Digest, Digests, ErrorKind};
use queuekeeper_testkit::s3::{Effect, Fault, Point, Privileges};

use super::common::{BUCKET, Fixture, bytes, chunks, item};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn each_document_allows_what_it_is_for_and_nothing_else() {
    let fixture = Fixture::start().await;
    let (store, server) = (&fixture.store, &fixture.server);
    let (small, large, space) = (item("small"), item("large"), item("small").space);
    server.plant(BUCKET, ["elsewhere/maps/a"], b"x");

    server.restrict(&Privileges::Write.document(BUCKET, "copies"));
    assert!(!store.create_space(&space).await.unwrap());
    let capabilities = store.probe().await.unwrap();
    assert!(capabilities.if_absent && capabilities.if_match, "{capabilities:?}");
    store.put(&small, chunks("1"), Put::default()).await.unwrap();
    store.put(&large, chunks(bytes(9 * MIB)), Put::default()).await.unwrap();
    store.copy(&small, None, &item("copy"), &Condition::IfAbsent).await.unwrap();
    let etag = store.head(&small).await.unwrap().unwrap().etag;
    store.set_properties(&small, &UserProperties::default(), Some(&etag)).await.unwrap();
    let other = Digests::from_iter([Digest::new(Algorithm::Sha256, &[0; 32]).unwrap()]);
    let wrong = Put { expected: other, ..Put::default() };
    assert!(store.put(&item("wrong"), chunks(bytes(9 * MIB)), wrong).await.is_err());
    assert_eq!(server.uploads(BUCKET), 0, "what has begun is ended");
    assert!(store.delete(&item("copy"), None).await.unwrap());
    let stalled = server.inject(Fault::new(Effect::Stall(Point::Arrival, None)).on("UploadPart"));
    let left = item("left");
    tokio::select! {
        _ = store.put(&left, chunks(bytes(9 * MIB)), Put::default()) => panic!("it is stalled"),
        () = stalled.reached(1) => {}
    }
    server.clear_faults();
    let soon = Timestamp::now() + Duration::from_mins(1);
    assert_eq!((server.uploads(BUCKET), store.sweep(soon).await.unwrap(), server.uploads(BUCKET)), (1, 1, 0));
    assert_eq!(store.spaces().await.unwrap(), std::slice::from_ref(&space));

    server.restrict(&Privileges::Read.document(BUCKET, "copies"));
    assert_eq!(fixture.read("large").await, bytes(9 * MIB));
    assert_eq!(store.head(&item("missing")).await.unwrap(), None);
    let listed: Vec<Listed> = store.list(&space, b"", None).try_collect().await.unwrap();
    assert_eq!(listed.len(), 2);
    let put = store.put(&item("new"), chunks("1"), Put::default()).await.map(|_| ());
    let deleted = store.delete(&small, None).await.map(|_| ());
    let copied = store.copy(&small, None, &item("copy"), &Condition::IfAbsent).await.map(|_| ());
    for refused in [put, deleted, copied] {
        let error = refused.unwrap_err();
        assert!(matches!(&error.kind, ErrorKind::Refused(why) if why.contains("not authorized")), "{error}");
    }

    // Another prefix of the same bucket belongs to somebody else.
    server.restrict(&Privileges::Write.document(BUCKET, "elsewhere"));
    for refused in [fixture.put("new", "1").await.map(|_| ()), store.head(&small).await.map(|_| ())] {
        let error = refused.unwrap_err();
        assert!(matches!(&error.kind, ErrorKind::Refused(_)), "{error}");
    }
    assert_eq!(server.keys(BUCKET).into_iter().filter(|key| key.starts_with("elsewhere/")).count(), 1);
}
