//! Every operation, stopped before, between and after each of its steps.

use std::future::Future;
use std::pin::Pin;

use queuekeeper_store::audit::{Change, Settlement};
use queuekeeper_store::audited::Resolved;
use queuekeeper_store::store::{Condition, Put, UserProperties};
use queuekeeper_store::{Algorithm, Error, SpaceName, Store};
use tokio::time::advance;

use super::setup::{Setup, TIMING, another, chunks, item, setup, space};
use crate::support::memory::{MemoryStore, StoreKind};

pub(super) type Operation = for<'a> fn(&'a dyn Store) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

fn new_space() -> SpaceName {
    "another".parse().expect("a valid name")
}

fn properties() -> UserProperties {
    UserProperties { content_type: Some("text/plain".to_owned()), ..UserProperties::default() }
}

/// Each kind of change.
pub(super) const OPERATIONS: [(&str, Operation); 9] = [
    ("add", |store| Box::pin(async { store.put(&item("new"), chunks(b"new"), Put::default()).await.map(drop) })),
    ("update", |store| Box::pin(async { store.put(&item("old"), chunks(b"other"), Put::default()).await.map(drop) })),
    ("update of the same size", |store| {
        Box::pin(async { store.put(&item("old"), chunks(b"new content"), Put::default()).await.map(drop) })
    }),
    ("copy", |store| {
        Box::pin(async { store.copy(&item("old"), None, &item("copy"), &Condition::None).await.map(drop) })
    }),
    ("copy over other content", |store| {
        Box::pin(async { store.copy(&item("old"), None, &item("older"), &Condition::None).await.map(drop) })
    }),
    ("delete", |store| Box::pin(async { store.delete(&item("old"), None).await.map(drop) })),
    ("properties", |store| Box::pin(async { store.set_properties(&item("old"), &properties(), None).await.map(drop) })),
    ("create a space", |store| Box::pin(async { store.create_space(&new_space()).await.map(drop) })),
    ("delete a space", |store| {
        Box::pin(async { store.delete_space(&"empty".parse().expect("a valid name")).await.map(drop) })
    }),
];

/// Kinds of stores that differ in what a look at them shows.
fn kinds() -> Vec<StoreKind> {
    let mut kinds = Vec::new();
    for checksums in [vec![Algorithm::Sha256], vec![Algorithm::Crc32], vec![]] {
        for conditions in [true, false] {
            for (tags_by_content, uploads) in [(true, true), (false, false)] {
                kinds.push(StoreKind { checksums: checksums.clone(), conditions, tags_by_content, uploads });
            }
        }
    }
    kinds
}

/// A store with some items, all of them recorded.
async fn filled(kind: &StoreKind) -> Setup {
    let setup = setup(kind.clone());
    setup.audited.create_space(&space()).await.expect("a space is made");
    setup.audited.create_space(&"empty".parse().expect("a valid name")).await.expect("a space is made");
    for (key, content) in [("old", &b"old content"[..]), ("older", b"older content")] {
        setup.audited.put(&item(key), chunks(content), Put::default()).await.expect("content is written");
    }
    setup.assert_recorded("before");
    setup
}

/// What can be seen of a store.
async fn state(store: &MemoryStore) -> (Vec<SpaceName>, Vec<(String, String, UserProperties)>) {
    let mut items = Vec::new();
    for at in store.contents().into_keys() {
        let head = store.head(&at).await.expect("a look").expect("an item");
        items.push((at.to_string(), head.etag.to_string(), head.user));
    }
    (store.spaces().await.expect("a list"), items)
}

#[tokio::test(start_paused = true)]
async fn what_was_stopped_at_any_step_is_recorded_exactly_when_it_was_done() {
    for kind in kinds() {
        for (name, operation) in OPERATIONS {
            let mut outcomes = Vec::new();
            for stop in 0.. {
                let context = format!("{name}, {stop} steps, {kind:?}");
                let setup = filled(&kind).await;
                let (before, events) = (state(&setup.store).await, setup.sink.events().len());

                setup.steps.stop_after(stop);
                let finished = setup.steps.run(operation(&setup.audited)).await;
                setup.steps.go_on();
                if let Some(result) = &finished {
                    assert!(result.is_ok(), "{context}: {result:?}");
                }

                let left = setup.sink.open_intents();
                // Before the lease ends, nothing is resolved.
                let other = another(&setup.store, &setup.sink);
                assert_eq!(other.resolve_left().await, Ok(Resolved::default()), "{context}");
                advance(TIMING.lease).await;
                let resolved = other.resolve_left().await.expect("the audit log is there");
                assert_eq!(resolved.failed, 0, "{context}");
                // New properties under a new tag, and nothing that says whether the content is still the same.
                let is_unclear = name == "properties" && kind.checksums.is_empty() && !kind.tags_by_content;
                assert!(resolved.observed == 0 || is_unclear, "{context}");

                let changed = state(&setup.store).await != before;
                let new: Vec<_> = setup.sink.events().split_off(events);
                assert_eq!(new.len(), usize::from(changed), "{context}: {new:?}");
                setup.assert_recorded(&context);
                assert_eq!(setup.sink.open_intents(), [], "{context}");
                let uploads = setup.store.uploads();
                let is_left = left.iter().any(|intent| intent.upload.as_ref().is_some_and(|it| uploads.contains(it)));
                assert!(!is_left, "{context}: {uploads:?}");
                outcomes.push(changed);
                if finished.is_some() {
                    break;
                }
            }
            // At first nothing is changed, in the end it is, and never the other way round.
            assert!(outcomes.is_sorted() && !outcomes[0] && outcomes[outcomes.len() - 1], "{name}: {outcomes:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_change_of_an_item_resolves_what_was_left_of_it() {
    for kind in kinds() {
        for stop in 0..12 {
            let context = format!("{stop} steps, {kind:?}");
            let setup = filled(&kind).await;
            setup.steps.stop_after(stop);
            setup.steps.run(setup.audited.put(&item("old"), chunks(b"first"), Put::default())).await;
            setup.steps.go_on();
            advance(TIMING.lease).await;

            let other = another(&setup.store, &setup.sink);
            other.put(&item("old"), chunks(b"second"), Put::default()).await.expect("it is written");
            assert_eq!(&setup.store.contents()[&item("old")][..], b"second", "{context}");
            setup.assert_recorded(&context);
            assert_eq!(setup.sink.open_intents(), [], "{context}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_resolves_may_die_too() {
    for kind in kinds() {
        for stop in 0..12 {
            for stop_again in 0..6 {
                let context = format!("{stop} steps, then {stop_again}, {kind:?}");
                let setup = filled(&kind).await;
                setup.steps.stop_after(stop);
                setup.steps.run(setup.audited.put(&item("new"), chunks(b"content"), Put::default())).await;
                setup.steps.stop_after(stop_again);
                advance(TIMING.lease).await;
                setup.steps.run(another(&setup.store, &setup.sink).resolve_left()).await;
                setup.steps.go_on();
                advance(TIMING.lease).await;
                another(&setup.store, &setup.sink).resolve_left().await.expect("the audit log is there");
                setup.assert_recorded(&context);
                assert_eq!(setup.sink.open_intents(), [], "{context}");
                let events = setup.sink.events();
                let events = events.iter().filter(|(intent, _)| intent.subject.key == Some(item("new").key));
                assert!(events.count() <= 1, "{context}");
            }
        }
    }
}

/// Content that is written anew as it was, under a tag that is made of the content: whether its properties were
/// replaced cannot be known.
#[tokio::test(start_paused = true)]
async fn what_is_not_known_is_observed() {
    let kind = StoreKind { tags_by_content: true, ..StoreKind::default() };
    let mut seen = Vec::new();
    for stop in 0..12 {
        let setup = filled(&kind).await;
        let events = setup.sink.events().len();
        setup.steps.stop_after(stop);
        setup.steps.run(setup.audited.put(&item("old"), chunks(b"old content"), Put::default())).await;
        setup.steps.go_on();
        advance(TIMING.lease).await;
        another(&setup.store, &setup.sink).resolve_left().await.expect("the audit log is there");
        setup.assert_recorded("the same content");
        let events = setup.sink.events().split_off(events);
        seen.push(match &events[..] {
            [] => "none",
            [(_, Settlement::Observed { .. })] => "observed",
            [(_, Settlement::Done { change: Change::Update, .. })] => "done",
            other => panic!("{other:?}"),
        });
    }
    seen.dedup();
    assert_eq!(seen, ["none", "observed", "done"]);
}

/// A foreign change between the death and the resolution.
#[tokio::test(start_paused = true)]
async fn what_someone_else_wrote_meanwhile_is_observed() {
    let setup = filled(&StoreKind::default()).await;
    // Its intent and its digests are written, its content is not.
    setup.steps.stop_after(4);
    setup.steps.run(setup.audited.put(&item("old"), chunks(b"mine"), Put::default())).await;
    setup.steps.go_on();
    assert_eq!(&setup.store.contents()[&item("old")][..], b"old content");
    assert_eq!(setup.sink.open_intents()[0].size, Some(4));
    setup.store.plant(&item("old"), b"theirs");
    advance(TIMING.lease).await;
    let resolved = setup.audited.resolve_left().await;
    assert_eq!(resolved, Ok(Resolved { observed: 1, ..Resolved::default() }));
    setup.assert_recorded("a foreign change");
}
