//! Whether a space is gone, or only cannot be seen.

use std::sync::Arc;

use queuekeeper_store::{SpaceName, Store};

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
