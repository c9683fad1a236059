//! The readers' side of the mirror.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::RwLock;

use super::freshness::Freshness;
use super::summary::{CollectionFigures, Summary};

/// A reader's handle to the image; cheap to clone.
///
/// Every call takes what it needs under a short read lock and gives it back as values of its own, so that nobody holds
/// the lock while rendering.
#[derive(Clone, Debug, Default)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    freshness: RwLock<Freshness>,
}

impl Store {
    /// How far the image can be trusted now.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.shared.freshness.read().clone()
    }

    /// The figures of the whole queue; `None` before the first walk.
    ///
    /// `now` is our own clock. `space` is how many bytes of working storage a job may need and not be kept back; jobs
    /// in Provisioning that need more are counted as waiting for space.
    #[must_use]
    pub fn summary(&self, _now: Timestamp, _space: Option<i64>) -> Option<Summary> {
        None
    }

    /// Jobs by collection and state, in no order; `None` before the first walk.
    #[must_use]
    pub fn collections(&self) -> Option<Vec<CollectionFigures>> {
        None
    }
}
