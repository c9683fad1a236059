//! Held collections and stores.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::ViewSource;
use crate::mirror::PauseSituation;

/// A held collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct HeldCollection {
    /// Its mnemonic.
    #[schema(example = "cdl_dryaddev")]
    pub(crate) collection: String,
    /// Since when it is held; null if its lock is not readable.
    pub(crate) since: Option<Timestamp>,
    /// Who holds it; empty if that is not recorded.
    #[schema(example = "anna")]
    pub(crate) by: String,
    /// Why it is held; empty if that is not recorded.
    pub(crate) reason: String,
}

impl HeldCollection {
    /// The collection of this mnemonic, by the note in its lock.
    pub(crate) fn new(collection: &str, pause: &PauseSituation) -> Self {
        Self {
            collection: collection.to_owned(),
            since: pause.since,
            by: pause.who.to_string(),
            reason: pause.why.to_string(),
        }
    }
}

/// A held store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct HeldStore {
    /// Its name.
    #[schema(example = "main")]
    pub(crate) store: String,
    /// Since when it is held; null if that is not recorded.
    pub(crate) since: Option<Timestamp>,
    /// Who holds it; empty if that is not recorded.
    #[schema(example = "anna")]
    pub(crate) by: String,
    /// Why it is held; empty if that is not recorded.
    pub(crate) reason: String,
}

impl HeldStore {
    /// The store of this name, by the note in its hold.
    pub(crate) fn new(store: &str, pause: &PauseSituation) -> Self {
        Self { store: store.to_owned(), since: pause.since, by: pause.who.to_string(), reason: pause.why.to_string() }
    }
}

impl ViewSource<'_> {
    /// The stores that are held, by name.
    pub(crate) fn held_stores(&self) -> Vec<HeldStore> {
        self.store.held_stores().iter().map(|(store, pause)| HeldStore::new(store, pause)).collect()
    }
}
