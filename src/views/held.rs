//! Held collections.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::mirror::Pause;

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
    pub(crate) fn new(collection: &str, pause: &Pause) -> Self {
        Self {
            collection: collection.to_owned(),
            since: pause.since,
            by: pause.who.to_string(),
            reason: pause.why.to_string(),
        }
    }
}
