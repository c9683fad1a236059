//! Changes of content: those that are under way, and the log of those that were made.
//!
//! [`Catalogue`] is the [`AuditSink`] of the stores. An intent is a row, unique by its item; settling it deletes the
//! row, appends the event, and brings the content index up to date, in one transaction. Events form a chain: each has
//! the hash of the one before, so that one that was altered or removed later is found by [`Catalogue::check`].
//!
//! Changes that an intent of another kind covers, such as that of a job to store a version of an object, are recorded
//! together by [`Catalogue::record_changes`].

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
#[cfg(test)]
pub(crate) use self::list::OF_SPACE_AFTER;
pub(crate) use self::observed::observe;
use crate::catalogue::Catalogue;
use crate::database::Session;
use crate::database::grouped::Work;
use crate::error::Error;

struct Begin(Intent, Duration);
struct Extend(Intent, Duration);
struct Settle(Intent, Settlement);

#[async_trait]
impl Work for Begin {
    type Answer = Begun;

    async fn work(&self, session: &mut Session) -> Result<Begun, Error> {
        intents::begin(session, &self.0, self.1).await
    }
}

#[async_trait]
impl Work for Extend {
    type Answer = bool;

    async fn work(&self, session: &mut Session) -> Result<bool, Error> {
        intents::extend(session, &self.0, self.1).await
    }
}

#[async_trait]
impl Work for Settle {
    type Answer = bool;

    async fn work(&self, session: &mut Session) -> Result<bool, Error> {
        settle::settle(session, &self.0, &self.1).await
    }
}

#[async_trait]
impl AuditSink for Catalogue {
    async fn begin(&self, intent: &Intent, lease: Duration) -> Result<Begun, SinkError> {
        self.grouped(Begin(intent.clone(), lease)).await
    }

    async fn extend(&self, intent: &Intent, lease: Duration) -> Result<(), SinkError> {
        let is_open = self.grouped(Extend(intent.clone(), lease)).await?;
        is_open.then_some(()).ok_or(SinkError::Lost)
    }

    async fn settle(&self, intent: &Intent, settlement: &Settlement) -> Result<(), SinkError> {
        let is_settled = self.grouped(Settle(intent.clone(), settlement.clone())).await?;
        if *settlement != Settlement::NotDone {
            self.notify().await;
        }
        is_settled.then_some(()).ok_or(SinkError::Lost)
    }

    async fn take_left(&self, store: &StoreName, lease: Duration) -> Result<Option<Intent>, SinkError> {
        let left = intents::take_left(&self.database, store, lease).await;
        left.map_err(|error| SinkError::Unavailable(error.to_string()))
    }
}

impl Catalogue {
    async fn grouped<W: Work>(&self, work: W) -> Result<W::Answer, SinkError> {
        self.grouped.run(&self.database, work).await.map_err(SinkError::Unavailable)
    }

    /// Whether a change of an item through an [`Audited`](queuekeeper_store::Audited) store has begun and is not
    /// settled.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub async fn is_changing(&self, store: &StoreName, item: &Item) -> Result<bool, Error> {
        intents::is_open(&self.database, store, item).await
    }
}
