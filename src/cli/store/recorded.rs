//! What the catalogue has recorded of an item.

use queuekeeper_catalogue::Catalogue;
use queuekeeper_store::store::{EntityTag, Properties};
use queuekeeper_store::{Digest, Digests};

use super::path::ItemPath;
use crate::cli::exit::{CommandError, FAILED};

/// The state of an item after its last recorded change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) digests: Digests,
    size: u64,
    etag: Option<EntityTag>,
}

impl Recorded {
    /// What is recorded of an item; `None` where nothing is, or that it was deleted.
    pub(super) async fn of(catalogue: &Catalogue, path: &ItemPath) -> Result<Option<Self>, CommandError> {
        let copy = catalogue.copy(&path.store, &path.item).await;
        let copy = copy.map_err(|error| CommandError::new(FAILED, error.to_string()))?;
        let copy = copy.filter(|copy| !copy.is_deleted);
        Ok(copy.map(|copy| Self { digests: copy.digests, size: copy.size, etag: copy.etag }))
    }

    /// That the store has no such item.
    pub(super) fn missing(&self, path: &ItemPath) -> CommandError {
        let digest = self.digests.strongest().map(|digest| format!(", {} {digest}", digest.algorithm()));
        let why = format!(
            "{}: missing: the store does not have it, but the catalogue does ({} bytes{})",
            path.short(),
            self.size,
            digest.unwrap_or_default()
        );
        CommandError::new(FAILED, why)
    }

    /// Whether the store has another state of the item than the recorded one.
    pub(super) fn is_other_than(&self, found: &Properties) -> bool {
        self.etag.as_ref() != Some(&found.etag)
    }

    /// How content differs from what was recorded, if it does, as far as these digests of it show.
    pub(super) fn difference(&self, path: &ItemPath, size: u64, digests: &Digests) -> Option<CommandError> {
        match self.digests.difference(digests) {
            Some((recorded, found)) => Some(changed(path, recorded, found)),
            None if self.size != size => {
                let why = format!("{}: changed: {size} bytes, but {} in the catalogue", path.short(), self.size);
                Some(CommandError::new(FAILED, why))
            }
            None => None,
        }
    }
}

/// Content that is not what the catalogue has recorded.
pub(super) fn changed(path: &ItemPath, recorded: &Digest, found: &Digest) -> CommandError {
    let (path, algorithm) = (path.short(), recorded.algorithm());
    CommandError::new(FAILED, format!("{path}: changed: {algorithm} is {found}, but {recorded} in the catalogue"))
}

/// Content that is not what its store wrote.
pub(super) fn damaged(path: &ItemPath, kept: &Digest, found: &Digest) -> CommandError {
    let (path, algorithm) = (path.short(), kept.algorithm());
    CommandError::new(FAILED, format!("{path}: damaged: {algorithm} is {found}, but the store has {kept}"))
}
