//! Content that is read from a copy, in place of the store that it is a copy of.

use std::io;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::index::Copy;
use queuekeeper_store::store::{Chunks, Content, EntityTag, Item, Store};
use queuekeeper_store::{Digest, Error, ErrorKind, Hashers, StoreName};

/// A store that is read in place of another one.
pub(super) struct Elsewhere {
    pub(super) catalogue: Catalogue,
    pub(super) copy: Arc<dyn Store>,
}

impl Elsewhere {
    /// The content that a store has in a state, from the copy; `None` where that has not the same by the content index,
    /// or cannot be read.
    ///
    /// # Errors
    /// Where the copy can be read later.
    pub(super) async fn get(
        &self,
        store: &StoreName,
        item: &Item,
        state: &EntityTag,
    ) -> Result<Option<Content>, Error> {
        let Some((expected, there)) = self.same(store, item, state).await else { return Ok(None) };
        match self.copy.get(item, None, there.etag.as_ref()).await {
            Ok(Content { properties, chunks }) => {
                let damaged = format!("{item} differs from its record in {}", self.copy.name());
                Ok(Some(Content { properties, chunks: checked(chunks, expected, damaged) }))
            }
            Err(error @ Error { kind: ErrorKind::NotYet(_), .. }) => Err(error),
            Err(error) => {
                tracing::warn!(%error, %item, %store, "cannot read the copy; reading from the store itself");
                Ok(None)
            }
        }
    }

    /// The copy of what a store has in a state, by the content index, and a digest of both.
    async fn same(&self, store: &StoreName, item: &Item, state: &EntityTag) -> Option<(Digest, Copy)> {
        let (own, there) = (self.known(store, item).await?, self.known(self.copy.name(), item).await?);
        let is_same = own.size == there.size && own.digests.agree(&there.digests) == Some(true);
        if own.etag.as_ref() != Some(state) || !is_same {
            return None;
        }
        let expected = own.digests.iter().find(|digest| there.digests.get(digest.algorithm()).is_some())?.clone();
        Some((expected, there))
    }

    /// What the content index has of an item that is in a store.
    async fn known(&self, store: &StoreName, item: &Item) -> Option<Copy> {
        self.catalogue.copy(store, item).await.ok().flatten().filter(|copy| !copy.is_deleted)
    }
}

/// The same content, which ends with an error where it has another digest: so the fault is found with the store that
/// has it.
fn checked(chunks: Chunks, expected: Digest, damaged: String) -> Chunks {
    let hashers = Hashers::new([expected.algorithm()]);
    let parts = Some((chunks, hashers, expected, damaged));
    stream::unfold(parts, |parts| async move {
        let (mut chunks, mut hashers, expected, damaged) = parts?;
        match chunks.next().await {
            Some(Ok(chunk)) => {
                hashers.update(&chunk);
                Some((Ok(chunk), Some((chunks, hashers, expected, damaged))))
            }
            Some(Err(error)) => Some((Err(error), None)),
            None => {
                let found = hashers.finish();
                let is_same = found.get(expected.algorithm()) == Some(&expected);
                (!is_same).then(|| (Err(io::Error::other(damaged)), None))
            }
        }
    })
    .boxed()
}
