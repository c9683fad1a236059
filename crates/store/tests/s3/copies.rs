//! Copies and properties, their conditions and what they keep.

use std::sync::Arc;

use queuekeeper_store::store::{Condition, CopyControl, EntityTag, Item, Put, Store as _, UserProperties, Written};
use queuekeeper_store::{Algorithm, Error, ErrorKind};
use queuekeeper_testkit::s3::{Effect, Fault, Point, Settings};

use super::common::{BUCKET, Fixture, NotingGuard, bytes, chunks, item};

const MIB: usize = 1024 * 1024;

fn user(value: &str) -> UserProperties {
    UserProperties {
        content_type: Some("text/plain".to_owned()),
        metadata: [("creator".to_owned(), value.to_owned())].into(),
        ..UserProperties::default()
    }
}

#[tokio::test]
async fn a_copy_has_the_content_and_properties_of_its_source_under_both_conditions() {
    let fixture = Fixture::start().await;
    let store = &fixture.store;
    for size in [0, 10, 9 * MIB] {
        let (from, to) = (item(&format!("from {size}")), item(&format!("to {size}")));
        let put = Put { user: user("A"), compute: vec![Algorithm::Sha256], ..Put::default() };
        let written = store.put(&from, chunks(bytes(size)), put).await.unwrap();
        let copied = store.copy(&from, Some(&written.etag), &to, &Condition::IfAbsent).await.unwrap();
        let properties = store.head(&to).await.unwrap().unwrap();
        assert_eq!((copied.size, &copied.etag), (size as u64, &properties.etag));
        assert_eq!(properties.user, user("A"));
        assert_ne!(copied.digests.agree(&written.digests), Some(false));
        assert_eq!(fixture.content(&format!("to {size}")).unwrap(), bytes(size));

        let wrong = EntityTag("0".repeat(32));
        for (if_match, condition) in
            [(Some(&wrong), Condition::None), (None, Condition::IfAbsent), (None, Condition::IfMatch(wrong.clone()))]
        {
            let error = store.copy(&from, if_match, &to, &condition).await.unwrap_err();
            assert!(error.is_precondition(), "{error}");
        }
        store.copy(&from, None, &to, &Condition::IfMatch(copied.etag)).await.unwrap();
        let nowhere = item("nowhere");
        let error = store.copy(&from, None, &nowhere, &Condition::IfMatch(wrong)).await.unwrap_err();
        assert!(error.is_precondition(), "{error}");
        let error = store.copy(&nowhere, None, &to, &Condition::None).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::NotFound), "{error}");
        let space = Item::new("missing".parse().unwrap(), item("a").key);
        assert!(matches!(
            store.copy(&from, None, &space, &Condition::None).await.unwrap_err().kind,
            ErrorKind::NoSpace
        ));
    }
}

#[tokio::test]
async fn properties_are_replaced_as_a_whole_and_the_content_stays() {
    let fixture = Fixture::start().await;
    let store = &fixture.store;
    let put = Put { user: user("A"), ..Put::default() };
    let written = store.put(&item("a"), chunks("content"), put).await.unwrap();
    let replaced = store.set_properties(&item("a"), &UserProperties::default(), Some(&written.etag)).await.unwrap();
    let properties = store.head(&item("a")).await.unwrap().unwrap();
    assert_eq!((&properties.user, &properties.etag), (&UserProperties::default(), &replaced.etag));
    assert_eq!(fixture.read("a").await, b"content");
    let wrong = EntityTag("0".repeat(32));
    assert!(store.set_properties(&item("a"), &user("B"), Some(&wrong)).await.unwrap_err().is_precondition());
    assert!(matches!(store.set_properties(&item("b"), &user("B"), None).await.unwrap_err().kind, ErrorKind::NotFound));
    let odd = user("\u{fc}");
    assert!(matches!(store.set_properties(&item("a"), &odd, None).await.unwrap_err().kind, ErrorKind::Unsupported(_)));
}

#[tokio::test]
async fn a_copy_whose_answer_is_lost_is_looked_for() {
    let fixture = Fixture::start().await.probed().await;
    fixture.put("from", "content").await.unwrap();
    let fault = fixture.server.inject(Fault::new(Effect::CutAnswer).on("CopyObject"));
    let copied = fixture.store.copy(&item("from"), None, &item("to"), &Condition::IfAbsent).await.unwrap();
    assert!(fault.count() >= 1);
    fixture.server.clear_faults();
    assert_eq!(fixture.store.head(&item("to")).await.unwrap().unwrap().etag, copied.etag);
    let fault = fixture.server.inject(Fault::new(Effect::CutAnswer).on("DeleteObject").times(1));
    assert!(fixture.store.delete(&item("to"), Some(&copied.etag)).await.unwrap());
    assert_eq!(fault.count(), 1);
}

#[tokio::test]
async fn a_condition_that_the_service_ignores_is_held_another_way_or_refused() {
    let fixture = Fixture::start().await;
    let store = &fixture.store;
    // So it looks where a service knows conditions of simple writes alone.
    let refuse = || Fault::new(Effect::Refuse(501, "NotImplemented"));
    fixture.server.inject(refuse().on("CopyObject"));
    fixture.server.inject(refuse().on("CompleteMultipartUpload"));
    fixture.server.inject(refuse().on("DeleteObject").nth(1));
    let capabilities = store.probe().await.unwrap();
    fixture.server.clear_faults();
    assert!(!capabilities.if_absent && !capabilities.if_match);
    fixture.server.clear_log();

    let put = Put { user: user("A"), condition: Condition::IfAbsent, ..Put::default() };
    let written = store.put(&item("small"), chunks("content"), put.clone()).await.unwrap();
    store.copy(&item("small"), None, &item("copy"), &Condition::IfAbsent).await.unwrap();
    let again = store.copy(&item("small"), None, &item("copy"), &Condition::IfAbsent).await;
    assert!(again.unwrap_err().is_precondition());
    store.set_properties(&item("small"), &user("B"), Some(&written.etag)).await.unwrap();
    assert_eq!(store.head(&item("small")).await.unwrap().unwrap().user, user("B"));
    assert_eq!(store.head(&item("copy")).await.unwrap().unwrap().user, user("A"));
    assert_eq!((fixture.read("small").await, fixture.read("copy").await), (b"content".to_vec(), b"content".to_vec()));
    assert_eq!(fixture.server.count("CopyObject"), 0);

    let is_unsupported = |error: &Error| matches!(error.kind, ErrorKind::Unsupported(_));
    let large = store.put(&item("large"), chunks(vec![7; 9 * MIB]), put).await.unwrap_err();
    assert!(is_unsupported(&large), "{large}");
    store.put(&item("large"), chunks(vec![7; 9 * MIB]), Put::default()).await.unwrap();
    let copied = store.copy(&item("large"), None, &item("large copy"), &Condition::IfAbsent).await.unwrap_err();
    assert!(is_unsupported(&copied), "{copied}");
    store.copy(&item("large"), None, &item("large copy"), &Condition::None).await.unwrap();
    let deleted = store.delete(&item("small"), Some(&written.etag)).await.unwrap_err();
    assert!(is_unsupported(&deleted), "{deleted}");
    assert_eq!(fixture.server.uploads(super::common::BUCKET), 0);
}

#[tokio::test]
async fn what_is_larger_than_the_service_copies_at_once_is_copied_in_parts() {
    let most = 6 * MIB as u64;
    let settings = || Settings { maximum_copy_bytes: most, ..Settings::default() };
    let fixture = Fixture::start_at(settings(), |config| config.largest_copy = most).await.probed().await;
    let store = &fixture.store;
    let content = bytes(17 * MIB);
    let put = Put { user: user("A"), ..Put::default() };
    let written = store.put(&item("large"), chunks(&content), put).await.unwrap();
    for condition in [Condition::IfAbsent, Condition::None] {
        fixture.server.clear_log();
        let copied = store.copy(&item("large"), Some(&written.etag), &item("copy"), &condition).await.unwrap();
        assert_eq!(["CopyObject", "UploadPartCopy"].map(|operation| fixture.server.count(operation)), [0, 3]);
        let properties = store.head(&item("copy")).await.unwrap().unwrap();
        assert_eq!((copied.size, copied.etag, properties.user), (17 * MIB as u64, properties.etag, user("A")));
        assert!(fixture.content("copy").unwrap() == content);
    }
    // A part that fails for good leaves nothing.
    fixture.server.inject(Fault::new(Effect::Refuse(403, "AccessDenied")).on("UploadPartCopy").nth(2));
    let error = store.copy(&item("large"), None, &item("none"), &Condition::None).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Refused(_)), "{error}");
    assert_eq!((fixture.content("none"), fixture.server.uploads(BUCKET)), (None, 0));

    let other = Fixture::start_at(settings(), |_| ()).await;
    other.put("large", &content).await.unwrap();
    let error = other.store.copy(&item("large"), None, &item("copy"), &Condition::None).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Refused(_)) && error.to_string().contains("copy source"), "{error}");
}

#[tokio::test]
async fn a_copy_in_parts_that_is_ended_is_aborted_and_never_appears() {
    let most = 6 * MIB as u64;
    let settings = Settings { maximum_copy_bytes: most, ..Settings::default() };
    let fixture = Fixture::start_at(settings, |config| config.largest_copy = most).await.probed().await;
    fixture.put("large", bytes(17 * MIB)).await.unwrap();
    let stalled = fixture.server.inject(Fault::new(Effect::Stall(Point::Arrival, None)).on("UploadPartCopy").nth(2));
    let guard = Arc::new(NotingGuard::default());
    let control = CopyControl { guard: Some(Arc::clone(&guard) as _), ..CopyControl::default() };
    let ending = async {
        stalled.reached(1).await;
        assert_eq!((guard.begun.lock().len(), guard.passed.lock().len()), (1, 0));
        control.abort.cancel();
    };
    let (from, to) = (item("large"), item("copy"));
    let copying = fixture.store.copy_with(&from, None, &to, &Condition::IfAbsent, &control);
    let (copied, ()) = tokio::join!(copying, ending);
    let error = copied.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Stopped(_)), "{error}");
    assert_eq!((fixture.content("copy"), fixture.server.uploads(BUCKET)), (None, 0));
    // One that was ended before makes no request that changes anything.
    fixture.server.clear_log();
    let copied = fixture.store.copy_with(&from, None, &to, &Condition::IfAbsent, &control).await;
    assert!(matches!(copied.unwrap_err().kind, ErrorKind::Stopped(_)));
    assert_eq!(["CreateMultipartUpload", "CopyObject"].map(|operation| fixture.server.count(operation)), [0, 0]);
}

/// Ends a copy by one request while the server holds that; its answer comes at once then, or never.
async fn ended_copy(fixture: &Fixture, to: &Item, point: Point, comes: bool) -> Result<Written, Error> {
    let from = item("from");
    let stalled = fixture.server.inject(Fault::new(Effect::Stall(point, None)).on("CopyObject").nth(1));
    let control = CopyControl::default();
    let ending = async {
        stalled.reached(1).await;
        control.abort.cancel();
        if comes {
            stalled.release();
        }
    };
    let copying = fixture.store.copy_with(&from, None, to, &Condition::IfAbsent, &control);
    let (copied, ()) = tokio::join!(copying, ending);
    fixture.server.clear_faults();
    copied
}

#[tokio::test]
async fn a_copy_by_one_request_that_is_ended_is_known_where_its_answer_comes_soon() {
    let fixture = Fixture::start().await.probed().await;
    fixture.put("from", "content").await.unwrap();
    let is_unknown =
        |error: &Error| matches!(&error.kind, ErrorKind::Unknown(why) if why.contains("may still complete the copy"));
    // The store waits two seconds, which a busy machine may take for an answer that comes at once, but not each time.
    let mut trials = 0;
    let (known, written) = loop {
        trials += 1;
        let to = item(&format!("known {trials}"));
        match ended_copy(&fixture, &to, Point::Answer, true).await {
            Ok(written) => break (to, written),
            Err(error) => assert!(trials < 3 && is_unknown(&error), "{error}"),
        }
    };
    assert_eq!(fixture.store.head(&known).await.unwrap().unwrap().etag, written.etag);
    let error = ended_copy(&fixture, &item("unknown"), Point::Commit, false).await.unwrap_err();
    assert!(is_unknown(&error), "{error}");
}
