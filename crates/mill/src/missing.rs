//! Whether a space is gone, or only cannot be seen.

use std::pin::Pin;
use std::sync::Arc;

use futures::StreamExt as _;
use queuekeeper_store::store::Listing;
use queuekeeper_store::{ErrorKind, Key, SpaceName, Store};

/// Sees to it that a store which calls a space missing lists its spaces, and that it is not one of them: where a volume is not
/// mounted, each space of it is missing, too.
///
/// # Errors
/// When the spaces cannot be listed, or it is one of them.
pub(crate) async fn confirm_missing(store: &Arc<dyn Store>, space: &SpaceName) -> Result<(), String> {
    let spaces = store.spaces().await.map_err(|error| error.to_string())?;
    if spaces.contains(space) {
        return Err(format!("the store {} has a space {space} and says that it has none", store.name()));
    }
    Ok(())
}

/// The items of a space whose keys begin so, above a key; none where the store does not have the space.
///
/// # Errors
/// When the space cannot be listed.
pub(crate) async fn listing(
    store: &Arc<dyn Store>,
    space: &SpaceName,
    prefix: &[u8],
    after: Option<&Key>,
) -> Result<Listing, String> {
    let mut listing = store.list(space, prefix, after).peekable();
    match Pin::new(&mut listing).peek().await {
        Some(Err(error)) if matches!(error.kind, ErrorKind::NoSpace) => {
            confirm_missing(store, space).await?;
            Ok(futures::stream::empty().boxed())
        }
        Some(Err(error)) => Err(error.to_string()),
        Some(Ok(_)) | None => Ok(listing.boxed()),
    }
}
