//! Withdrawing a batch: until it is done, refused, or its session is over.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::execute::{ActionContext, OUTCOME_POLL_INTERVAL, OUTCOME_TIMEOUTS, StopReason};
use super::prepare::batch_target;
use super::refusal::Refusal;
use super::shared::Shared;
use queuekeeper_ingest::withdrawal;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::record::WithdrawnNote;
use queuekeeper_queue::{Queue, WithdrawalOutcome, WithdrawalPlan, WithdrawalProgress};

impl Shared {
    /// Withdraws a batch as it was planned. Gives how many jobs it has.
    pub(super) async fn withdraw(
        &self,
        plan: &WithdrawalPlan,
        context: ActionContext<'_>,
    ) -> Result<usize, StopReason> {
        let by = WithdrawnNote { who: &context.actor.name, why: context.reason.as_str() };
        let mut target = batch_target(self.store.as_ref(), plan.batch, context.now);
        if let Some(version) = plan.version {
            target = target.at_version(version);
        }
        let mut until = None;
        loop {
            let queue = match self.connected.queue() {
                Ok(queue) => queue,
                Err(refusal) if until.is_none() => return Err(StopReason::Refused(refusal)),
                Err(_) => return Err(StopReason::Refused(left())),
            };
            let report = |WithdrawalProgress { jobs, of_jobs, .. }| {
                context.execution.set_progress(jobs, of_jobs);
                // The batch daemon goes on with it.
                if self.tasks.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let error = match queue.withdraw(target.clone(), by, context.now, report).await {
                Ok(WithdrawalOutcome::Withdrawn { jobs }) => return Ok(jobs),
                Ok(WithdrawalOutcome::NotWithdrawn(why)) => return Err(StopReason::Refused(Refusal::conflict(why))),
                Ok(WithdrawalOutcome::TakenBack(why)) => {
                    Box::pin(self.taken_back(&queue, plan.batch, &why)).await;
                    return Err(StopReason::Refused(Refusal::conflict(why)));
                }
                Ok(WithdrawalOutcome::InPart(why)) => return Err(StopReason::Refused(Refusal::InPart(why))),
                Ok(WithdrawalOutcome::Interrupted) => return Err(StopReason::Refused(left())),
                Err(error) if error.is_connection() => error,
                Err(error) => return Err(StopReason::Refused(Refusal::of_withdrawal(error))),
            };
            // The lock stays ours as long as the session: only here it is gone on with before that is over.
            let limit = OUTCOME_TIMEOUTS * queue.time_limit();
            if Instant::now() >= *until.get_or_insert_with(|| Instant::now() + limit) {
                return Err(StopReason::Queue(error));
            }
            tokio::time::sleep(Duration::max(OUTCOME_POLL_INTERVAL, queue.time_limit() / 100)).await;
        }
    }
}

impl Shared {
    /// Has it in the log and in the catalogue why a withdrawal was taken back, whose caller may not have waited for it.
    async fn taken_back(&self, queue: &Queue, batch: BatchId, why: &str) {
        tracing::info!(%batch, %why, "rolled back a withdrawal");
        let Some(catalogue) = self.catalogue.get() else { return };
        let recorded = match queue.load_batch(batch).await {
            Ok(found) => withdrawal::record_taken_back(catalogue, &found.submitted().value.uuid, why).await,
            Err(error) => {
                return tracing::warn!(%batch, %error, "cannot read who requested the withdrawal that was rolled back");
            }
        };
        if let Err(error) = recorded {
            tracing::warn!(%batch, %error, "cannot record in the catalogue why a withdrawal was rolled back");
        }
    }
}

fn left() -> Refusal {
    Refusal::InPart("it was interrupted; a batch daemon continues it, or the same request does".to_owned())
}
