//! The copies of an object in other stores.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use queuekeeper_catalogue::inventory::Object;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::copies::{MissingCopy, Original, StoreCopies, copies};
use queuekeeper_store::ocfl::Root;
use queuekeeper_store::{SpaceName, StoreName};
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{Objects, SOON, unavailable};
use crate::views::error::ViewError;
use crate::views::show::counted;

/// The copy of an object in a store.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ObjectCopy {
    /// The store.
    #[schema(example = "replica")]
    pub(crate) store: String,
    /// Whether all that the object has is there, as far as is recorded, and none of it has an open bit error.
    pub(crate) is_complete: bool,
    /// When the last of it came; null where it is not complete.
    pub(crate) complete_since: Option<Timestamp>,
    /// Whether a policy requires the object there.
    pub(crate) is_wanted: bool,
    /// How many of its files are there, inventories and other files of its folder included.
    pub(crate) files_there: u64,
    /// How many files of the copy have an open bit error; `bit_errors` of the object has them.
    pub(crate) bit_errors: u64,
    /// How many are to be there; of a very large object, of the first 10,000.
    pub(crate) files: u64,
    /// How many more it has, which are left out there by the limits of the account.
    pub(crate) files_left_out: u64,
    /// Some of those that are missing or differ, at most 3.
    pub(crate) missing: Vec<MissingFile>,
}

/// A file of an object that is missing from a store or differs there.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct MissingFile {
    /// Its path in the folder of the object.
    #[schema(example = "v1/inventory.json")]
    pub(crate) path: String,
    /// Why, as the predicate of a sentence about the copy.
    #[schema(example = "waits in duplication-high for a worker")]
    pub(crate) why: String,
}

/// Where the objects of a collection lie.
pub(crate) type Places = Arc<dyn Fn(&str) -> Option<(StoreName, SpaceName)> + Send + Sync>;

/// Whose objects are copied, and where these lie.
#[derive(Clone)]
pub(super) struct Copied {
    pub(super) accounts: Arc<BTreeMap<String, Account>>,
    pub(super) places: Places,
}

impl std::fmt::Debug for Copied {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Copied").field("accounts", &self.accounts).finish_non_exhaustive()
    }
}

impl Objects {
    /// Shows the copies, too, that the mill makes for these accounts.
    #[must_use]
    pub(crate) fn with_copies(self, accounts: BTreeMap<String, Account>, places: Places) -> Self {
        Self { copied: Some(Copied { accounts: Arc::new(accounts), places }), ..self }
    }

    /// The copies of an object; none if there is no mill, or its collection has no valid profile.
    ///
    /// # Errors
    /// When the catalogue cannot be read, or does not answer soon.
    pub(super) async fn copies(&self, object: &Object) -> Result<Vec<ObjectCopy>, ViewError> {
        let Some(copied) = &self.copied else { return Ok(Vec::new()) };
        let place = (copied.places)(&object.collection);
        let Some(((store, space), folder)) = place.zip(Root::folder_of(&object.ark).ok()) else {
            return Ok(Vec::new());
        };
        let original = Original { store: &store, space: &space, folder: &folder };
        let found =
            timeout(SOON, copies(&self.catalogue, &copied.accounts, &original)).await.map_err(ViewError::late)?;
        let found = found.map_err(|error| unavailable(&error))?;
        Ok(found.into_iter().map(|of| ObjectCopy::new(of, &folder)).collect())
    }
}

impl ObjectCopy {
    fn new(of: StoreCopies, folder: &str) -> Self {
        let StoreCopies { store, is_wanted, there, wrong, of, left_out, complete_since, missing } = of;
        let path =
            |key: String| key.strip_prefix(folder).map_or(key.clone(), |rest| rest.trim_start_matches('/').to_owned());
        let missing =
            missing.into_iter().map(|MissingCopy { key, why }| MissingFile { path: path(key.to_string()), why });
        Self {
            store: store.to_string(),
            is_complete: there == of && wrong == 0,
            bit_errors: wrong,
            complete_since,
            is_wanted,
            files_there: there,
            files: of,
            files_left_out: left_out,
            missing: missing.collect(),
        }
    }

    /// How it stands, in words.
    pub(crate) fn state(&self) -> String {
        let wrong = (self.bit_errors > 0).then(|| counted(self.bit_errors, "open bit error", "open bit errors"));
        let state = match (self.is_complete, self.files_there, wrong) {
            (true, ..) => "complete".to_owned(),
            (false, there, Some(wrong)) if there == self.files => wrong,
            (false, there, Some(wrong)) => format!("{wrong}, {there} of {} files", self.files),
            (false, 0, None) => "missing".to_owned(),
            (false, there, None) => format!("{there} of {} files", self.files),
        };
        let state = match self.files_left_out {
            0 => state,
            left_out => format!("{state}, except for {left_out} that are left out"),
        };
        if self.is_wanted { state } else { format!("{state}; no policy requires it there") }
    }

    /// What is missing, and why, in words.
    pub(crate) fn reason(&self) -> String {
        let reasons: Vec<_> = self.missing.iter().map(|file| format!("{}: {}", file.path, file.why)).collect();
        reasons.join("; ")
    }
}
