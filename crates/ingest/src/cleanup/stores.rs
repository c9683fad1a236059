//! What processes left in stores that ended while they wrote: temporary files, uploads in parts, and probes. None of it
//! is content.

use futures::TryStreamExt as _;
use jiff::Timestamp;
use queuekeeper_store::store::{Item, PROBE_SPACE};
use queuekeeper_store::{Error, ErrorKind, SpaceName, Store};
use tracing::{info, warn};

use super::before;
use crate::engine::session::Session;

/// Removes it, of each store, once it is as old as a batch that is removed.
pub(super) async fn sweep(session: &Session) {
    let cutoff = before(session.services.settings.cleanup.after);
    for (name, store) in &session.services.stores {
        session.fence.pass().await;
        let swept = async { Ok::<_, Error>(store.sweep(cutoff).await? + probes(store.as_ref(), cutoff).await?) };
        match swept.await {
            Ok(removed) => {
                session.services.metrics.cleaned("store", usize::try_from(removed).unwrap_or(usize::MAX));
                info!(store = %name, removed, "removed leftovers of interrupted writes from a store");
            }
            Err(error) => warn!(store = %name, %error, "cannot look for leftovers of interrupted writes in a store"),
        }
    }
}

/// Removes old probes, and their space where nothing else is in it.
async fn probes(store: &dyn Store, cutoff: Timestamp) -> Result<u64, Error> {
    let Ok(space) = PROBE_SPACE.parse::<SpaceName>() else { return Ok(0) };
    if !store.spaces().await?.contains(&space) {
        return Ok(0);
    }
    let old = store.list(&space, b"", None).try_filter(|probe| std::future::ready(probe.modified < cutoff));
    let old: Vec<_> = old.map_ok(|probe| Item::new(space.clone(), probe.key)).try_collect().await?;
    for item in &old {
        store.delete(item, None).await?;
    }
    match store.delete_space(&space).await {
        Err(Error { kind: ErrorKind::NotEmpty | ErrorKind::NoSpace, .. }) | Ok(_) => Ok(old.len() as u64),
        Err(error) => Err(error),
    }
}
