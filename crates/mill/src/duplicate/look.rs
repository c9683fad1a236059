//! A look at both sides of a copy.

use std::sync::Arc;

use futures::StreamExt as _;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::bit::{AuditHead, IndexEntry};
use queuekeeper_store::SpaceName;
use queuekeeper_store::store::{Item, Properties, Store};

use super::decide::{Record, SpaceState, StoredItem};
use crate::missing::unless_missing;

/// An item in one store: what the store has, what the content index says, and the last event of the audit log.
pub(super) struct Side {
    pub(super) properties: Option<Properties>,
    index: Option<IndexEntry>,
    audit: Option<AuditHead>,
}

impl Side {
    pub(super) async fn look(catalogue: &Catalogue, store: &Arc<dyn Store>, item: &Item) -> Result<Self, String> {
        let properties = unless_missing(store, &item.space, || store.head(item)).await?.flatten();
        let records = catalogue.records_of_item(store.name(), item).await.map_err(|error| error.to_string())?;
        let (index, audit) = records.map_or((None, None), |records| (records.index, records.audit));
        Ok(Self { properties, index, audit })
    }

    /// Whether all that is recorded is of the state that the store has. Where only the audit log has a record, which
    /// has no entity tag, a checksum of the store says so.
    pub(super) fn is_as_recorded(&self) -> bool {
        let Some(properties) = &self.properties else { return false };
        let is_of_audit = self.audit.as_ref().is_none_or(|audit| {
            let is_same = audit.digests.agree(&properties.checksums);
            let is_alike = match &self.index {
                Some(index) => is_same != Some(false) && audit.digests.agree(&index.digests) != Some(false),
                None => is_same == Some(true),
            };
            !audit.is_deleted && audit.size == properties.size && is_alike
        });
        let is_of_index = self.index.as_ref().is_none_or(|index| {
            let is_same = index.digests.agree(&properties.checksums);
            let is_marked = index.etag.as_ref() == Some(&properties.etag);
            !index.is_deleted
                && index.size == properties.size
                && (is_same == Some(true) || is_marked && is_same.is_none())
        });
        self.is_recorded() && is_of_audit && is_of_index
    }

    /// Whether anything is recorded of it, if only that it was deleted.
    pub(super) fn is_recorded(&self) -> bool {
        self.index.is_some() || self.audit.is_some()
    }

    /// The number of the last event.
    pub(super) fn seq(&self) -> Option<u64> {
        self.index.as_ref().map(|index| index.seq).or(self.audit.as_ref().map(|audit| audit.seq))
    }

    /// Whether what was seen lasts: no change of the item is under way in its store, and a second look sees the same.
    /// Between a change and its record, the one who looks finds both apart.
    pub(super) async fn is_at_rest(
        &self,
        catalogue: &Catalogue,
        store: &Arc<dyn Store>,
        item: &Item,
    ) -> Result<bool, String> {
        if catalogue.is_changing(store.name(), item).await.map_err(|error| error.to_string())? {
            return Ok(false);
        }
        let again = Self::look(catalogue, store, item).await?;
        let etag = |side: &Self| side.properties.as_ref().map(|properties| properties.etag.clone());
        Ok(etag(self) == etag(&again) && self.seq() == again.seq())
    }

    /// What is certain of the content.
    pub(super) fn seen(&self) -> Option<StoredItem> {
        let properties = self.properties.as_ref()?;
        let mut digests = properties.checksums.clone();
        if self.is_as_recorded() {
            let of_index = self.index.iter().map(|index| &index.digests);
            for recorded in of_index.chain(self.audit.iter().map(|audit| &audit.digests)) {
                digests.extend(recorded.iter().cloned());
            }
        }
        Some(StoredItem { size: properties.size, digests, user: properties.user.clone() })
    }

    /// What both records say: one alone does not make an item deleted.
    pub(super) fn record(&self) -> Record {
        let index = self.index.as_ref().map(|index| index.is_deleted);
        let audit = self.audit.as_ref().map(|audit| audit.is_deleted);
        match (index, audit) {
            (None, None) => Record::Never,
            (Some(false), _) | (_, Some(false)) => Record::Living,
            (Some(true), _) | (None, Some(true)) => Record::Deleted,
        }
    }
}

/// A look at a space.
pub(super) async fn space(store: &Arc<dyn Store>, space: &SpaceName) -> Result<SpaceState, String> {
    let first = || async { store.list(space, b"", None).next().await.transpose() };
    Ok(match unless_missing(store, space, first).await? {
        Some(Some(_)) => SpaceState::Full,
        // A store may list a space that it does not have as an empty one.
        Some(None) if store.spaces().await.map_err(|error| error.to_string())?.contains(space) => SpaceState::Empty,
        Some(None) | None => SpaceState::Missing,
    })
}
