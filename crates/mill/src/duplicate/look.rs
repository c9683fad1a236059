//! A look at both sides of a copy.

use std::sync::Arc;

use futures::StreamExt as _;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::index::Copy;
use queuekeeper_store::SpaceName;
use queuekeeper_store::store::{Item, Properties, Store};

use super::decide::{Record, Seen, SpaceSeen};
use crate::missing::unless_missing;

/// An item in one store: what the store has, and what the index says.
pub(super) struct Side {
    pub(super) properties: Option<Properties>,
    pub(super) copy: Option<Copy>,
}

impl Side {
    pub(super) async fn look(catalogue: &Catalogue, store: &Arc<dyn Store>, item: &Item) -> Result<Self, String> {
        let properties = unless_missing(store, &item.space, || store.head(item)).await?.flatten();
        let copy = catalogue.copy(store.name(), item).await.map_err(|error| error.to_string())?;
        Ok(Self { properties, copy })
    }

    /// Whether the index is of the state that the store has.
    pub(super) fn is_as_recorded(&self) -> bool {
        let (Some(properties), Some(copy)) = (&self.properties, &self.copy) else { return false };
        !copy.is_deleted
            && copy.size == properties.size
            && copy.digests.agree(&properties.checksums) != Some(false)
            && (copy.etag.as_ref() == Some(&properties.etag) || copy.digests.agree(&properties.checksums) == Some(true))
    }

    /// Whether what was seen lasts: no change of the item is under way in its store, and a second look sees the same. Between a
    /// change and its record, the one who looks finds both apart.
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
        let seq = |side: &Self| side.copy.as_ref().map(|copy| copy.seq);
        Ok(etag(self) == etag(&again) && seq(self) == seq(&again))
    }

    /// What is certain of the content.
    pub(super) fn seen(&self) -> Option<Seen> {
        let properties = self.properties.as_ref()?;
        let mut digests = properties.checksums.clone();
        if let Some(copy) = self.copy.as_ref().filter(|_| self.is_as_recorded()) {
            digests.extend(copy.digests.iter().cloned());
        }
        Some(Seen { size: properties.size, digests, user: properties.user.clone() })
    }

    pub(super) fn record(&self) -> Record {
        match &self.copy {
            None => Record::Never,
            Some(copy) if copy.is_deleted => Record::Deleted,
            Some(_) => Record::Living,
        }
    }
}

/// A look at a space.
pub(super) async fn space(store: &Arc<dyn Store>, space: &SpaceName) -> Result<SpaceSeen, String> {
    let first = || async { store.list(space, b"", None).next().await.transpose() };
    Ok(match unless_missing(store, space, first).await? {
        Some(Some(_)) => SpaceSeen::Full,
        // A store may list a space that it does not have as an empty one.
        Some(None) if store.spaces().await.map_err(|error| error.to_string())?.contains(space) => SpaceSeen::Empty,
        Some(None) | None => SpaceSeen::Missing,
    })
}
