//! What storing and cleaning up change in a store, in the audit log and the content index.
//!
//! The changes of one version are noted while they are made, and recorded together: an intent in the catalogue says
//! that the job may be storing the object, so that nothing else is written before. Where a process dies before its
//! notes are recorded, the job's next attempt, or cleanup, compares what the store has of the object with the index.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::index::{Copy, IndexedItem};
use queuekeeper_store::audit::Change;
use queuekeeper_store::noted::{NotedChange, Notes};
use queuekeeper_store::store::{Item, Listed, Properties, Written};
use queuekeeper_store::{Algorithm, Digest, Digests, Error, ErrorKind, Hashers, Key, Noted, SpaceName, Store};

use crate::step::StepError;

/// The user under whose name daemons change content.
pub(crate) const INGEST: &str = "ingest";

/// How many changes are noted at most before they are recorded.
const PART: usize = 500;

/// How often an item is looked at that others change and record at the same time.
const LOOKS: u32 = 5;

/// How many items of the index are read at once.
const PAGE: u32 = 1_000;

/// Records what was noted, where that is much.
///
/// # Errors
/// When the catalogue or the store does not answer; what was noted is kept.
pub(crate) async fn settle_part(catalogue: &Catalogue, noted: &Noted) -> Result<(), StepError> {
    if noted.len() < PART { Ok(()) } else { settle(catalogue, noted).await }
}

/// Records what was noted, in one transaction where nothing is unclear.
///
/// # Errors
/// When the catalogue or the store does not answer; what was noted is kept.
pub(crate) async fn settle(catalogue: &Catalogue, noted: &Noted) -> Result<(), StepError> {
    let notes = noted.take();
    if notes.is_empty() {
        return Ok(());
    }
    let recorded = record(catalogue, noted.store(), &notes).await;
    if recorded.is_err() {
        noted.give_back(notes);
    }
    recorded
}

async fn record(catalogue: &Catalogue, store: &Arc<dyn Store>, notes: &Notes) -> Result<(), StepError> {
    let mut unclear = catalogue.record_changes(store.name(), INGEST, &notes.made).await?;
    unclear.extend(notes.unsure.iter().cloned());
    look_at(catalogue, store, unclear).await
}

/// Looks at items, and records those that the index does not have as they are.
///
/// # Errors
/// When the catalogue or the store does not answer.
pub(crate) async fn look_at(
    catalogue: &Catalogue,
    store: &Arc<dyn Store>,
    mut items: BTreeSet<Item>,
) -> Result<(), StepError> {
    for _look in 0..LOOKS {
        let mut changes = Vec::new();
        for item in &items {
            // First: what is recorded later was changed later.
            let copy = catalogue.copy(store.name(), item).await?;
            changes.extend(difference(store, item, copy.filter(|copy| !copy.is_deleted)).await?);
        }
        items = catalogue.record_changes(store.name(), INGEST, &changes).await?;
        if items.is_empty() {
            return Ok(());
        }
    }
    Err(StepError::temporary("another writer keeps changing the stored content, so it cannot be recorded"))
}

/// What became of an item since the index knows it.
async fn difference(
    store: &Arc<dyn Store>,
    item: &Item,
    known: Option<Copy>,
) -> Result<Option<NotedChange>, StepError> {
    let found = match store.head(item).await {
        Err(Error { kind: ErrorKind::NoSpace, .. }) => None,
        found => found.map_err(StepError::temporary)?,
    };
    let is_known = |found: &Properties| {
        known.as_ref().is_some_and(|known| known.size == found.size && known.etag.as_ref() == Some(&found.etag))
    };
    let (change, after) = match found {
        Some(found) if is_known(&found) => return Ok(None),
        Some(found) => {
            let change = if known.is_some() { Change::Update } else { Change::Add };
            (change, Some(written(store, item, found).await?))
        }
        None if known.is_some() => (Change::Delete, None),
        None => return Ok(None),
    };
    let seen = known.and_then(|known| known.etag);
    Ok(Some(NotedChange { space: item.space.clone(), key: Some(item.key.clone()), change, seen, after }))
}

/// What lies there, with digests by which a copy of it can be compared.
async fn written(store: &Arc<dyn Store>, item: &Item, found: Properties) -> Result<Written, StepError> {
    let Properties { size, etag, checksums, .. } = found;
    if checksums.iter().map(Digest::algorithm).any(Algorithm::is_strong) {
        return Ok(Written { size, etag, digests: checksums });
    }
    let content = store.get(item, None, Some(&etag)).await.map_err(StepError::temporary)?;
    let mut hashers = Hashers::new([Algorithm::Sha256, Algorithm::Sha512]);
    let mut chunks = content.chunks;
    while let Some(chunk) = chunks.try_next().await.map_err(StepError::temporary)? {
        hashers.update(&chunk);
    }
    let digests: Digests = hashers.finish();
    Ok(Written { size, etag, digests })
}

/// Compares what a store has below a folder with the index, and records what differs.
///
/// # Errors
/// When the catalogue or the store does not answer.
pub(crate) async fn compare(
    catalogue: &Catalogue,
    store: &Arc<dyn Store>,
    space: &SpaceName,
    folder: &str,
) -> Result<(), StepError> {
    let prefix = format!("{folder}/");
    let after = prefix.parse::<Key>().map_err(StepError::permanent)?;
    let mut index =
        Index { catalogue, store, space, prefix: &prefix, after: Some(after), page: Vec::new().into_iter() };
    let mut listing = store.list(space, prefix.as_bytes(), None);
    let mut unclear = BTreeSet::new();
    let mut known = index.next().await?;
    loop {
        let listed = match listing.next().await {
            None | Some(Err(Error { kind: ErrorKind::NoSpace, .. })) => None,
            Some(listed) => Some(listed.map_err(StepError::temporary)?),
        };
        // What the index has and the store has not.
        while let Some((key, _)) = known.take_if(|(key, _)| listed.as_ref().is_none_or(|listed| *key < listed.key)) {
            unclear.insert(Item::new(space.clone(), key));
            known = index.next().await?;
        }
        let Some(listed) = listed else { break };
        let is_known = match known.take_if(|(key, _)| *key == listed.key) {
            None => false,
            Some((_, copy)) => {
                known = index.next().await?;
                is_as_recorded(&listed, &copy)
            }
        };
        if !is_known {
            unclear.insert(Item::new(space.clone(), listed.key));
        }
        if unclear.len() >= PART {
            look_at(catalogue, store, std::mem::take(&mut unclear)).await?;
        }
    }
    look_at(catalogue, store, unclear).await
}

fn is_as_recorded(listed: &Listed, known: &Copy) -> bool {
    listed.size == known.size && listed.etag.is_some() && listed.etag == known.etag
}

/// What the index has of a store below a folder that was not deleted, in the order of keys.
struct Index<'a> {
    catalogue: &'a Catalogue,
    store: &'a Arc<dyn Store>,
    space: &'a SpaceName,
    prefix: &'a str,
    /// The last key that was read; `None` at the end.
    after: Option<Key>,
    page: std::vec::IntoIter<IndexedItem>,
}

impl Index<'_> {
    async fn next(&mut self) -> Result<Option<(Key, Copy)>, StepError> {
        loop {
            for IndexedItem { key, copies } in self.page.by_ref() {
                if !key.as_bytes().starts_with(self.prefix.as_bytes()) {
                    self.after = None;
                    return Ok(None);
                }
                let copy = copies.into_iter().find(|copy| copy.store == *self.store.name() && !copy.is_deleted);
                if let Some(copy) = copy {
                    return Ok(Some((key, copy)));
                }
            }
            let Some(after) = &self.after else { return Ok(None) };
            let page = self.catalogue.items(self.space, Some(after), PAGE).await?;
            self.after = page.last().map(|last| last.key.clone());
            self.page = page.into_iter();
        }
    }
}
