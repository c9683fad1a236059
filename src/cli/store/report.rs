//! What is shown of an item.

use jiff::Timestamp;
use queuekeeper_store::store::{Properties, UserProperties, Written};
use queuekeeper_store::{Digests, Key};
use serde::Serialize;

use super::path::ItemPath;
use crate::cli::output::Screen;
use crate::cli::words::size;
use crate::views::show::visible;
use crate::words::moment;

/// An item, as JSON has it.
#[derive(Debug, Serialize)]
pub(super) struct ItemReport {
    store: String,
    space: String,
    /// With escapes where it is no text.
    key: String,
    /// Percent-encoded.
    key_encoded: String,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<Timestamp>,
    etag: String,
    digests: Digests,
    #[serde(flatten)]
    user: UserProperties,
}

impl ItemReport {
    /// An item as it was found.
    pub(super) fn found(path: &ItemPath, found: &Properties) -> Self {
        Self {
            modified: Some(found.modified),
            user: found.user.clone(),
            ..Self::new(path, found.size, &found.etag.0, found.checksums.clone())
        }
    }

    /// An item as it was written.
    pub(super) fn written(path: &ItemPath, written: &Written) -> Self {
        Self::new(path, written.size, &written.etag.0, written.digests.clone())
    }

    fn new(path: &ItemPath, size: u64, etag: &str, digests: Digests) -> Self {
        Self {
            store: path.store.to_string(),
            space: path.item.space.to_string(),
            key: text(&path.item.key),
            key_encoded: path.item.key.encoded(),
            size,
            modified: None,
            etag: etag.to_owned(),
            digests,
            user: UserProperties::default(),
        }
    }

    /// The facts, a line each.
    pub(super) fn show(&self, screen: &mut Screen) {
        screen.say(&format!("{}/{}/{}", self.store, self.space, self.key));
        screen.fact("size", &size(self.size));
        if let Some(modified) = self.modified {
            screen.fact("modified", &moment(modified));
        }
        screen.fact("entity tag", &visible(&self.etag));
        for digest in self.digests.iter() {
            screen.fact(digest.algorithm().as_str(), &digest.hex());
        }
    }
}

/// A key as text: itself where it is, else with escapes.
pub(super) fn text(key: &Key) -> String {
    key.as_str().map_or_else(|| key.to_string(), str::to_owned)
}
