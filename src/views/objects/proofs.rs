//! The last proofs of the copies of files.

use std::collections::BTreeSet;

use jiff::Timestamp;
use queuekeeper_catalogue::inventory::{File, Object};
use queuekeeper_mill::copies::owner;
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
    /// The number of its open bit error; null where it has none.
    pub(crate) bit_error: Option<u64>,
    /// When the content there was last proven to be as recorded; null where it was not, or has an open bit error.
    pub(crate) proven: Option<Timestamp>,
    /// How: `read` or `provider`; likewise.
    #[schema(example = "read")]
    pub(crate) proof: Option<String>,
}

impl Objects {
    /// Files of an object with the proofs of their copies; with none if there is no mill, or its collection has no
    /// valid profile.
    ///
    /// # Errors
    /// When the catalogue cannot be read, or does not answer soon.
    pub(super) async fn proven(&self, object: &Object, files: &[File]) -> Result<Vec<ObjectFile>, ViewError> {
        let mut shown: Vec<_> = files.iter().map(ObjectFile::from).collect();
        let Some(copied) = &self.copied else { return Ok(shown) };
        let place = (copied.places)(&object.collection);
        let Some(((store, space), folder)) = place.zip(Root::folder_of(&object.ark).ok()) else { return Ok(shown) };
        let account = owner(&copied.accounts, &store, &space).map(|(account, _)| account);
        let stores: BTreeSet<_> = account.into_iter().flat_map(|account| account.stores.values()).collect();
        let key = |file: &File| Key::new(format!("{folder}/{}", file.content_path).into_bytes()).ok();
        let keys: Vec<_> = files.iter().map(key).collect();
        let wanted: Vec<_> = keys.iter().flatten().cloned().collect();
        let both = async {
            tokio::try_join!(
                self.catalogue.items_of(&space, &wanted),
                self.catalogue.bit_errors_of_keys(stores, &space, &wanted),
            )
        };
        let (found, wrong) =
            timeout(SOON, both).await.map_err(ViewError::late)?.map_err(|error| unavailable(&error))?;
        for (file, key) in shown.iter_mut().zip(&keys) {
            let at = key.as_ref().and_then(|key| found.binary_search_by(|item| item.key.cmp(key)).ok());
            let item = at.and_then(|at| found.get(at));
            let living = item.iter().flat_map(|item| &item.copies).filter(|copy| !copy.is_deleted);
            let proof = living.map(|copy| {
                let bit_error = key.as_ref().and_then(|key| wrong.get(&(copy.store.clone(), key.clone())).copied());
                let (proven, proof) = copy.proven.clone().filter(|_| bit_error.is_none()).unzip();
                FileProof { store: copy.store.to_string(), bit_error, proven, proof }
            });
            file.proofs = proof.collect();
        }
        Ok(shown)
    }
}
