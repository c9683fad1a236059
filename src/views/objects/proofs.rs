//! The last proofs of the copies of files.

use jiff::Timestamp;
use queuekeeper_catalogue::inventory::{File, Object};
use queuekeeper_store::Key;
use queuekeeper_store::ocfl::Root;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{ObjectFile, Objects, SOON, unavailable};
use crate::views::error::ViewError;

/// A copy of a file, and when it was last proven.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct FileProof {
    /// The store.
    #[schema(example = "replica")]
    pub(crate) store: String,
    /// When the content there was last proven to be as recorded; null if it was not.
    pub(crate) proven: Option<Timestamp>,
    /// How: `read` or `provider`; null if it was not.
    #[schema(example = "read")]
    pub(crate) proof: Option<String>,
}

impl Objects {
    /// Files of an object with the proofs of their copies; with none if there is no mill, or its collection has no valid profile.
    ///
    /// # Errors
    /// When the catalogue cannot be read, or does not answer soon.
    pub(super) async fn proven(&self, object: &Object, files: &[File]) -> Result<Vec<ObjectFile>, ViewError> {
        let mut shown: Vec<_> = files.iter().map(ObjectFile::from).collect();
        let place = self.copied.as_ref().and_then(|copied| (copied.places)(&object.collection));
        let Some(((_, space), folder)) = place.zip(Root::folder_of(&object.ark).ok()) else { return Ok(shown) };
        let key = |file: &File| Key::new(format!("{folder}/{}", file.content_path).into_bytes()).ok();
        let keys: Vec<_> = files.iter().map(key).collect();
        let wanted: Vec<_> = keys.iter().flatten().cloned().collect();
        let late = |_| ViewError::Unavailable("The catalogue did not answer within a second.".to_owned());
        let found = timeout(SOON, self.catalogue.items_of(&space, &wanted)).await.map_err(late)?;
        let found = found.map_err(|error| unavailable(&error))?;
        for (file, key) in shown.iter_mut().zip(&keys) {
            let at = key.as_ref().and_then(|key| found.binary_search_by(|item| item.key.cmp(key)).ok());
            let item = at.and_then(|at| found.get(at));
            let living = item.iter().flat_map(|item| &item.copies).filter(|copy| !copy.is_deleted);
            let proof = living.map(|copy| {
                let (proven, proof) = copy.proven.clone().unzip();
                FileProof { store: copy.store.to_string(), proven, proof }
            });
            file.proofs = proof.collect();
        }
        Ok(shown)
    }
}
