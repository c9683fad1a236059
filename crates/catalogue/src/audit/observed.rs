//! What a check of content has observed, as an event.

use queuekeeper_store::StoreName;
use queuekeeper_store::audit::Subject;
use queuekeeper_store::store::Item;
use uuid::Uuid;

use super::event::{Event, EventKind};
use super::settle::{extend_chain, lock_head};
use crate::bit::Observed;
use crate::counters::{self, Counter};
use crate::database::Session;
use crate::error::Error;

/// Appends an event that says what a store has and no change explains. The content index stays as it is.
pub(crate) async fn observe(
    session: &mut Session,
    (store, item): (&StoreName, &Item),
    observed: &Observed,
    why: &str,
) -> Result<(), Error> {
    counters::add(session, store.as_str(), &[(Counter::AuditEvents, 1)]).await?;
    let head = lock_head(session).await?;
    let Observed { user, size, digests } = observed;
    let event = Event {
        seq: head.seq + 1,
        time: head.time,
        intent: Uuid::now_v7(),
        user: user.clone(),
        kind: EventKind::Observed,
        subject: Subject { store: store.clone(), space: item.space.clone(), key: Some(item.key.clone()) },
        size: *size,
        digests: digests.clone(),
        etag: None,
        source: None,
        properties: None,
        why: Some(crate::error::one_line(why)),
        previous_hash: head.hash,
    };
    extend_chain(session, &[event]).await
}
