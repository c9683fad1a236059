//! A look at one copy: what its store has, by reading the content or by asking for its properties.

use std::sync::Arc;

use futures::StreamExt as _;
use queuekeeper_store::archive::NotYet;
use queuekeeper_store::store::{Content, EntityTag, Item, Properties, Store};
use queuekeeper_store::{Algorithm, Digest, Error, ErrorKind, Hashers};

use super::verdict::{Fixity, Sighting, Sources};
use crate::missing::unless_missing;
use crate::worker::Lease;

/// Why content is not read that is archived in a store without a restore.
pub(super) const ARCHIVED: &str = "it is archived, but no restore is configured for its store";

/// The digest that is computed of everything that is read, besides those that others have of it.
const ALGORITHM: Algorithm = Algorithm::Sha256;

/// What reading came to.
pub(super) enum Reading {
    /// All of it, and what the store says of exactly that content.
    Read { content: Fixity, store: Fixity },
    /// There is none.
    Missing,
    /// It is not in the state that was named: it was changed meanwhile.
    Changed,
    /// It is archived, and no restore is configured.
    Archived,
    /// It can be read later.
    NotYet(NotYet),
    /// It cannot be read for a reason of its own: one sentence.
    Unreadable(String),
    /// It cannot be read now: one sentence.
    Failed(String),
}

/// Reads the content of an item in a state, hashed by every algorithm that another source has, and SHA-256.
pub(super) async fn read(
    store: &Arc<dyn Store>,
    item: &Item,
    state: &EntityTag,
    sources: &Sources,
    lease: &Lease,
) -> Reading {
    let Content { properties, mut chunks } = match store.get(item, None, Some(state)).await {
        Ok(content) => content,
        Err(Error { kind: ErrorKind::NotFound, .. }) => return Reading::Missing,
        Err(Error { kind: ErrorKind::Precondition, .. }) => return Reading::Changed,
        Err(Error { kind: ErrorKind::Archived, .. }) => return Reading::Archived,
        Err(Error { kind: ErrorKind::NotYet(not_yet), .. }) => return Reading::NotYet(not_yet),
        Err(error @ Error { kind: ErrorKind::Unreadable(_), .. }) => return Reading::Unreadable(error.to_string()),
        Err(error) => return Reading::Failed(error.to_string()),
    };
    lease.progressed();
    let store_says = said(&properties);
    let recorded = [&sources.index, &sources.audit].into_iter().flatten();
    let others = recorded.chain([&store_says]).flat_map(|fixity| fixity.digests.iter());
    let mut hashers = Hashers::new(others.map(Digest::algorithm).chain([ALGORITHM]));
    while let Some(chunk) = chunks.next().await {
        match chunk {
            Ok(chunk) => hashers.update(&chunk),
            Err(error) => {
                return Reading::Failed(format!("{item} cannot be read from {}: {error}", store.name()));
            }
        }
        lease.progressed();
    }
    let content = Fixity { size: hashers.bytes(), digests: hashers.finish() };
    Reading::Read { content, store: store_says }
}

/// What the store says of an item, and in which state that is; the error is one sentence.
pub(super) async fn ask(store: &Arc<dyn Store>, item: &Item) -> Result<(Sighting, Option<EntityTag>), String> {
    let properties = unless_missing(store, &item.space, || store.head(item)).await?.flatten();
    Ok(match properties {
        Some(properties) => (Sighting::Present(said(&properties)), Some(properties.etag)),
        None => (Sighting::Missing, None),
    })
}

/// What a store says of a whole content.
fn said(properties: &Properties) -> Fixity {
    Fixity { size: properties.size, digests: properties.checksums.clone() }
}
