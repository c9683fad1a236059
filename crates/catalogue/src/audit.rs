//! Changes of content: those that are under way, and the log of those that were made.
//!
//! [`Catalogue`] is the [`AuditSink`] of the stores. An intent is a row, unique by its item; settling it deletes the row,
//! appends the event, and brings the content index up to date, in one transaction. Events form a chain: each has the hash
//! of the one before, so that one that was altered or removed later is found by [`Catalogue::check`].
//!
//! Changes that an intent of another kind covers, such as that of a job to store a version of an object, are recorded together
//! by [`Catalogue::record_changes`].

mod event;
mod follow;
mod intents;
mod list;
mod noted;
mod observed;
mod settle;

use std::time::Duration;

use async_trait::async_trait;
use queuekeeper_store::StoreName;
use queuekeeper_store::audit::{AuditSink, Begun, Intent, Settlement, SinkError};
use queuekeeper_store::store::Item;

pub use self::event::{Event, EventKind};
pub use self::follow::Followed;
#[cfg(test)]
pub(crate) use self::intents::TAKE_LEFT;
pub(crate) use self::list::AFTER;
pub use self::list::Events;
pub(crate) use self::observed::observe;
use crate::catalogue::Catalogue;
use crate::error::Error;

/// To whom items belong until accounts are configured.
pub(crate) const NO_ACCOUNT: &str = "";

#[async_trait]
impl AuditSink for Catalogue {
    async fn begin(&self, intent: &Intent, lease: Duration) -> Result<Begun, SinkError> {
        intents::begin(&self.database, intent, lease).await.map_err(unavailable)
    }

    async fn extend(&self, intent: &Intent, lease: Duration) -> Result<(), SinkError> {
        let is_open = intents::extend(&self.database, intent, lease).await.map_err(unavailable)?;
        is_open.then_some(()).ok_or(SinkError::Lost)
    }

    async fn settle(&self, intent: &Intent, settlement: &Settlement) -> Result<(), SinkError> {
        let is_settled = settle::settle(&self.database, intent, settlement).await.map_err(unavailable)?;
        if *settlement != Settlement::NotDone {
            self.ring().await;
        }
        is_settled.then_some(()).ok_or(SinkError::Lost)
    }

    async fn take_left(&self, store: &StoreName, lease: Duration) -> Result<Option<Intent>, SinkError> {
        intents::take_left(&self.database, store, lease).await.map_err(unavailable)
    }
}

impl Catalogue {
    /// Whether a change of an item through an [`Audited`](queuekeeper_store::Audited) store has begun and is not settled.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub async fn is_changing(&self, store: &StoreName, item: &Item) -> Result<bool, Error> {
        intents::is_open(&self.database, store, item).await
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn unavailable(error: Error) -> SinkError {
    SinkError::Unavailable(error.to_string())
}
