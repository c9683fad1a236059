//! Whether an item needs a look, by what listings and the index say.

use std::pin::Pin;
use std::sync::Arc;

use futures::StreamExt as _;
use queuekeeper_catalogue::index::{Copy, IndexedItem};
use queuekeeper_store::store::{Listed, Listing};
use queuekeeper_store::{ErrorKind, Key, SpaceName, Store, StoreName};

use crate::merge::Both;
use crate::missing::confirm_missing;

/// The items of a space above a key; none where the store does not have the space.
pub(super) async fn listing(store: &Arc<dyn Store>, space: &SpaceName, after: Option<&Key>) -> Result<Listing, String> {
    let mut listing = store.list(space, b"", after).peekable();
    match Pin::new(&mut listing).peek().await {
        Some(Err(error)) if matches!(error.kind, ErrorKind::NoSpace) => {
            confirm_missing(store, space).await?;
            Ok(futures::stream::empty().boxed())
        }
        Some(Err(error)) => Err(error.to_string()),
        Some(Ok(_)) | None => Ok(listing.boxed()),
    }
}

/// Whether an item gets a task: unless both stores have it as the index says, and the index says that they have the same.
pub(super) fn needs_task(
    both: &Both,
    known: Option<&IndexedItem>,
    source: &StoreName,
    destination: &StoreName,
) -> bool {
    let copy = |store: &StoreName| known.and_then(|item| item.copies.iter().find(|copy| copy.store == *store));
    let (from, to) = (copy(source), copy(destination));
    match (&both.source, &both.destination) {
        (Some(here), Some(there)) => {
            let (Some(from), Some(to)) = (from, to) else { return true };
            !is_as_recorded(here, from) || !is_as_recorded(there, to) || from.digests.agree(&to.digests) != Some(true)
        }
        (Some(_), None) => true,
        // What the source never had is foreign: no task changes it.
        (None, Some(_)) => from.is_some(),
        (None, None) => false,
    }
}

fn is_as_recorded(listed: &Listed, copy: &Copy) -> bool {
    let is_same_state = listed.etag.is_some() && listed.etag == copy.etag;
    !copy.is_deleted && copy.size == listed.size && is_same_state
}
