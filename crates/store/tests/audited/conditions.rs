//! Conditions: the caller's, and those on what was seen.

use std::sync::Arc;

use async_trait::async_trait;
use queuekeeper_store::audit::{Change, Settlement};
use queuekeeper_store::store::{CommitGuard, Condition, EntityTag, Item, Put, UserProperties};
use queuekeeper_store::{Algorithm, Digests, Error, ErrorKind, Hashers, Store as _};

use super::setup::{chunks, item, setup, sha256};
use crate::support::memory::{MemoryStore, StoreKind};

fn changes(events: &[(queuekeeper_store::audit::Intent, Settlement)]) -> Vec<Change> {
    let change = |(_, settlement): &(_, Settlement)| match settlement {
        Settlement::Done { change, .. } => *change,
        other => panic!("{other:?}"),
    };
    events.iter().map(change).collect()
}

fn is_precondition<T>(result: Result<T, Error>) -> bool {
    result.is_err_and(|error| error.is_precondition())
}

#[tokio::test]
async fn a_callers_condition_keeps_its_meaning() {
    let setup = setup(StoreKind::default());
    let tag = setup.store.plant(&item("a"), b"content");
    let other = EntityTag("another".to_owned());
    let put = |condition| Put { condition, ..Put::default() };
    let store = &setup.audited;

    assert!(is_precondition(store.put(&item("a"), chunks(b"new"), put(Condition::IfAbsent)).await));
    assert!(is_precondition(store.put(&item("a"), chunks(b"new"), put(Condition::IfMatch(other.clone()))).await));
    assert!(is_precondition(store.put(&item("b"), chunks(b"new"), put(Condition::IfMatch(tag.clone()))).await));
    assert!(is_precondition(store.copy(&item("a"), Some(&other), &item("b"), &Condition::None).await));
    assert!(is_precondition(store.copy(&item("a"), None, &item("a"), &Condition::IfAbsent).await));
    assert!(is_precondition(store.delete(&item("a"), Some(&other)).await));
    assert!(is_precondition(store.set_properties(&item("a"), &UserProperties::default(), Some(&other)).await));
    assert_eq!((setup.sink.events(), setup.sink.open_intents()), (vec![], vec![]));

    assert!(store.put(&item("b"), chunks(b"new"), put(Condition::IfAbsent)).await.is_ok());
    assert!(store.copy(&item("a"), Some(&tag), &item("c"), &Condition::IfAbsent).await.is_ok());
    let written = store.put(&item("a"), chunks(b"newer"), put(Condition::IfMatch(tag))).await.expect("it matches");
    assert!(store.delete(&item("a"), Some(&written.etag)).await.is_ok_and(|deleted| deleted));
    assert_eq!(changes(&setup.sink.events()), [Change::Add, Change::Copy, Change::Update, Change::Delete]);
}

#[tokio::test]
async fn known_content_that_may_not_be_written_has_no_intent_that_a_crash_could_leave() {
    let setup = setup(StoreKind::default());
    setup.store.plant(&item("a"), b"content");
    let mut hashers = Hashers::new([Algorithm::Sha256]);
    hashers.update(b"content");
    let put = Put { size: Some(7), expected: hashers.finish(), condition: Condition::IfAbsent, ..Put::default() };
    // Left open, it would be found with its content, and be recorded as what this program did.
    assert!(is_precondition(setup.put("a", chunks(b"content"), put.clone()).await));
    assert_eq!(setup.sink.intents(), 0);
    assert!(setup.put("b", chunks(b"content"), put).await.is_ok());
    assert_eq!(setup.sink.intents(), 1);
}

/// Writes the item that is being written, around the audited store.
struct Intruder(Arc<MemoryStore>, Item);

#[async_trait]
impl CommitGuard for Intruder {
    async fn pass(&self, _size: u64, _digests: &Digests) -> Result<(), String> {
        self.0.plant(&self.1, b"theirs");
        Ok(())
    }
}

#[tokio::test]
async fn what_another_program_writes_meanwhile_is_not_overwritten_where_the_store_holds_conditions() {
    for conditions in [true, false] {
        let setup = setup(StoreKind { conditions, ..StoreKind::default() });
        setup.store.plant(&item("other"), b"");
        let guard: Arc<dyn CommitGuard> = Arc::new(Intruder(setup.store.clone(), item("a")));
        let put = Put { guard: Some(guard), ..Put::default() };
        let written = setup.audited.put(&item("a"), chunks(b"mine"), put).await;
        let content = setup.store.contents()[&item("a")].clone();
        if conditions {
            let error = written.expect_err("it was overtaken");
            assert!(error.is_temporary());
            let why = "another program changed it meanwhile; nothing was changed";
            assert_eq!(error.to_string(), format!("store memory: put space/a: {why}"));
            assert_eq!((&content[..], setup.sink.events().len()), (&b"theirs"[..], 0));
        } else {
            assert!(written.is_ok());
            assert_eq!((&content[..], setup.sink.events().len()), (&b"mine"[..], 1));
        }
        assert_eq!(setup.sink.open_intents(), []);
    }
}

#[tokio::test]
async fn an_event_has_the_tag_size_and_digests_and_the_caller_those_that_they_asked_for() {
    let setup = setup(StoreKind { checksums: vec![], ..StoreKind::default() });
    setup.store.plant(&item("other"), b"");
    let put = Put { compute: vec![Algorithm::Md5], ..Put::default() };
    let written = setup.audited.put(&item("a"), chunks(b"content"), put).await.expect("it is written");
    let algorithms: Vec<_> = written.digests.iter().map(queuekeeper_store::Digest::algorithm).collect();
    assert_eq!(algorithms, [Algorithm::Md5]);
    let events = setup.sink.events();
    let [(intent, Settlement::Done { change, etag, size, digests })] = &events[..] else { panic!("{events:?}") };
    assert_eq!(
        (intent.user.as_str(), *change, etag.as_ref(), *size),
        ("tester", Change::Add, Some(&written.etag), Some(7))
    );
    assert_eq!(digests.get(Algorithm::Sha256).map(queuekeeper_store::Digest::hex), Some(sha256(b"content")));
    assert_eq!(digests.get(Algorithm::Md5), written.digests.get(Algorithm::Md5));
}

#[tokio::test]
async fn a_callers_own_gate_stops_the_change_without_a_record() {
    struct Closed;
    #[async_trait]
    impl CommitGuard for Closed {
        async fn pass(&self, size: u64, digests: &Digests) -> Result<(), String> {
            Err(format!("{size} bytes, {} digests", digests.iter().count()))
        }
    }
    let setup = setup(StoreKind::default());
    setup.store.plant(&item("other"), b"");
    let put = Put { guard: Some(Arc::new(Closed)), ..Put::default() };
    let error = setup.audited.put(&item("a"), chunks(b"content"), put).await.expect_err("the guard refuses");
    assert!(matches!(&error.kind, ErrorKind::Stopped(why) if why == "7 bytes, 1 digests"), "{error}");
    assert_eq!((setup.sink.events(), setup.sink.open_intents(), setup.sink.extended()), (vec![], vec![], 0));
}
