//! What is recorded of a copy is brought to what was read: by an event that is appended, in the name of the one who
//! decided it.
//!
//! The event is written as that of any change: its intent locks the item, and the store is looked at again under it. A
//! process that dies in between leaves an intent without a size, which is settled as *not done*.

use std::time::Duration;

use queuekeeper_catalogue::bit::CheckedPart;
use queuekeeper_catalogue::tasks::{TaskOutcome, TaskSubject};
use queuekeeper_store::Digests;
use queuekeeper_store::audit::{AuditSink as _, Begun, Change, Intent, Settlement, Subject};
use queuekeeper_store::store::Item;
use uuid::Uuid;

use super::checker::{CheckedSpace, Checker};
use super::read_copy::{ReadCopy, is_proven};
use super::verdict::{Remedy, Sighting};
use crate::worker::{CHANGING, Lease, Stop};

/// How long the item is locked at most.
const LOCKED: Duration = Duration::from_mins(1);

impl Checker {
    /// Carries out a remedy that concerns the record alone. The answer is what a check finds then.
    pub(super) async fn correct(
        &self,
        subject: &TaskSubject,
        remedy: Remedy,
        user: &str,
        lease: &Lease,
    ) -> Result<CheckedPart, Stop> {
        let place = match self.place(subject, lease)? {
            Ok(place) => place,
            Err(wait) => return Err(wait.into()),
        };
        let key = subject.key.clone().ok_or_else(|| "the finding names no item".to_owned())?;
        let item = Item::new(place.space.clone(), key);
        let seen = ReadCopy::read(self, &place, &item, &Digests::default(), lease).await?;
        if is_proven(&seen.verdict()) {
            return Ok(seen.part(&subject.account, &place, &item, &seen.verdict()));
        }
        let seen = self.record(&place, &item, seen, remedy, user).await?;
        Ok(seen.part(&subject.account, &place, &item, &seen.verdict()))
    }

    /// Records the content of a copy that was read, as a remedy for what is wrong with it. The answer is the copy with
    /// what is recorded of it then.
    pub(super) async fn record(
        &self,
        place: &CheckedSpace,
        item: &Item,
        seen: ReadCopy,
        remedy: Remedy,
        user: &str,
    ) -> Result<ReadCopy, Stop> {
        let verdict = seen.verdict();
        let (Some(properties), Sighting::Present(content)) = (&seen.properties, &seen.sources.content) else {
            return Err(Stop::Failed(format!("there is no content to record: {verdict}")));
        };
        if !verdict.offers.iter().any(|offer| offer.remedy == remedy) {
            return Err(Stop::Failed(format!("{} does not resolve the present state: {verdict}", remedy.as_str())));
        }
        let store = place.store.name();
        let change = if seen.sources.index.is_some() { Change::Update } else { Change::Add };
        let intent = Intent {
            id: Uuid::now_v7(),
            holder: Uuid::now_v7(),
            user: user.to_owned(),
            subject: Subject { store: store.clone(), space: item.space.clone(), key: Some(item.key.clone()) },
            change,
            seen: Some(properties.etag.clone()),
            size: None,
            digests: Digests::default(),
            source: None,
            upload: None,
            properties: None,
        };
        let said = |error: queuekeeper_store::audit::SinkError| Stop::Failed(error.to_string());
        match self.catalogue.begin(&intent, LOCKED).await.map_err(said)? {
            Begun::Ours => {}
            Begun::Busy(_) | Begun::Left(_) => return Err(TaskOutcome::PutOff(CHANGING).into()),
        }
        let there = place.store.head(item).await;
        let is_as_seen = matches!(&there, Ok(Some(there)) if there.etag == properties.etag)
            && self.catalogue.records_of_item(store, item).await.is_ok_and(|records| records == seen.records);
        let settlement = if is_as_seen {
            Settlement::Done {
                change,
                etag: Some(properties.etag.clone()),
                size: Some(content.size),
                digests: content.digests.clone(),
            }
        } else {
            Settlement::NotDone
        };
        self.catalogue.settle(&intent, &settlement).await.map_err(said)?;
        if !is_as_seen {
            return Err(TaskOutcome::PutOff(CHANGING).into());
        }
        tracing::info!(%store, %item, user, remedy = remedy.as_str(), %verdict, "recorded the content of the store");
        seen.recorded_by_now(self, place, item).await
    }
}
