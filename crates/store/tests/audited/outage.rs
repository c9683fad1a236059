//! Answers that are lost, and an audit log that is away.

use queuekeeper_store::audited::Resolved;
use queuekeeper_store::store::{Condition, Put, UserProperties};
use queuekeeper_store::{ErrorKind, Store as _};
use tokio::time::{Instant, advance, sleep};

use super::setup::{TIMING, chunks, item, setup, space};
use crate::support::memory::{Lost, StoreKind};

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_found_by_a_look() {
    for checksums in [vec![queuekeeper_store::Algorithm::Sha256], vec![]] {
        let setup = setup(StoreKind { checksums, ..StoreKind::default() });
        let store = &setup.audited;
        setup.store.lose(Lost::Answer);
        assert!(store.create_space(&space()).await.is_ok_and(|made| made));
        setup.store.lose(Lost::Answer);
        let written = store.put(&item("a"), chunks(b"content"), Put::default()).await.expect("it is there");
        let head = store.head(&item("a")).await.expect("a look").expect("an item");
        assert_eq!((written.size, &written.etag), (7, &head.etag));
        setup.store.lose(Lost::Answer);
        assert!(store.copy(&item("a"), None, &item("b"), &Condition::None).await.is_ok_and(|it| it.size == 7));
        setup.store.lose(Lost::Answer);
        assert!(store.delete(&item("a"), None).await.is_ok_and(|deleted| deleted));
        setup.assert_recorded("lost answers");
        assert_eq!((setup.sink.events().len(), setup.sink.open_intents()), (4, vec![]));
    }
    let setup = setup(StoreKind::default());
    setup.store.plant(&item("a"), b"content");
    setup.store.lose(Lost::Answer);
    let user = UserProperties { content_type: Some("text/plain".to_owned()), ..UserProperties::default() };
    assert!(setup.audited.set_properties(&item("a"), &user, None).await.is_ok());
    assert_eq!(setup.sink.events().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_may_still_arrive_is_left_to_the_end_of_the_lease() {
    let setup = setup(StoreKind::default());
    setup.store.plant(&item("other"), b"");
    setup.store.lose(Lost::Request);
    let error = setup.put("a", chunks(b"content"), Put::default()).await.expect_err("no answer");
    assert!(matches!(error.kind, ErrorKind::Unknown(_)), "{error}");
    assert_eq!((setup.sink.events().len(), setup.sink.open_intents().len()), (0, 1));

    // It arrives.
    setup.store.plant(&item("a"), b"content");
    advance(TIMING.lease).await;
    assert_eq!(setup.audited.resolve_left().await, Ok(Resolved { done: 1, ..Resolved::default() }));
    assert_eq!(setup.sink.events().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_the_audit_log_nothing_is_changed() {
    let setup = setup(StoreKind::default());
    setup.store.plant(&item("a"), b"content");
    setup.sink.set_away(true);
    let before = setup.store.contents();
    let error = setup.audited.delete(&item("a"), None).await.expect_err("it is away");
    assert!(error.is_temporary());
    let why = "the audit log cannot be written now: the connection was refused; nothing was changed";
    assert_eq!(error.to_string(), format!("store memory: delete space/a: {why}"));
    assert!(setup.put("a", chunks(b"new"), Put::default()).await.is_err());
    assert!(setup.audited.copy(&item("a"), None, &item("b"), &Condition::None).await.is_err());
    assert_eq!(setup.store.contents(), before);
    assert!(setup.audited.resolve_left().await.is_err());
}

/// The intent and the digests are written, then the log is away.
const WRITES_BEFORE_SETTLING: usize = 2;

#[tokio::test(start_paused = true)]
async fn the_audit_log_may_be_away_for_a_moment_after_the_change() {
    let setup = setup(StoreKind::default());
    setup.store.plant(&item("other"), b"");
    setup.sink.go_away_after(WRITES_BEFORE_SETTLING);
    let come_back = async {
        sleep(TIMING.wait_limit / 2).await;
        setup.sink.set_away(false);
    };
    let (written, ()) = tokio::join!(setup.put("a", chunks(b"content"), Put::default()), come_back);
    assert!(written.is_ok(), "{written:?}");
    assert_eq!((setup.sink.events().len(), setup.sink.open_intents()), (1, vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_recorded_for_long_is_said_to_be_done_and_recorded_later() {
    let setup = setup(StoreKind::default());
    setup.store.plant(&item("other"), b"");
    setup.sink.go_away_after(WRITES_BEFORE_SETTLING);
    let began = Instant::now();
    let error = setup.put("a", chunks(b"content"), Put::default()).await.expect_err("no record");
    assert!(matches!(error.kind, ErrorKind::Unrecorded(_)) && began.elapsed() <= TIMING.wait_limit, "{error}");
    assert_eq!(
        error.to_string(),
        "store memory: put space/a: it was done, but its record in the audit log follows later: the audit log cannot be \
         written now: the connection was refused"
    );
    setup.sink.set_away(false);
    advance(TIMING.lease).await;
    assert_eq!(setup.audited.resolve_left().await, Ok(Resolved { done: 1, ..Resolved::default() }));
    let (intent, _) = &setup.sink.events()[0];
    assert_eq!(intent.user, "tester");
}
