//! Actions on batches.

use jiff::Timestamp;

use super::{ActionPlanner, Prepared, Step, check_precondition};
use crate::actions::action::Action;
use crate::actions::actor::Role;
use crate::actions::refusal::Refusal;
use crate::actions::table::BatchAction;
use crate::actions::target::Target;
use crate::mirror::MirrorStore;
use crate::mirror::find::JobQuery;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::state::{BatchState, State};
use queuekeeper_queue::{Batch, BatchTarget, Error};

impl ActionPlanner<'_> {
    pub(super) async fn batch(
        &self,
        action: &Action,
        needs: Role,
        id: BatchId,
        requested: BatchAction,
    ) -> Result<Prepared, Refusal> {
        let mut target = batch_target(self.store, id, self.now);
        if let Some(version) = action.precondition.as_ref().and_then(|precondition| precondition.version) {
            target = target.at_version(version);
        }
        let batch = self.queue.load_batch(id).await?;
        check_precondition(action.precondition.as_ref(), &action.target(), batch.state(), batch.version())?;
        let (before, now) = (batch.state(), self.now);
        let steps = match requested {
            BatchAction::Release { force } => {
                let plan = self.queue.plan_release_batch(target, &self.message(), force, now).await;
                plan.map(|plan| (vec![Step::One(plan.transaction)], Some(plan.to)))
            }
            BatchAction::ReportAgain => {
                let plan = self.queue.plan_report_again(target, &self.message(), now).await;
                plan.map(|plan| (vec![Step::One(plan.transaction)], Some(plan.to)))
            }
            BatchAction::Withdraw => match self.queue.plan_withdrawal(target).await {
                Ok(plan) => match &plan.hindrance {
                    Some(why) => {
                        let (state, version) = (before.map(State::label), batch.version());
                        return Err(Refusal::Conflict { why: why.clone(), state, version });
                    }
                    None => Ok((vec![Step::Withdraw(plan)], Some(BatchState::Deleted))),
                },
                Err(error) => Err(error),
            },
            // The remains of an interrupted deletion.
            BatchAction::Delete if before == Some(BatchState::Deleted) => {
                self.queue.plan_purge(target).await.map(|plan| (vec![Step::Many(plan)], None))
            }
            BatchAction::Delete => {
                let plan = self.queue.plan_delete(target, &self.message(), now).await;
                // An empty `batch-processing` of a deleted batch would stop all reporting: see `plan_delete`. The other
                // remains are of no use.
                plan.map(|plan| (vec![Step::Many(plan), Step::ThenPurge(id)], None))
            }
            BatchAction::Purge { force } => match self.queue.plan_purge(target).await {
                Ok(plan) => Ok((vec![Step::Many(plan)], None)),
                Err(error) => match self.purge_broken(action, needs, (&Path::Batch(id), force), &error).await? {
                    Some(prepared) => return Ok(prepared),
                    None => Err(error),
                },
            },
        };
        let (steps, after) = match steps {
            Ok(steps) => steps,
            Err(error) if requested == BatchAction::Withdraw => return Err(Refusal::of_withdrawal(error)),
            Err(error) => return Err(self.explain_batch(id, error).await),
        };
        let prepared = Prepared::new(action, needs, steps).between(before, after).with_state(before, batch.version());
        let warning = (requested == BatchAction::Delete).then(|| {
            let jobs = match prepared.jobs() {
                1 => "One job is".to_owned(),
                jobs => format!("{jobs} jobs are"),
            };
            format!(
                "{jobs} deleted with it, and all znodes are removed. The depositor gets no report, and has to submit it again."
            )
        });
        Ok(prepared.warn(warning))
    }

    /// Purges every batch that is Completed or Deleted now, also those that the daemons' cleanup does not find.
    pub(super) async fn clean_up(&self, action: &Action, needs: Role) -> Result<Prepared, Refusal> {
        /// How many batches are named.
        const NAMED: usize = 10;
        let done = self.queue.finished_batches().await?;
        let named: Vec<_> = done.iter().take(NAMED).map(|batch| batch.id.to_string()).collect();
        let more = match done.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let warning = match done.len() {
            0 => "No batch is Completed or Deleted: there is nothing to purge.".to_owned(),
            1 => format!("One batch is purged with its jobs: {}.", named[0]),
            count => format!("{count} batches are purged with their jobs: {}{more}.", named.join(", ")),
        };
        let batches = done.iter().map(|batch| (Target::Batch(batch.id), batch.version())).collect();
        let mut prepared = Prepared::new(action, needs, vec![Step::CleanUp(batches)]).warn([warning]);
        let state = |batch: &Batch| batch.state().map_or("", BatchState::label);
        prepared.with_it = done.iter().map(|batch| (Target::Batch(batch.id), state(batch))).collect();
        prepared.with_plan()
    }

    async fn explain_batch(&self, id: BatchId, error: Error) -> Refusal {
        match Refusal::from(error) {
            Refusal::Conflict { why, .. } => {
                let now = self.queue.load_batch(id).await.ok();
                let state = now.as_ref().map(|batch| batch.state().map_or("other", BatchState::label));
                Refusal::Conflict { why, state, version: now.and_then(|batch| batch.version()) }
            }
            other => other,
        }
    }
}

/// A batch with its jobs as the mirror knows them: without them, every job of the queue has to be read.
pub(in crate::actions) fn batch_target(store: Option<&MirrorStore>, id: BatchId, now: Timestamp) -> BatchTarget {
    let query = JobQuery { batch: Some(id), ..JobQuery::default() };
    let jobs = store.and_then(|store| store.matching(&query, now));
    let target = BatchTarget::from(id);
    match jobs {
        Some(jobs) => target.with_jobs(jobs.into_iter().map(|(job, _)| job).collect::<Vec<_>>()),
        None => target,
    }
}
