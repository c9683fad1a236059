//! Batches whose deposit was withdrawn, and which are in the queue all the same: it was restored as it had been before,
//! or who withdrew a deposit of several batches ended between two of them.
//!
//! The catalogue, which is not restored with the queue, is asked once a batch and session, by the daemon that takes the
//! batch up first: that which creates its jobs, or that of their first state. For a further batch of a deposit, the
//! first one is looked at as well, which is withdrawn before all others, and again for as long as its jobs are taken.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::deposits::Deposit;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::record::WithdrawnNote;
use queuekeeper_queue::time::moment;
use queuekeeper_queue::{Error, WithdrawalOutcome};
use tokio::time::Instant;
use tracing::{info, warn};
use uuid::Uuid;

use super::WITHDRAWN;
use super::standing::Standing;
use crate::clock::now;
use crate::daemon::Daemon;
use crate::engine::session::Session;
use crate::spec::id_of;
use crate::step::StepError;

/// How often a withdrawal is tried that something hinders: it may be a job that a worker is just giving back.
const ATTEMPTS: usize = 25;

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// The longest pause: where ZooKeeper is away, or another process withdraws it.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Who withdrew a deposit again, as its jobs have it.
const WHO: &str = "ingest";

/// For how long it counts that the first batch of a deposit was not withdrawn.
const FIRST_FRESH: Duration = Duration::from_secs(1);

/// How long after the first batch of a deposit the others are withdrawn here: their client does so until then.
const OTHERS_AFTER: Duration = Duration::from_secs(5);

/// Why a batch is to be withdrawn.
struct WithdrawalCause {
    who: String,
    why: String,
    /// When another client may still do so.
    not_before: Timestamp,
}

/// Whether the deposit of a batch was withdrawn before. Then it is being withdrawn again, as soon as the caller holds
/// no lock of it any more.
///
/// # Errors
/// When the catalogue cannot be read, or the first batch of its deposit.
pub(crate) async fn is_withdrawn_before(session: &Arc<Session>, batch: BatchId, uuid: Uuid) -> Result<bool, StepError> {
    let known = session.restored.of(batch);
    match known {
        Some(Standing::Withdrawing) => return Ok(true),
        Some(Standing::Deposited) => return Ok(false),
        Some(Standing::Further(looked)) if looked.elapsed() < FIRST_FRESH => return Ok(false),
        Some(Standing::Further(_)) | None => {}
    }
    let looked = Instant::now();
    let deposit = session.services.catalogue.deposit(uuid).await?;
    let first = deposit.as_ref().and_then(|deposit| deposit.part_of).map(|(first, _)| first);
    let cause = match (deposit.and_then(withdrawn_at), first) {
        (Some(at), _) => Some(WithdrawalCause::restored(at)),
        (None, Some(first)) => of_first(session, first).await?,
        (None, None) => None,
    };
    let Some(cause) = cause else {
        let standing = first.map_or(Standing::Deposited, |_| Standing::Further(looked));
        session.restored.set(batch, standing);
        return Ok(false);
    };
    if session.restored.begin(batch) {
        let of_task = Arc::clone(session);
        session.spawn(async move {
            let standing = withdraw(&of_task, batch, &cause).await;
            of_task.restored.set(batch, standing);
            for daemon in [Daemon::Batch, Daemon::Pending] {
                of_task.wake(daemon).notify_one();
            }
        });
    }
    Ok(true)
}

impl WithdrawalCause {
    fn restored(at: Timestamp) -> Self {
        let why = format!("it was withdrawn on {}, before the queue was restored", moment(at));
        Self { who: WHO.to_owned(), why, not_before: at }
    }
}

/// When a deposit was withdrawn.
fn withdrawn_at(deposit: Deposit) -> Option<Timestamp> {
    deposit.outcome.filter(|(outcome, _)| outcome == WITHDRAWN).map(|(_, at)| at)
}

/// Why the others are to be withdrawn of a deposit, by its first batch: it is withdrawn.
async fn of_first(session: &Session, first: Uuid) -> Result<Option<WithdrawalCause>, StepError> {
    if let Some(batch) = session.queue.find_batch(&id_of(first)).await? {
        return match session.queue.load_batch(batch).await {
            Ok(batch) => Ok(WithdrawnNote::of_batch(batch.state(), &batch.message()).map(|by| WithdrawalCause {
                who: by.who.to_owned(),
                why: by.why.to_owned(),
                not_before: batch.entered().unwrap_or_else(now).saturating_add(OTHERS_AFTER).unwrap_or(Timestamp::MAX),
            })),
            Err(Error::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        };
    }
    Ok(session.services.catalogue.deposit(first).await?.and_then(withdrawn_at).map(WithdrawalCause::restored))
}

/// Withdraws a batch whose deposit was withdrawn.
async fn withdraw(session: &Session, batch: BatchId, cause: &WithdrawalCause) -> Standing {
    let by = WithdrawnNote { who: &cause.who, why: &cause.why };
    let (mut hindered, mut pause, mut stopping) = (0, PAUSE, session.stopping.clone());
    if let Ok(wait) = Duration::try_from(cause.not_before.duration_since(now())) {
        tokio::select! {
            () = tokio::time::sleep(wait.min(OTHERS_AFTER)) => {}
            _ = stopping.changed() => {}
        }
    }
    while !*stopping.borrow() && !session.queue.client().state().is_terminated() {
        let go_on = |_| if *session.stopping.borrow() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        match session.queue.withdraw(batch, by, now(), go_on).await {
            Ok(WithdrawalOutcome::Withdrawn { jobs }) => {
                info!(%batch, jobs, "withdrew a batch again whose deposit was withdrawn before the queue was restored");
                break;
            }
            // The batch daemon goes on with it, or it is gone.
            Ok(WithdrawalOutcome::Interrupted) | Err(Error::Missing(_)) => break,
            Ok(
                WithdrawalOutcome::NotWithdrawn(why)
                | WithdrawalOutcome::TakenBack(why)
                | WithdrawalOutcome::InPart(why),
            ) => {
                hindered += 1;
                if hindered == ATTEMPTS {
                    // All of its jobs or none.
                    warn!(%batch, %why, "a batch whose deposit was withdrawn before can no longer be withdrawn, and continues");
                    return Standing::Deposited;
                }
            }
            Err(error) => {
                warn!(%batch, %error, "cannot yet withdraw a batch whose deposit was withdrawn before");
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stopping.changed() => {}
        }
    }
    Standing::Withdrawing
}
