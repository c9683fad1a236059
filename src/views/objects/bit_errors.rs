//! The open bit errors of an object: in every store that has a copy of it, the one that it was written to as well.

use std::collections::BTreeSet;

use queuekeeper_catalogue::inventory::Object;
use queuekeeper_mill::copies::{owner, within, wrong_keys};
use queuekeeper_store::ocfl::Root;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{Objects, SOON, unavailable};
use crate::views::error::ViewError;
use crate::views::mill::BitErrorItem;

/// How many of them are shown.
const SHOWN: usize = 20;

/// A file of an object of which a copy is not what was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ObjectBitError {
    /// Its path in the folder of the object.
    #[schema(example = "v1/content/producer/page-1.tif")]
    pub(crate) path: String,
    /// What is wrong with its copy, in which store, since when, and what becomes of it.
    #[serde(flatten)]
    pub(crate) error: BitErrorItem,
}

/// Those of an object.
#[derive(Debug, Default)]
pub(super) struct OfObject {
    /// The first ones, at most 20.
    pub(super) shown: Vec<ObjectBitError>,
    /// How many there are.
    pub(super) count: u64,
}

impl Objects {
    /// The open bit errors of an object; none where there is no mill, or its collection has no valid profile.
    ///
    /// # Errors
    /// When the catalogue cannot be read, or does not answer soon.
    pub(super) async fn bit_errors(&self, object: &Object) -> Result<OfObject, ViewError> {
        timeout(SOON, self.find_bit_errors(object)).await.map_err(ViewError::late)?
    }

    async fn find_bit_errors(&self, object: &Object) -> Result<OfObject, ViewError> {
        let mut of_object = OfObject::default();
        let Some(copied) = &self.copied else { return Ok(of_object) };
        let place = (copied.places)(&object.collection);
        let Some(((store, space), folder)) = place.zip(Root::folder_of(&object.ark).ok()) else {
            return Ok(of_object);
        };
        let Some((account, _)) = owner(&copied.accounts, &store, &space) else { return Ok(of_object) };
        let Some((behind, last)) = within(&folder) else { return Ok(of_object) };
        for store in account.stores.values().collect::<BTreeSet<_>>() {
            let keys =
                wrong_keys(&self.catalogue, store, &space, &folder).await.map_err(|error| unavailable(&error))?;
            of_object.count += keys.len() as u64;
            let room = SHOWN.saturating_sub(of_object.shown.len()).min(keys.len());
            if room == 0 {
                continue;
            }
            let (range, most) = ((Some(&behind), Some(&last)), u32::try_from(room).unwrap_or(u32::MAX));
            let mut found = self.catalogue.bit_errors_of_part(store, &space, range, most).await;
            if let Ok(found) = &mut found {
                found.retain(|error| error.item.key < last);
            }
            let found = found.map_err(|error| unavailable(&error))?;
            for error in BitErrorItem::of_account(&self.catalogue, account, found).await? {
                let rest = error.key.strip_prefix(&folder).map(|rest| rest.trim_start_matches('/').to_owned());
                of_object.shown.push(ObjectBitError { path: rest.unwrap_or_else(|| error.key.clone()), error });
            }
        }
        Ok(of_object)
    }
}
