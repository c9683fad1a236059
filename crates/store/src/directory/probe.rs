//! What the file system can do, by trying it.

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};

use super::DirectoryStore;
use crate::digest::Algorithm;
use crate::error::{Error, ErrorKind, Operation};
use crate::name::SpaceName;
use crate::store::{Capabilities, Condition, EntityTag, Item, Put, Store as _};

/// The space that probes are written to, and that is gone afterwards.
const SPACE: &str = "x-queuekeeper-probe";

/// Writes a file under each condition and deletes it.
pub(super) async fn probe(store: &DirectoryStore) -> Result<Capabilities, Error> {
    let failed = |kind| store.core.failed(Operation::Probe, &SPACE, kind);
    let space: SpaceName = SPACE.parse().map_err(|_| failed(ErrorKind::NoSpace))?;
    let name = uuid::Uuid::now_v7().to_string();
    let key = name.parse().map_err(|_| failed(ErrorKind::NotFound))?;
    let item = Item::new(space.clone(), key);
    store.create_space(&space).await?;
    let put = async |condition| {
        let content = stream::iter([Ok(Bytes::from_static(b"probe"))]).boxed();
        store.put(&item, content, Put { condition, compute: vec![Algorithm::Sha256], ..Put::default() }).await
    };
    let tried = async {
        let first = put(Condition::IfAbsent).await?;
        let if_absent = put(Condition::IfAbsent).await.is_err_and(|error| error.is_precondition());
        let other = Condition::IfMatch(EntityTag("0-0-0".to_owned()));
        let second = put(Condition::IfMatch(first.etag.clone())).await?;
        // Where times are coarse, two states of an item look alike.
        let if_match = second.etag != first.etag && put(other).await.is_err_and(|error| error.is_precondition());
        let kept = store.head(&item).await?.is_some_and(|found| found.checksums == second.digests);
        Ok(Capabilities {
            checksums: if kept { Algorithm::ALL.to_vec() } else { Vec::new() },
            if_absent,
            if_match,
            versions: false,
            object_lock: false,
            minimum_days: 0,
            cold_reads: false,
        })
    };
    let capabilities = tried.await;
    store.delete(&item, None).await?;
    // Another process may be probing at the same time.
    match store.delete_space(&space).await {
        Err(Error { kind: ErrorKind::NotEmpty, .. }) | Ok(_) => {}
        Err(error) => return Err(error),
    }
    capabilities
}
