//! Orders on jobs.

use super::{Desk, Prepared, Step, check_seen};
use crate::actions::action::Action;
use crate::actions::actor::Role;
use crate::actions::order::Order;
use crate::actions::refusal::Refusal;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::state::{BatchState, JobState, State as _};
use queuekeeper_queue::{Error, Job, JobChange, JobPlan, JobTarget};

impl Desk<'_> {
    pub(super) async fn job(&self, order: &Order, needs: Role, id: JobId) -> Result<Prepared, Refusal> {
        let target = self.job_target(order, id);
        let planned = match order.action {
            Action::Purge => match self.queue.plan_purge_job(target).await {
                Ok(plan) => {
                    let prepared = Prepared::new(order, needs, vec![Step::One(plan.transaction)]);
                    let mut prepared = prepared.seen_as(Some(plan.from), Some(plan.version));
                    prepared.before = Some(plan.from.label());
                    return Ok(prepared);
                }
                Err(error) => match self.purge_broken(order, needs, &Path::Job(id), &error).await? {
                    Some(prepared) => return Ok(prepared),
                    None => Err(error),
                },
            },
            Action::SetPriority => {
                let priority = order.priority.ok_or_else(|| {
                    Refusal::Invalid("which priority? It is a number from 0, the most urgent, to 99".to_owned())
                })?;
                self.queue.plan_priority(target, priority).await
            }
            action => {
                let change = change(action, order).ok_or_else(|| Refusal::Invalid(no_job_action(action)))?;
                self.queue.plan_job_change(target, &change.with_message(self.message()), self.now).await
            }
        };
        let plan = match planned {
            Ok(plan) => plan,
            Err(error) => return Err(self.explain_job(order.action, id, error).await),
        };
        check_seen(order.seen.as_ref(), &order.subject, Some(plan.from), Some(plan.version))?;
        if let Some(why) = misplaced(order.action, plan.from) {
            let (state, version) = (Some(plan.from.label()), Some(plan.version));
            return Err(Refusal::Conflict {
                why: format!("{id} is {}: {why}; nothing was done", plan.from),
                state,
                version,
            });
        }
        let warnings = warnings(order.action, &plan);
        let prepared = Prepared::new(order, needs, Vec::new()).between(Some(plan.from), Some(plan.to)).warn(warnings);
        let prepared = prepared.seen_as(Some(plan.from), Some(plan.version));
        let is_priority = order.action == Action::SetPriority;
        let priority = is_priority.then_some((plan.priority_before, plan.priority));
        Ok(Prepared { work: vec![Step::Job(Box::new(plan))], priority, ..prepared })
    }

    /// Where the job is thought to be, and what its orderer saw of it.
    fn job_target(&self, order: &Order, id: JobId) -> JobTarget {
        let mut target = JobTarget::new(id);
        if let Some(job) = self.store.and_then(|store| store.job(id))
            && let (Some(batch), Some(priority)) = (job.batch, job.priority)
        {
            target = target.thought_in(batch, priority).in_collection(&*job.collection);
        }
        match order.seen.as_ref().and_then(|seen| seen.version) {
            Some(version) => target.at_version(version),
            None => target,
        }
    }

    /// Says what stands against an order, and in which state its job is now.
    async fn explain_job(&self, action: Action, id: JobId, error: Error) -> Refusal {
        let is_step = matches!(error, Error::Transition { .. });
        match Refusal::of_job(error) {
            Refusal::Conflict { why, .. } => {
                let now = self.queue.load_job(id).await.ok();
                let found = now.as_ref().and_then(Job::state);
                let better = found.filter(|_| is_step).and_then(|from| Some((from, misplaced(action, from)?)));
                let why = better.map_or(why, |(from, better)| format!("{id} is {from}: {better}; nothing was done"));
                let state = now.as_ref().map(|job| job.state().map_or("other", JobState::label));
                Refusal::Conflict { why, state, version: now.and_then(|job| job.version()) }
            }
            other => other,
        }
    }
}

fn change(action: Action, order: &Order) -> Option<JobChange> {
    match action {
        Action::Resume => match order.to {
            None => Some(JobChange::resume()),
            Some(to) => Some(JobChange::to(to).by_operator()),
        },
        Action::Hold => Some(JobChange::to(JobState::Held)),
        Action::Release => Some(JobChange::to(JobState::Pending).by_operator()),
        Action::Fail => Some(JobChange::to(JobState::Failed)),
        Action::Delete => Some(JobChange::to(JobState::Deleted).by_operator()),
        Action::SetPriority
        | Action::Purge
        | Action::ReportAgain
        | Action::CleanUp
        | Action::BreakLock
        | Action::Pause
        | Action::Unpause
        | Action::Mend => None,
    }
}

/// Why an action does not fit a state though the state machine has the step: what leads to Pending is one thing for a
/// held job and another for a failed one.
fn misplaced(action: Action, from: JobState) -> Option<&'static str> {
    match action {
        Action::Resume if from != JobState::Failed => Some("only a failed job is resumed"),
        Action::Release if from != JobState::Held => Some("only a held job is released"),
        Action::SetPriority if from.is_final() => Some("it is not queued any more, and its priority means nothing"),
        Action::Resume
        | Action::Hold
        | Action::Release
        | Action::Fail
        | Action::SetPriority
        | Action::Delete
        | Action::Purge
        | Action::ReportAgain
        | Action::CleanUp
        | Action::BreakLock
        | Action::Pause
        | Action::Unpause
        | Action::Mend => None,
    }
}

fn no_job_action(action: Action) -> String {
    format!("{action} is nothing to do to a job")
}

/// What the orderer of a job's change should know.
fn warnings(action: Action, plan: &JobPlan) -> Vec<String> {
    let mut warnings = Vec::new();
    let batch = plan.batch_state;
    match action {
        Action::Resume if matches!(batch, Some(BatchState::Failed)) => warnings.push(format!(
            "Its batch has failed and was reported so: when the job is done, no report will follow. Order “report \
             again” for {} then.",
            plan.batch
        )),
        Action::Resume if batch.is_none_or(BatchState::is_final) => {
            warnings.push("Its batch is done with or gone: when the job is done, no report will follow.".to_owned());
        }
        Action::Release if plan.hold.is_some() => warnings.push(
            "Its collection is still held: a daemon will hold the job again when it comes to it. Release the \
             collection first."
                .to_owned(),
        ),
        Action::Delete if !batch.is_none_or(BatchState::is_final) => warnings.push(
            "Its batch is not done: its depositor will not be told of this job, since a report names completed and \
             failed jobs only."
                .to_owned(),
        ),
        Action::Resume
        | Action::Hold
        | Action::Release
        | Action::Fail
        | Action::SetPriority
        | Action::Delete
        | Action::Purge
        | Action::ReportAgain
        | Action::CleanUp
        | Action::BreakLock
        | Action::Pause
        | Action::Unpause
        | Action::Mend => {}
    }
    warnings
}
