//! Reading: ranges, conditions, and bodies that break off.

use std::time::Duration;

use queuekeeper_store::store::{EntityTag, Put, Store as _};
use queuekeeper_store::{Algorithm, ErrorKind, Hashers};
use queuekeeper_testkit::s3::{Effect, Fault, Point};

use super::common::{BUCKET, Fixture, RETRY, bytes, chunks, item, read};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn ranges_are_those_of_the_content_and_name_its_size_beyond_it() {
    let fixture = Fixture::start().await;
    let written = fixture.put("a", b"0123456789").await.unwrap();
    fixture.put("empty", b"").await.unwrap();
    let get = async |key: &str, range: std::ops::Range<u64>, if_match: Option<&EntityTag>| {
        let content = fixture.store.get(&item(key), Some(range), if_match).await?;
        let size = content.properties.size;
        Ok::<_, queuekeeper_store::Error>((read(content).await.unwrap(), size))
    };
    for (range, expected) in
        [(0..3, &b"012"[..]), (9..10, b"9"), (8..99, b"89"), (0..u64::MAX, b"0123456789"), (4..4, b""), (10..10, b"")]
    {
        assert_eq!(get("a", range.clone(), Some(&written.etag)).await.unwrap(), (expected.to_vec(), 10), "{range:?}");
    }
    for (key, range, size) in [("a", 10..11, 10), ("a", 11..11, 10), ("empty", 0..1, 0)] {
        let error = get(key, range.clone(), None).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Range { size: found } if found == size), "{range:?}: {error}");
    }
    let other = EntityTag("0".repeat(32));
    for range in [0..3, 4..4] {
        assert!(get("a", range, Some(&other)).await.unwrap_err().is_precondition());
    }
    assert!(matches!(get("none", 0..3, None).await.unwrap_err().kind, ErrorKind::NotFound));
    assert!(matches!(get("none", 4..4, None).await.unwrap_err().kind, ErrorKind::NotFound));
}

#[tokio::test]
async fn a_body_that_breaks_off_goes_on_where_it_did() {
    let fixture = Fixture::start().await;
    let content = bytes(3 * MIB);
    fixture.put("a", &content).await.unwrap();
    // To this one, any body may seem to stall on a busy machine: it reads the one that does.
    let impatient = fixture.another(|config| config.timeouts.progress = Duration::from_secs(1)).await;
    for effect in [
        Effect::CutDownload(MIB as u64),
        Effect::CutDownload(0),
        Effect::Stall(Point::Download(MIB as u64 + 7), None),
        Effect::LengthOffBy(1),
    ] {
        fixture.server.clear_log();
        let fault = fixture.server.inject(Fault::new(effect).on("GetObject").nth(1));
        let is_stalled = matches!(effect, Effect::Stall(..));
        let store = if is_stalled { &impatient } else { &fixture.store };
        let outcome = store.get(&item("a"), None, None).await;
        if effect == Effect::LengthOffBy(1) {
            // The size of the content seems to be another one, and the byte that is missing never comes.
            let all = read(outcome.unwrap()).await;
            assert!(all.is_err() || all.unwrap() == content, "{effect:?}");
        } else {
            assert!(read(outcome.unwrap()).await.unwrap() == content, "{effect:?}");
            let requests = fixture.server.count("GetObject");
            assert!(requests == 2 || is_stalled && requests > 2, "{effect:?}: {requests}");
        }
        assert!(fault.count() >= 1, "{effect:?}");
        fixture.server.clear_faults();
    }
    assert!(fixture.metric(r#"queuekeeper_store_retries_total{store="replica",operation="get"}"#) >= 3.0);
    assert!(fixture.metric(r#"queuekeeper_store_read_bytes_total{store="replica"}"#) >= 9.0 * MIB as f64);
}

#[tokio::test]
async fn content_that_is_replaced_while_it_is_read_ends_as_an_error_and_is_never_mixed() {
    let fixture = Fixture::start().await;
    fixture.put("a", bytes(3 * MIB)).await.unwrap();
    fixture.server.inject(Fault::new(Effect::CutDownload(MIB as u64)).on("GetObject").nth(1));
    let reading = fixture.store.get(&item("a"), None, None).await.unwrap();
    fixture.put("a", vec![7; 3 * MIB]).await.unwrap();
    let error = read(reading).await.unwrap_err();
    assert!(error.to_string().contains("changed"), "{error}");
}

#[tokio::test]
async fn a_body_that_always_breaks_off_ends_as_an_error_and_never_short() {
    let fixture = Fixture::start().await;
    fixture.put("a", bytes(2 * MIB)).await.unwrap();
    fixture.server.inject(Fault::new(Effect::CutDownload(0)).on("GetObject"));
    match fixture.store.get(&item("a"), None, None).await {
        Ok(content) => drop(read(content).await.unwrap_err()),
        Err(error) => assert!(error.is_temporary(), "{error}"),
    }
}

#[tokio::test]
async fn rot_is_read_as_it_is_beside_the_checksum_that_it_should_have() {
    let fixture = Fixture::start().await;
    let content = bytes(MIB);
    let put = Put { compute: vec![Algorithm::Sha256], ..Put::default() };
    let written = fixture.store.put(&item("a"), chunks(&content), put).await.unwrap();
    fixture.server.rot(BUCKET, "copies/maps/a");
    let rotten = fixture.store.get(&item("a"), None, None).await.unwrap();
    assert_eq!(rotten.properties.checksums.get(Algorithm::Sha256), written.digests.get(Algorithm::Sha256));
    let mut hashers = Hashers::new([Algorithm::Sha256]);
    hashers.update(&read(rotten).await.unwrap());
    assert!(hashers.finish().difference(&written.digests).is_some());
}

#[tokio::test]
async fn the_requests_and_the_bodies_of_one_read_have_their_attempts_together() {
    let fixture = Fixture::start().await;
    fixture.put("a", bytes(MIB)).await.unwrap();
    for later in [Effect::CutDownload(0), Effect::INTERNAL_ERROR] {
        fixture.server.clear_log();
        fixture.server.inject(Fault::new(Effect::CutDownload(0)).on("GetObject").nth(1));
        let reading = fixture.store.get(&item("a"), None, None).await.unwrap();
        fixture.server.inject(Fault::new(later).on("GetObject"));
        assert!(read(reading).await.is_err());
        assert_eq!(fixture.server.count("GetObject"), u64::from(RETRY.attempts), "{later:?}");
        fixture.server.clear_faults();
    }
}
