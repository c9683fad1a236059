//! Deposits that were withdrawn, and are in the queue again: it was restored as it had been before.
//!
//! The catalogue, which is not restored with the queue, is asked once a batch and session, by the daemon that takes the
//! batch up first: that which creates its jobs, or that of their first state.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::record::WithdrawnNote;
use queuekeeper_queue::{Error, WithdrawalOutcome};
use tracing::{info, warn};
use uuid::Uuid;

use super::WITHDRAWN;
use crate::daemon::Daemon;
use crate::engine::session::Session;
use crate::step::{StepError, now};

/// Of how many batches it is remembered what the catalogue said.
const MOST_KNOWN: usize = 10_000;

/// How often a withdrawal is tried that something hinders: it may be a job that a worker is just giving back.
const ATTEMPTS: usize = 25;

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// The longest pause: where ZooKeeper is away, or another process withdraws it.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Who withdrew a deposit again, as its jobs have it.
const WHO: &str = "ingest";

/// What a session knows of the batches that it takes up.
#[derive(Debug, Default)]
pub(crate) struct Restored(Mutex<BTreeMap<BatchId, Standing>>);

/// What is to be done with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Its deposit was not withdrawn, or cannot be withdrawn any more.
    Deposited,
    /// It is being withdrawn again.
    Withdrawing,
}

impl Restored {
    /// Whether a batch is being withdrawn again, so that nothing of it is to be taken.
    pub(crate) fn is_withdrawing(&self, batch: BatchId) -> bool {
        self.0.lock().get(&batch) == Some(&Standing::Withdrawing)
    }

    fn set(&self, batch: BatchId, standing: Standing) {
        let mut known = self.0.lock();
        if known.len() >= MOST_KNOWN {
            known.retain(|_, standing| *standing == Standing::Withdrawing);
        }
        known.insert(batch, standing);
    }

    /// What was known before a withdrawal begins, if it is to begin now.
    fn begin(&self, batch: BatchId) -> bool {
        self.0.lock().insert(batch, Standing::Withdrawing) != Some(Standing::Withdrawing)
    }
}

/// Whether the deposit of a batch was withdrawn before. Then it is being withdrawn again, as soon as the caller holds no
/// lock of it any more.
///
/// # Errors
/// When the catalogue cannot be read.
pub(crate) async fn is_withdrawn_before(session: &Arc<Session>, batch: BatchId, uuid: Uuid) -> Result<bool, StepError> {
    let known = session.restored.0.lock().get(&batch).copied();
    if let Some(known) = known {
        return Ok(known == Standing::Withdrawing);
    }
    let deposit = session.services.catalogue.deposit(uuid).await?;
    let withdrawn = deposit.and_then(|deposit| deposit.outcome).filter(|(outcome, _)| outcome == WITHDRAWN);
    let Some((_, at)) = withdrawn else {
        session.restored.set(batch, Standing::Deposited);
        return Ok(false);
    };
    if session.restored.begin(batch) {
        let of_task = Arc::clone(session);
        session.spawn(async move {
            let standing = withdraw(&of_task, batch, at).await;
            of_task.restored.set(batch, standing);
            for daemon in [Daemon::Batch, Daemon::Pending] {
                of_task.wake(daemon).notify_one();
            }
        });
    }
    Ok(true)
}

/// Withdraws a batch whose deposit was withdrawn at an instant.
async fn withdraw(session: &Session, batch: BatchId, at: Timestamp) -> Standing {
    let why = format!("it was withdrawn on {}, before the queue was restored", at.strftime("%F %T UTC"));
    let by = WithdrawnNote { who: WHO, why: &why };
    let (mut hindered, mut pause, mut stopping) = (0, PAUSE, session.stopping.clone());
    while !*stopping.borrow() && !session.queue.client().state().is_terminated() {
        let go_on = |_| if *session.stopping.borrow() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        match session.queue.withdraw(batch, by, now(), go_on).await {
            Ok(WithdrawalOutcome::Withdrawn { jobs }) => {
                info!(%batch, jobs, "a deposit that was withdrawn before the queue was restored was withdrawn again");
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
                    warn!(%batch, %why, "a deposit that was withdrawn before the queue was restored cannot be withdrawn again, and goes on");
                    return Standing::Deposited;
                }
            }
            Err(error) => {
                warn!(%batch, %error, "a deposit that was withdrawn before the queue was restored cannot be withdrawn again yet");
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
