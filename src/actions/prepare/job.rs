//! Actions on jobs.

use super::{ActionPlanner, Prepared, Step, check_precondition};
use crate::actions::action::Action;
use crate::actions::actor::Role;
use crate::actions::refusal::Refusal;
use crate::actions::table::JobAction;
use queuekeeper_ingest::resubmit::{Resubmission, resubmission_of};
use queuekeeper_ingest::spec::id_of;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::{JobNode, Path};
use queuekeeper_queue::state::{BatchState, JobState, State as _};
use queuekeeper_queue::{Error, Job, JobChange, JobPlan, JobTarget};

impl ActionPlanner<'_> {
    pub(super) async fn job(
        &self,
        action: &Action,
        needs: Role,
        id: JobId,
        requested: JobAction,
    ) -> Result<Prepared, Refusal> {
        let target = self.job_target(action, id);
        let planned = match requested {
            JobAction::Purge { force } => match self.queue.plan_purge_job(target).await {
                Ok(plan) => {
                    let prepared = Prepared::new(action, needs, vec![Step::One(plan.transaction)]);
                    let mut prepared = prepared.with_state(Some(plan.from), Some(plan.version));
                    prepared.before = Some(plan.from.label());
                    return Ok(prepared);
                }
                Err(error) => match self.purge_broken(action, needs, (&Path::Job(id), force), &error).await? {
                    Some(prepared) => return Ok(prepared),
                    None => Err(error),
                },
            },
            JobAction::SetPriority { priority } => self.queue.plan_priority(target, priority).await,
            JobAction::Resume { to: None } => self.plan_change(target, JobChange::resume()).await,
            JobAction::Resume { to: Some(to) } => self.plan_change(target, JobChange::to(to).by_operator()).await,
            JobAction::Hold => self.plan_change(target, JobChange::to(JobState::Held)).await,
            JobAction::Release => self.plan_change(target, JobChange::to(JobState::Pending).by_operator()).await,
            JobAction::Fail => self.plan_change(target, JobChange::to(JobState::Failed).by_operator()).await,
            JobAction::Delete => self.plan_change(target, JobChange::to(JobState::Deleted).by_operator()).await,
        };
        let plan = match planned {
            Ok(plan) => plan,
            Err(error) => return Err(self.explain_job(action, id, error).await),
        };
        check_precondition(action.precondition.as_ref(), &action.target(), Some(plan.from), Some(plan.version))?;
        if let Some(why) = action.requested.spec().refuses_job(plan.from) {
            let (state, version) = (Some(plan.from.label()), Some(plan.version));
            return Err(Refusal::Conflict {
                why: format!("{id} is {}: {why}; nothing was done", plan.from),
                state,
                version,
            });
        }
        if matches!(requested, JobAction::Resume { .. }) {
            self.check_resubmitted(&plan).await?;
        }
        let warnings = warnings(requested, &plan);
        let prepared = Prepared::new(action, needs, Vec::new()).between(Some(plan.from), Some(plan.to)).warn(warnings);
        let prepared = prepared.with_state(Some(plan.from), Some(plan.version));
        let is_priority = matches!(requested, JobAction::SetPriority { .. });
        let priority = is_priority.then_some((plan.priority_before, plan.priority));
        Ok(Prepared { steps: vec![Step::Job(Box::new(plan))], priority, ..prepared })
    }

    async fn plan_change(&self, target: JobTarget, change: JobChange) -> Result<JobPlan, Error> {
        self.queue.plan_job_change(target, &change.with_message(self.message()), self.now).await
    }

    /// Refuses to resume a job whose row is in another batch by now: it would be made twice.
    async fn check_resubmitted(&self, plan: &JobPlan) -> Result<(), Refusal> {
        // No other batch than one that was Failed can have been submitted again, and no other of its jobs than the
        // failed ones.
        let is_reported = matches!(plan.batch_state, Some(BatchState::Failed | BatchState::UpdateReporting));
        if plan.from != JobState::Failed || !is_reported {
            return Ok(());
        }
        let (job, of) = (plan.job, plan.batch);
        // What is stored was left out.
        if self.queue.load_job(job).await?.data(JobNode::Inventory).is_some() {
            return Ok(());
        }
        let why = match Box::pin(resubmission_of(self.queue, self.catalogue, of)).await? {
            Resubmission::Open(_) => return Ok(()),
            Resubmission::Made(_, batch) => format!(
                "the failed rows of {of} were submitted again as {batch}: resuming {job} would create its object twice; resume its job in {batch} instead. Nothing was done"
            ),
            Resubmission::Gone(uuid, outcome) => format!(
                "the failed rows of {of} were submitted again as {}, which has ended ({outcome}) and is no longer in the queue: resuming {job} would create its object twice; nothing was done",
                id_of(uuid)
            ),
        };
        Err(Refusal::Conflict { why, state: Some(plan.from.label()), version: Some(plan.version) })
    }

    /// The expected path of the job, and the precondition.
    fn job_target(&self, action: &Action, id: JobId) -> JobTarget {
        let mut target = JobTarget::new(id);
        if let Some(job) = self.store.and_then(|store| store.job(id))
            && let (Some(batch), Some(priority)) = (job.batch, job.priority)
        {
            target = target.located_in(batch, priority).in_collection(&*job.collection);
        }
        match action.precondition.as_ref().and_then(|precondition| precondition.version) {
            Some(version) => target.at_version(version),
            None => target,
        }
    }

    /// Explains an error, with the current state of the job.
    async fn explain_job(&self, action: &Action, id: JobId, error: Error) -> Refusal {
        let is_step = matches!(error, Error::Transition { .. });
        match Refusal::of_job(error) {
            Refusal::Conflict { why, .. } => {
                let now = self.queue.load_job(id).await.ok();
                let found = now.as_ref().and_then(Job::state);
                let better =
                    found.filter(|_| is_step).and_then(|from| Some((from, action.requested.spec().refuses_job(from)?)));
                let why = better.map_or(why, |(from, better)| format!("{id} is {from}: {better}; nothing was done"));
                let state = now.as_ref().map(|job| job.state().map_or("other", JobState::label));
                Refusal::Conflict { why, state, version: now.and_then(|job| job.version()) }
            }
            other => other,
        }
    }
}

/// The warnings for a change of a job.
fn warnings(action: JobAction, plan: &JobPlan) -> Vec<String> {
    let mut warnings = Vec::new();
    let batch = plan.batch_state;
    match action {
        JobAction::Resume { .. } if matches!(batch, Some(BatchState::Failed)) => warnings.push(format!(
            "Its batch has failed and was reported as failed: when the job completes, no report is sent automatically. Request “Report again” for {} then.",
            plan.batch
        )),
        JobAction::Resume { .. } if batch.is_none_or(BatchState::is_final) => {
            warnings.push("Its batch is finished or gone: when the job completes, no report is sent.".to_owned());
        }
        JobAction::Release if plan.hold.is_some() => warnings.push(
            "Its collection is still held: a daemon will hold the job again. Release the \
             collection first."
                .to_owned(),
        ),
        JobAction::Delete if matches!(batch, Some(BatchState::Failed)) => warnings.push(
            "Its batch has failed and was reported as failed. A further report will not include this job, because it lists only completed and failed jobs."
                .to_owned(),
        ),
        JobAction::Delete if !batch.is_none_or(BatchState::is_final) => warnings.push(
            "Its batch is not finished: the report to its depositor will not include this job, because it lists only completed and failed jobs."
                .to_owned(),
        ),
        JobAction::Resume { .. }
        | JobAction::Hold
        | JobAction::Release
        | JobAction::Fail
        | JobAction::SetPriority { .. }
        | JobAction::Delete
        | JobAction::Purge { .. } => {}
    }
    warnings
}
