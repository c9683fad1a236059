//! Content in an archive: what reads it says so, until it was restored.

use queuekeeper_store::ErrorKind;
use queuekeeper_store::archive::{RestoreRequest, RestoreTier};
use queuekeeper_store::store::{Condition, Store as _};

use super::common::{Fixture, item};

#[tokio::test]
async fn what_is_archived_is_read_and_copied_once_it_was_restored() {
    let fixture = Fixture::start_with(|config| config.storage_class = Some("GLACIER".to_owned())).await;
    let (store, server) = (&fixture.store, &fixture.server);
    fixture.put("a", b"content").await.unwrap();
    let (a, b) = (item("a"), item("b"));
    let etag = store.head(&a).await.unwrap().unwrap().etag;
    let read = || async { store.get(&a, None, Some(&etag)).await.map(|content| content.properties.size) };
    let copy = || async { store.copy(&a, Some(&etag), &b, &Condition::IfAbsent).await };
    let request = RestoreRequest { days: 1, tier: RestoreTier::Standard };
    assert!(matches!(read().await.unwrap_err().kind, ErrorKind::Archived));
    assert!(matches!(copy().await.unwrap_err().kind, ErrorKind::Archived));
    store.restore(&a, request).await.unwrap();
    // What is under way is not asked for twice, and that is no error.
    store.restore(&a, request).await.unwrap();
    let error = read().await.unwrap_err();
    assert!(error.to_string().ends_with("it is archived, and was not restored"), "{error}");
    assert_eq!(server.end_restores(), 1);
    assert_eq!(read().await.unwrap(), 7);
    copy().await.unwrap();
    server.expire_restores();
    assert!(matches!(read().await.unwrap_err().kind, ErrorKind::Archived));
    assert!(matches!(store.restore(&item("gone"), request).await.unwrap_err().kind, ErrorKind::NotFound));
}

#[tokio::test]
async fn a_store_without_an_archive_restores_nothing() {
    let fixture = Fixture::start().await;
    fixture.put("a", b"content").await.unwrap();
    let request = RestoreRequest { days: 1, tier: RestoreTier::Bulk };
    let error = fixture.store.restore(&item("a"), request).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Unreadable(_)), "{error}");
}
