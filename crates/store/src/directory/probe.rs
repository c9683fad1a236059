//! What the file system can do, by trying it.

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};

use super::DirectoryStore;
use crate::digest::Algorithm;
use crate::error::{Error, ErrorKind, Operation};
use crate::name::SpaceName;
use crate::store::{Capabilities, Condition, EntityTag, Item, PROBE_SPACE, Put, Store as _};

/// What probes write; nothing, on a full disk: an empty file mostly finds a place there.
const CONTENTS: [&[u8]; 2] = [b"probe", b""];

/// How often a probe begins again because its space was deleted under it.
const ATTEMPTS: usize = 100;

/// Writes a file under each condition and deletes it.
pub(super) async fn probe(store: &DirectoryStore) -> Result<Capabilities, Error> {
    let failed = |kind| store.core.failed(Operation::Probe, &PROBE_SPACE, kind);
    let space: SpaceName = PROBE_SPACE.parse().map_err(|_| failed(ErrorKind::NoSpace))?;
    let name = uuid::Uuid::now_v7().to_string();
    let key = name.parse().map_err(|_| failed(ErrorKind::NotFound))?;
    let item = Item::new(space.clone(), key);
    let mut capabilities = Err(failed(ErrorKind::NoSpace));
    // Another process may be probing at the same time, and delete the space at its end before anything of ours is in
    // it.
    for _ in 0..ATTEMPTS {
        match store.create_space(&space).await {
            // It was there, and was deleted before it was looked at.
            Err(Error { kind: ErrorKind::NoSpace, .. }) => continue,
            made => made?,
        };
        capabilities = write(store, &item, CONTENTS[0]).await;
        if matches!(&capabilities, Err(Error { kind: ErrorKind::Full, .. })) {
            // The content may have found a place, and its record none.
            match store.delete(&item, None).await {
                Err(Error { kind: ErrorKind::NoSpace, .. }) => continue,
                deleted => deleted?,
            };
            capabilities = write(store, &item, CONTENTS[1]).await;
        }
        if !matches!(&capabilities, Err(Error { kind: ErrorKind::NoSpace, .. })) {
            break;
        }
    }
    match store.delete(&item, None).await {
        Err(Error { kind: ErrorKind::NoSpace, .. }) | Ok(_) => {}
        Err(error) => return Err(error),
    }
    match store.delete_space(&space).await {
        Err(Error { kind: ErrorKind::NotEmpty | ErrorKind::NoSpace, .. }) | Ok(_) => {}
        Err(error) => return Err(error),
    }
    capabilities
}

async fn write(store: &DirectoryStore, item: &Item, content: &'static [u8]) -> Result<Capabilities, Error> {
    // A record takes space, too.
    let compute = if content.is_empty() { Vec::new() } else { vec![Algorithm::Sha256] };
    let put = async |condition| {
        let content = stream::iter([Ok(Bytes::from_static(content))]).boxed();
        store.put(item, content, Put { condition, compute: compute.clone(), ..Put::default() }).await
    };
    let first = put(Condition::IfAbsent).await?;
    let if_absent = put(Condition::IfAbsent).await.is_err_and(|error| error.is_precondition());
    let other = Condition::IfMatch(EntityTag("0-0-0".to_owned()));
    let second = put(Condition::IfMatch(first.etag.clone())).await?;
    // Where times are coarse, two states of an item look alike.
    let if_match = second.etag != first.etag && put(other).await.is_err_and(|error| error.is_precondition());
    let found = store.head(item).await?;
    let kept = found.is_some_and(|found| !compute.is_empty() && found.checksums == second.digests);
    Ok(Capabilities {
        checksums: if kept { Algorithm::ALL.to_vec() } else { Vec::new() },
        if_absent,
        if_match,
        versions: false,
        object_lock: false,
        minimum_days: 0,
        cold_reads: false,
        refused_keys: Vec::new(),
    })
}
