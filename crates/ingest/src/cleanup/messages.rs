//! Messages of batches that have ended.

use std::collections::BTreeMap;
use std::time::Duration;

use queuekeeper_catalogue::outbox::{Attempt, ListedMessage};
use queuekeeper_queue::state::{BatchState, JobOutcome};
use queuekeeper_queue::{Batch, Error, Queue};
use tracing::warn;

use crate::engine::session::Session;
use crate::outbox::CALLBACK;
use crate::step::StepError;

/// How many are listed at a time.
const PAGE: u32 = 500;

/// How much longer than its job may be tried a callback may wait that Notify has not delivered.
const MARGIN: Duration = Duration::from_hours(24);

/// Removes messages that ended long ago, and gives those up that no job will deliver. One whose batch may still be
/// reported is kept: it is what keeps the report from being sent twice.
pub(super) async fn remove(session: &Session) -> Result<(), StepError> {
    let (catalogue, settings) = (&session.services.catalogue, &session.services.settings);
    let mut known = BTreeMap::new();
    let mut last: Option<ListedMessage> = None;
    loop {
        let page = catalogue.ended_messages(settings.cleanup.messages_after, last.as_ref(), PAGE).await?;
        let Some(newest) = page.last().cloned() else { break };
        for message in page {
            if has_ended(&session.queue, &mut known, message.batch).await? {
                session.fence.pass().await;
                catalogue.remove_message(message.id).await?;
                session.services.metrics.cleaned("message", 1);
            }
        }
        last = Some(newest);
    }
    let mut last: Option<ListedMessage> = None;
    loop {
        let page = catalogue.unended_messages(CALLBACK, settings.retry_within + MARGIN, last.as_ref(), PAGE).await?;
        let Some(newest) = page.last().cloned() else { break };
        for message in page {
            if has_ended(&session.queue, &mut known, message.batch).await? {
                session.fence.pass().await;
                let why = "callback: its job ended before it was delivered";
                warn!(message = message.id, why, "gave up on a message");
                catalogue.message_tried(message.id, Attempt::GivenUp { why }).await?;
            }
        }
        last = Some(newest);
    }
    Ok(())
}

/// Whether no job of a batch is at work, and its report is written, or it is gone.
async fn has_ended(queue: &Queue, known: &mut BTreeMap<String, bool>, id: String) -> Result<bool, Error> {
    if let Some(has_ended) = known.get(&id) {
        return Ok(*has_ended);
    }
    let has_ended = match queue.find_batch(&id).await? {
        None => true,
        Some(batch) => match queue.load_batch(batch).await {
            Ok(batch) => is_settled(&batch),
            Err(Error::Missing(_)) => true,
            Err(error) => return Err(error),
        },
    };
    known.insert(id, has_ended);
    Ok(has_ended)
}

/// Whether no daemon works on a batch or its jobs, and none will unless an operator requests it.
pub(super) fn is_settled(batch: &Batch) -> bool {
    let is_at_rest = matches!(batch.state(), Some(BatchState::Completed | BatchState::Deleted | BatchState::Failed));
    is_at_rest && batch.lock().is_none() && batch.references(JobOutcome::Processing).unwrap_or(0) == 0
}
