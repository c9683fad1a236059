//! An audited store in memory, and the comparison of its audit log with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use queuekeeper_store::audit::{Change, Settlement};
use queuekeeper_store::audited::{Audited, Timing};
use queuekeeper_store::store::{Chunks, Item, Put, Written};
use queuekeeper_store::{Algorithm, Error, Hashers, SpaceName, Store as _};

use crate::support::memory::{MemoryStore, StoreKind};
use crate::support::sink::MemorySink;
use crate::support::steps::Steps;

pub(super) const TIMING: Timing = Timing { lease: Duration::from_mins(1), wait_limit: Duration::from_secs(10) };

/// An audited store, what is below it, and what it writes to.
pub(super) struct Setup {
    pub(super) steps: Steps,
    pub(super) store: Arc<MemoryStore>,
    pub(super) sink: Arc<MemorySink>,
    pub(super) audited: Audited<MemoryStore>,
}

pub(super) fn setup(kind: StoreKind) -> Setup {
    let steps = Steps::default();
    let store = Arc::new(MemoryStore::new("memory", kind, steps.clone()));
    let sink = Arc::new(MemorySink::new(steps.clone()));
    let audited = another(&store, &sink);
    Setup { steps, store, sink, audited }
}

/// Another process with the same store and audit log.
pub(super) fn another(store: &Arc<MemoryStore>, sink: &Arc<MemorySink>) -> Audited<MemoryStore> {
    Audited::new(store.clone(), &store.capabilities(), sink.clone(), "tester").with_timing(TIMING)
}

pub(super) fn space() -> SpaceName {
    "space".parse().expect("a valid name")
}

pub(super) fn item(key: &str) -> Item {
    Item::new(space(), key.parse().expect("a valid key"))
}

pub(super) fn chunks(content: &'static [u8]) -> Chunks {
    stream::iter(content.chunks(3).map(|chunk| Ok(Bytes::from_static(chunk)))).boxed()
}

pub(super) fn sha256(content: &[u8]) -> String {
    let mut hashers = Hashers::new([Algorithm::Sha256]);
    hashers.update(content);
    hashers.finish().get(Algorithm::Sha256).expect("it was requested").hex()
}

impl Setup {
    /// Writes an item through the audited store.
    pub(super) async fn put(&self, key: &str, content: Chunks, put: Put) -> Result<Written, Error> {
        self.audited.put(&item(key), content, put).await
    }

    /// Fails unless the audit log says what the store has.
    pub(super) fn assert_recorded(&self, context: &str) {
        assert_recorded(&self.sink, &self.store.contents(), context);
    }
}

/// What the audit log says that each item has: its size, and its digest where an event has one.
fn recorded(sink: &MemorySink) -> BTreeMap<Item, (u64, Option<String>)> {
    let mut items = BTreeMap::new();
    for (intent, settlement) in sink.events() {
        let (size, digests) = match settlement {
            Settlement::Done { change: Change::CreateSpace | Change::DeleteSpace, .. } => continue,
            Settlement::Done { size, digests, .. } | Settlement::Observed { size, digests, .. } => (size, digests),
            Settlement::NotDone => panic!("an event of what was not done"),
        };
        let item = Item::new(intent.subject.space, intent.subject.key.expect("a change of an item"));
        match size {
            Some(size) => {
                let digest = digests.get(Algorithm::Sha256).map(queuekeeper_store::Digest::hex);
                items.insert(item, (size, digest))
            }
            None => items.remove(&item),
        };
    }
    items
}

/// Fails unless an audit log says that a store has these items with this content.
pub(super) fn assert_recorded(sink: &MemorySink, contents: &BTreeMap<Item, Bytes>, context: &str) {
    let recorded = recorded(sink);
    assert_eq!(recorded.keys().collect::<Vec<_>>(), contents.keys().collect::<Vec<_>>(), "{context}");
    for (item, content) in contents {
        let (size, digest) = &recorded[item];
        assert_eq!(*size, content.len() as u64, "{context}: {item}");
        if let Some(digest) = digest {
            assert_eq!(*digest, sha256(content), "{context}: {item}");
        }
    }
}
