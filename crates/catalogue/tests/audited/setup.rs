//! A directory and a catalogue, and the comparison of what both say.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::audit::{Event, EventKind};
use queuekeeper_store::audit::{AuditSink, Change};
use queuekeeper_store::audited::{Audited, Resolved, Timing};
use queuekeeper_store::store::{Capabilities, Chunks, Item};
use queuekeeper_store::{Algorithm, Digest, DirectoryStore, Hashers, SpaceName, Store as _};
use sqlx::{Connection as _, PgConnection, SqliteConnection};

/// Longer than any test takes: what was left is recognized by the end of a lease that a test ends by hand.
const TIMING: Timing = Timing { lease: Duration::from_mins(10), wait_limit: Duration::from_mins(1) };

/// A directory and the database of a catalogue.
pub(super) struct AuditedCatalogue {
    pub(super) top: PathBuf,
    pub(super) url: String,
    store: Arc<DirectoryStore>,
    capabilities: Capabilities,
}

pub(super) fn spaces() -> [SpaceName; 2] {
    ["space", "empty"].map(|name| name.parse().unwrap())
}

pub(super) fn item(key: &str) -> Item {
    Item::new(spaces()[0].clone(), key.parse().unwrap())
}

/// Content that differs, in size too, by its number.
pub(super) fn chunks(number: usize) -> Chunks {
    let line = Bytes::from(format!("content {number}\n"));
    stream::iter((0..=number % 500).map(move |_| Ok(line.clone()))).boxed()
}

/// The size and the digest of an item.
type Fixity = (u64, String);

impl AuditedCatalogue {
    pub(super) async fn open(top: PathBuf, url: String) -> Self {
        let store = Arc::new(DirectoryStore::open("main".parse().unwrap(), top.clone()).await.unwrap());
        let capabilities = store.probe().await.unwrap();
        Self { top, url, store, capabilities }
    }

    pub(super) async fn catalogue(&self) -> Catalogue {
        Catalogue::open(&self.url).await.unwrap()
    }

    pub(super) fn audited(&self, sink: Arc<dyn AuditSink>) -> Audited<DirectoryStore> {
        Audited::new(self.store.clone(), &self.capabilities, sink, "ada").with_timing(TIMING)
    }

    pub(super) async fn events(&self) -> Vec<Event> {
        let catalogue = self.catalogue().await;
        let (mut all, mut after) = (Vec::new(), 0);
        loop {
            let events = catalogue.events_after(after, 1000).await.unwrap();
            let Some(last) = events.last() else { break };
            after = last.seq;
            all.extend(events);
        }
        catalogue.close().await;
        all
    }

    /// Ends the leases of dead processes, and resolves what they left.
    pub(super) async fn resolve(&self) -> Resolved {
        self.run("UPDATE intents SET lease_end = 0").await;
        let catalogue = self.catalogue().await;
        let resolved = self.audited(Arc::new(catalogue.clone())).resolve_left().await.unwrap();
        assert_eq!(catalogue.check().await.unwrap(), [], "the catalogue contradicts itself");
        catalogue.close().await;
        assert_eq!(self.run("DELETE FROM intents").await, 0, "an intent is still open");
        resolved
    }

    /// Changes the database behind the catalogue's back; returns how many rows.
    async fn run(&self, sql: &'static str) -> u64 {
        if self.url.starts_with("sqlite:") {
            let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
            let done = sqlx::query(sql).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
            done.rows_affected()
        } else {
            let mut connection = PgConnection::connect(&self.url).await.unwrap();
            let done = sqlx::query(sql).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
            done.rows_affected()
        }
    }

    /// What is in the directory.
    async fn contents(&self) -> BTreeMap<Item, Fixity> {
        let mut items = BTreeMap::new();
        if !self.store.spaces().await.unwrap().contains(&spaces()[0]) {
            return items;
        }
        let mut listing = self.store.list(&spaces()[0], b"", None);
        while let Some(listed) = listing.try_next().await.unwrap() {
            let item = Item::new(spaces()[0].clone(), listed.key);
            let mut hashers = Hashers::new([Algorithm::Sha256]);
            let mut content = self.store.get(&item, None, None).await.unwrap();
            while let Some(chunk) = content.chunks.try_next().await.unwrap() {
                hashers.update(&chunk);
            }
            let (size, digests) = (hashers.bytes(), hashers.finish());
            items.insert(item, (size, digests.get(Algorithm::Sha256).unwrap().hex()));
        }
        items
    }

    /// Fails unless the audit log says what the directory has. Returns its events.
    pub(super) async fn assert_recorded(&self, context: &str) -> Vec<Event> {
        let events = self.events().await;
        let mut items = BTreeMap::new();
        let mut made = Vec::new();
        for event in &events {
            match (&event.kind, &event.subject.key) {
                (EventKind::Made(Change::CreateSpace), None) => made.push(event.subject.space.clone()),
                (EventKind::Made(Change::DeleteSpace), None) => made.retain(|space| *space != event.subject.space),
                (EventKind::Made(Change::Delete), Some(key)) => {
                    let item = Item::new(event.subject.space.clone(), key.clone());
                    assert!(items.remove(&item).is_some(), "{context}: {item} was deleted twice");
                }
                (EventKind::Made(_), Some(key)) => {
                    let item = Item::new(event.subject.space.clone(), key.clone());
                    let digest = event.digests.get(Algorithm::Sha256).map(Digest::hex).unwrap();
                    items.insert(item, (event.size.unwrap(), digest));
                }
                _ => panic!("{context}: {event:?}"),
            }
        }
        assert_eq!(items, self.contents().await, "{context}");
        made.sort();
        let mut spaces = self.store.spaces().await.unwrap();
        spaces.retain(|space| !space.is_reserved());
        spaces.sort();
        assert_eq!(made, spaces, "{context}");
        events
    }
}
