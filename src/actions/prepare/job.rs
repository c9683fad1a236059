//! Actions on jobs.

use super::{ActionPlanner, Prepared, Step, check_precondition};
use crate::actions::action::Action;
use crate::actions::actor::Role;
use crate::actions::kind::ActionKind;
use crate::actions::refusal::Refusal;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::state::{BatchState, JobState, State as _};
use queuekeeper_queue::{Error, Job, JobChange, JobPlan, JobTarget};

impl ActionPlanner<'_> {
    pub(super) async fn job(&self, action: &Action, needs: Role, id: JobId) -> Result<Prepared, Refusal> {
        let target = self.job_target(action, id);
        let planned = match action.kind {
            ActionKind::Purge => match self.queue.plan_purge_job(target).await {
                Ok(plan) => {
                    let prepared = Prepared::new(action, needs, vec![Step::One(plan.transaction)]);
                    let mut prepared = prepared.with_state(Some(plan.from), Some(plan.version));
                    prepared.before = Some(plan.from.label());
                    return Ok(prepared);
                }
                Err(error) => match self.purge_broken(action, needs, &Path::Job(id), &error).await? {
                    Some(prepared) => return Ok(prepared),
                    None => Err(error),
                },
            },
            ActionKind::SetPriority => {
                let priority = action.priority.ok_or_else(|| {
                    Refusal::Invalid("which priority? It is a number from 0, the most urgent, to 99".to_owned())
                })?;
                self.queue.plan_priority(target, priority).await
            }
            kind => {
                let change = change(kind, action).ok_or_else(|| Refusal::Invalid(no_job_action(kind)))?;
                self.queue.plan_job_change(target, &change.with_message(self.message()), self.now).await
            }
        };
        let plan = match planned {
            Ok(plan) => plan,
            Err(error) => return Err(self.explain_job(action.kind, id, error).await),
        };
        check_precondition(action.precondition.as_ref(), &action.target, Some(plan.from), Some(plan.version))?;
        if let Some(why) = misplaced(action.kind, plan.from) {
            let (state, version) = (Some(plan.from.label()), Some(plan.version));
            return Err(Refusal::Conflict {
                why: format!("{id} is {}: {why}; nothing was done", plan.from),
                state,
                version,
            });
        }
        let warnings = warnings(action.kind, &plan);
        let prepared = Prepared::new(action, needs, Vec::new()).between(Some(plan.from), Some(plan.to)).warn(warnings);
        let prepared = prepared.with_state(Some(plan.from), Some(plan.version));
        let is_priority = action.kind == ActionKind::SetPriority;
        let priority = is_priority.then_some((plan.priority_before, plan.priority));
        Ok(Prepared { steps: vec![Step::Job(Box::new(plan))], priority, ..prepared })
    }

    /// Where the job is thought to be, and what its caller saw of it.
    fn job_target(&self, action: &Action, id: JobId) -> JobTarget {
        let mut target = JobTarget::new(id);
        if let Some(job) = self.store.and_then(|store| store.job(id))
            && let (Some(batch), Some(priority)) = (job.batch, job.priority)
        {
            target = target.thought_in(batch, priority).in_collection(&*job.collection);
        }
        match action.precondition.as_ref().and_then(|precondition| precondition.version) {
            Some(version) => target.at_version(version),
            None => target,
        }
    }

    /// Says what stands against an action, and in which state its job is now.
    async fn explain_job(&self, action: ActionKind, id: JobId, error: Error) -> Refusal {
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

fn change(kind: ActionKind, action: &Action) -> Option<JobChange> {
    match kind {
        ActionKind::Resume => match action.to {
            None => Some(JobChange::resume()),
            Some(to) => Some(JobChange::to(to).by_operator()),
        },
        ActionKind::Hold => Some(JobChange::to(JobState::Held)),
        ActionKind::Release => Some(JobChange::to(JobState::Pending).by_operator()),
        ActionKind::Fail => Some(JobChange::to(JobState::Failed)),
        ActionKind::Delete => Some(JobChange::to(JobState::Deleted).by_operator()),
        ActionKind::SetPriority
        | ActionKind::Purge
        | ActionKind::ReportAgain
        | ActionKind::CleanUp
        | ActionKind::BreakLock
        | ActionKind::Pause
        | ActionKind::Unpause
        | ActionKind::Repair => None,
    }
}

/// Why an action does not fit a state though the state machine has the step: what leads to Pending is one thing for a
/// held job and another for a failed one.
fn misplaced(action: ActionKind, from: JobState) -> Option<&'static str> {
    match action {
        ActionKind::Resume if from != JobState::Failed => Some("only a failed job is resumed"),
        ActionKind::Release if from != JobState::Held => Some("only a held job is released"),
        ActionKind::SetPriority if from.is_final() => Some("it is not queued any more, and its priority means nothing"),
        ActionKind::Resume
        | ActionKind::Hold
        | ActionKind::Release
        | ActionKind::Fail
        | ActionKind::SetPriority
        | ActionKind::Delete
        | ActionKind::Purge
        | ActionKind::ReportAgain
        | ActionKind::CleanUp
        | ActionKind::BreakLock
        | ActionKind::Pause
        | ActionKind::Unpause
        | ActionKind::Repair => None,
    }
}

fn no_job_action(action: ActionKind) -> String {
    format!("{action} is nothing to do to a job")
}

/// What the operator of a job's change should know.
fn warnings(action: ActionKind, plan: &JobPlan) -> Vec<String> {
    let mut warnings = Vec::new();
    let batch = plan.batch_state;
    match action {
        ActionKind::Resume if matches!(batch, Some(BatchState::Failed)) => warnings.push(format!(
            "Its batch has failed and was reported so: when the job is done, no report will follow. Action “report \
             again” for {} then.",
            plan.batch
        )),
        ActionKind::Resume if batch.is_none_or(BatchState::is_final) => {
            warnings.push("Its batch is done with or gone: when the job is done, no report will follow.".to_owned());
        }
        ActionKind::Release if plan.hold.is_some() => warnings.push(
            "Its collection is still held: a daemon will hold the job again when it comes to it. Release the \
             collection first."
                .to_owned(),
        ),
        ActionKind::Delete if !batch.is_none_or(BatchState::is_final) => warnings.push(
            "Its batch is not done: its depositor will not be told of this job, since a report names completed and \
             failed jobs only."
                .to_owned(),
        ),
        ActionKind::Resume
        | ActionKind::Hold
        | ActionKind::Release
        | ActionKind::Fail
        | ActionKind::SetPriority
        | ActionKind::Delete
        | ActionKind::Purge
        | ActionKind::ReportAgain
        | ActionKind::CleanUp
        | ActionKind::BreakLock
        | ActionKind::Pause
        | ActionKind::Unpause
        | ActionKind::Repair => {}
    }
    warnings
}
