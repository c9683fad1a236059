//! Withdrawn deposits: the end of withdrawals that were left, what the catalogue says of them, and the withdrawal of
//! those that are in the queue again because it was restored.

use std::ops::ControlFlow;

use queuekeeper_catalogue::{Catalogue, Error as CatalogueError};
use queuekeeper_queue::record::WithdrawnNote;
use queuekeeper_queue::{Batch, Due, Error, LockedBatch, WithdrawalOutcome};
use tracing::{info, warn};

mod restored;
mod standing;

pub(crate) use restored::is_withdrawn_before;
pub(crate) use standing::Restored;

use crate::clock::now;
use crate::daemon::Daemon;
use crate::engine::session::Session;
use crate::spec::uuid_of;

/// The outcome of a deposit that was withdrawn.
pub const WITHDRAWN: &str = "withdrawn";

/// What the outcome of a deposit begins with whose withdrawal was begun and taken back, until its batch has ended.
const TAKEN_BACK: &str = "not withdrawn: ";

/// Why the withdrawal of a deposit was taken back, by its outcome; `None` for any other outcome.
#[must_use]
pub fn taken_back(outcome: &str) -> Option<&str> {
    outcome.strip_prefix(TAKEN_BACK)
}

/// Writes down in the catalogue why the withdrawal of a deposit was taken back, by the id that its depositor knows it
/// by.
///
/// # Errors
/// When the catalogue cannot be written.
pub async fn record_taken_back(catalogue: &Catalogue, id: &str, why: &str) -> Result<(), CatalogueError> {
    catalogue.deposit_ended(uuid_of(id, "bid-"), &format!("{TAKEN_BACK}{why}")).await
}

/// Writes down in the catalogue that a deposit was withdrawn, by the id that its depositor knows it by.
///
/// # Errors
/// When the catalogue cannot be read or written.
pub async fn record(catalogue: &Catalogue, id: &str) -> Result<(), CatalogueError> {
    let uuid = uuid_of(id, "bid-");
    let known = catalogue.deposit(uuid).await?;
    let is_recorded = known.and_then(|known| known.outcome).is_some_and(|(outcome, _)| outcome == WITHDRAWN);
    if is_recorded { Ok(()) } else { catalogue.deposit_ended(uuid, WITHDRAWN).await }
}

/// Whether a batch was withdrawn.
pub(crate) fn is_withdrawn(batch: &Batch) -> bool {
    WithdrawnNote::of_batch(batch.state(), &batch.message()).is_some()
}

/// Brings the withdrawals to an end that a client began and left.
pub(crate) async fn take_up(session: &Session) -> Result<(), Error> {
    let mut poll = session.queue.poll_batches(Due::Withdrawal).await?;
    while session.may_take(Daemon::Batch) {
        let Some(batch) = poll.next(now()).await? else { break };
        if let Err(error) = finish(session, &batch).await {
            warn!(batch = %batch.batch.id, %error, "cannot finish an abandoned withdrawal yet");
            session.queue.unlock_batch(&batch).await?;
        }
    }
    Ok(())
}

async fn finish(session: &Session, batch: &LockedBatch) -> Result<(), Error> {
    let id = batch.batch.id;
    let go_on = |_| if session.may_take(Daemon::Batch) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    match session.queue.finish_withdrawal(batch, now(), go_on).await? {
        WithdrawalOutcome::Withdrawn { jobs } => {
            info!(batch = %id, jobs, "finished an abandoned withdrawal");
            // Cleanup does it otherwise.
            if let Err(error) = record(&session.services.catalogue, &batch.batch.submitted().value.uuid).await {
                warn!(batch = %id, %error, "a withdrawn deposit is still open in the catalogue");
            }
        }
        WithdrawalOutcome::NotWithdrawn(why) | WithdrawalOutcome::TakenBack(why) => {
            info!(batch = %id, %why, "rolled back an abandoned withdrawal");
            let (catalogue, submitted) = (&session.services.catalogue, batch.batch.submitted());
            if let Err(error) = record_taken_back(catalogue, &submitted.value.uuid, &why).await {
                warn!(batch = %id, %error, "cannot record in the catalogue why a withdrawal was rolled back");
            }
            // The creation of its jobs may go on.
            session.wake(Daemon::Batch).notify_one();
            session.wake(Daemon::Pending).notify_one();
        }
        WithdrawalOutcome::InPart(why) => {
            warn!(batch = %id, %why, "finished an abandoned withdrawal except for a job");
            session.may_be_due(id);
        }
        WithdrawalOutcome::Interrupted => {}
    }
    Ok(())
}
