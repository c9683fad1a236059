//! Reading from a store of which that costs: within its budgets, and after a restore where content is archived.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::budgets::{BytesAnswer, RestoreAnswer};
use queuekeeper_store::archive::NotYet;
use queuekeeper_store::error::Operation;
use queuekeeper_store::store::{Content, EntityTag, Item, Store};
use queuekeeper_store::{Error, ErrorKind};

use crate::limits::{ColdStore, RestoreSettings};
use crate::words::moment;

/// The least wait for a budget of which there will be enough.
const LEAST_WAIT: Duration = Duration::from_mins(1);

/// For how long a restore that has not ended in time is not requested again: as long as a task takes to fail for good,
/// and then some.
const NOT_AGAIN: Duration = Duration::from_hours(24);

/// What a store of which reading costs is read with.
pub(super) struct Cold {
    pub(super) catalogue: Catalogue,
    pub(super) settings: ColdStore,
}

impl Cold {
    /// Content, once as much may be read and it is not archived any more.
    ///
    /// # Errors
    /// [`NotYet`](ErrorKind::NotYet) before that; a restore is requested then.
    pub(super) async fn get(
        &self,
        store: &Arc<dyn Store>,
        item: &Item,
        range: Option<Range<u64>>,
        if_match: Option<&EntityTag>,
    ) -> Result<Content, Error> {
        let Some(most) = self.settings.bytes_out_per_day else {
            let content = store.get(item, range, if_match).await;
            return self.unless_archived(store, item, content).await;
        };
        let fails = |kind| failed(store, item, kind);
        let properties = store.head(item).await?.ok_or_else(|| fails(ErrorKind::NotFound))?;
        if if_match.is_some_and(|tag| *tag != properties.etag) {
            return Err(fails(ErrorKind::Precondition));
        }
        let size = properties.size;
        let bytes = range.as_ref().map_or(size, |range| range.end.min(size).saturating_sub(range.start));
        if bytes > most.bytes() {
            let why = format!("its {bytes} bytes are more than bytes_out_per_day allows in a day ({most})");
            return Err(fails(ErrorKind::Unreadable(why)));
        }
        let answer = self.catalogue.allow_bytes(store.name(), bytes, most.bytes()).await;
        let minute = match answer.map_err(|error| fails(unavailable(&error)))? {
            BytesAnswer::Allowed { minute } => minute,
            BytesAnswer::UsedUp(after) => {
                let why = format!("waits because bytes_out_per_day of {} ({most}) is used up", store.name());
                let (after, is_of_store) = (after.max(LEAST_WAIT), true);
                return Err(fails(ErrorKind::NotYet(NotYet { why, after, is_of_store })));
            }
        };
        let content = store.get(item, range, Some(&properties.etag)).await;
        if content.is_err() {
            let returned = self.catalogue.return_bytes(store.name(), minute, bytes).await;
            returned.map_err(|error| fails(unavailable(&error)))?;
        }
        self.unless_archived(store, item, content).await
    }

    /// The answer of a store that has read an item; where that is archived, its restore is requested.
    pub(super) async fn unless_archived<T>(
        &self,
        store: &Arc<dyn Store>,
        item: &Item,
        answer: Result<T, Error>,
    ) -> Result<T, Error> {
        let Some(restore) = &self.settings.restore else { return answer };
        match answer {
            Ok(read) => {
                let ended = self.catalogue.restore_ended(store.name(), item).await;
                ended.map_err(|error| failed(store, item, unavailable(&error)))?;
                Ok(read)
            }
            Err(Error { kind: ErrorKind::Archived, .. }) => Err(self.restore(store, item, restore).await),
            Err(error) => Err(error),
        }
    }

    /// Asks for a restore, once, and answers why the item cannot be read yet.
    async fn restore(&self, store: &Arc<dyn Store>, item: &Item, settings: &RestoreSettings) -> Error {
        let RestoreSettings { request, poll, limit } = *settings;
        let (name, most) = (store.name(), self.settings.restores_per_day);
        let not_yet =
            |why, after, is_of_store| failed(store, item, ErrorKind::NotYet(NotYet { why, after, is_of_store }));
        let forget_after = limit.saturating_add(NOT_AGAIN);
        match self.catalogue.allow_restore(name, item, most, forget_after).await {
            Ok(RestoreAnswer::UsedUp(after)) => {
                let why = format!("waits because restores_per_day of {name} ({most}) is used up");
                not_yet(why, after.max(poll), true)
            }
            Ok(RestoreAnswer::Allowed) => {
                if let Err(error) = store.restore(item, request).await {
                    return error;
                }
                tracing::info!(store = %name, %item, tier = request.tier.as_str(), "requested the restore of an archived item");
                if let Err(error) = self.catalogue.restore_requested(name, item).await {
                    return failed(store, item, unavailable(&error));
                }
                not_yet(
                    format!("waits for its restore from the archive of {name}, which was just requested"),
                    poll,
                    false,
                )
            }
            Ok(RestoreAnswer::Requested { at, age }) => {
                let (again, left) = (at.checked_add(forget_after).unwrap_or(at), limit.saturating_sub(age));
                let [at, again] = [at, again].map(moment);
                if left.is_zero() {
                    let minutes = limit.as_secs().div_ceil(60);
                    let limit = if minutes.is_multiple_of(60) {
                        format!("{} h", minutes / 60)
                    } else {
                        format!("{minutes} min")
                    };
                    let why = format!(
                        "its restore was requested at {at} and has not ended within {limit}; it can be requested again from {again} on"
                    );
                    return failed(store, item, ErrorKind::Unreadable(why));
                }
                let why = format!("waits for its restore from the archive of {name}, which was requested at {at}");
                not_yet(why, poll.min(left), false)
            }
            Err(error) => failed(store, item, unavailable(&error)),
        }
    }
}

fn failed(store: &Arc<dyn Store>, item: &Item, kind: ErrorKind) -> Error {
    Error { store: store.name().clone(), operation: Operation::Get, subject: item.to_string(), kind }
}

fn unavailable(error: &queuekeeper_catalogue::Error) -> ErrorKind {
    ErrorKind::Unavailable(error.to_string())
}
