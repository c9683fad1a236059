//! One action: check the role, prepare, record the request, commit, record the outcome.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::action::Action;
use super::actor::{Actor, Role, Source};
use super::audit::{Finished, NotWritten, Record, TARGETS_PER_RECORD};
use super::execution::{ActionOutcome, Execution};
use super::kind::ActionKind;
use super::lists::BulkAction;
use super::parameters::ActionParameters;
use super::prepare::{ActionPlanner, NOT_PRESENT, Prepared, Step, batch_target, held_in, jobs_of};
use super::reason::Reason;
use super::refusal::Refusal;
use super::shared::Shared;
use super::target::Target;
use crate::words::counted;
use queuekeeper_queue::state::{JobState, State as _};
use queuekeeper_queue::{Error, Queue};

/// For how many request timeouts the outcome of a lost transaction is looked up: about as long as a session lasts.
pub(super) const OUTCOME_TIMEOUTS: u32 = 3;

/// The time between two lookups.
pub(super) const OUTCOME_POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Shared {
    pub(super) fn require_role(actor: &Actor, needs: Role) -> Result<(), Refusal> {
        if actor.role >= needs { Ok(()) } else { Err(Refusal::Forbidden { needs, has: actor.role }) }
    }

    pub(super) async fn prepare(
        &self,
        action: &Action,
        actor: &Actor,
        reason: &str,
        now: Timestamp,
    ) -> Result<Prepared, Refusal> {
        // Before anything is read, so that a caller without the role learns nothing.
        Self::require_role(actor, action.role())?;
        let queue = self.connected.queue()?;
        let planner = ActionPlanner {
            queue: &queue,
            store: self.store.as_ref(),
            catalogue: self.catalogue.get(),
            clock: &self.clock,
            who: &actor.name,
            reason,
            limits: &self.limits,
            now,
        };
        let prepared = planner.prepare(action).await?;
        Self::require_role(actor, prepared.needs)?;
        Ok(prepared)
    }

    pub(super) async fn execute_one(
        &self,
        action: &Action,
        context: ActionContext<'_>,
    ) -> Result<ActionOutcome, Refusal> {
        let ActionContext { actor, reason, execution, now } = context;
        let began = Instant::now();
        let prepared = self.prepare(action, actor, reason.as_str(), now).await?;
        let queue = self.connected.queue()?;
        let mut records = vec![context.requested_one(action, &prepared)];
        records.extend(context.started(&prepared.with_it));
        self.audit.write_all(records).await?;
        let mut outcome = self.steps(&queue, &prepared, context).await;
        let done = outcome.as_ref().ok();
        let (before, _) = prepared.values();
        let after = done.and_then(|done| done.after.clone());
        let finished = Finished {
            target: None,
            outcome: outcome.as_ref().map_or_else(Refusal::label, ActionOutcome::label),
            detail: outcome.as_ref().map_or_else(|refusal| Some(refusal.to_string()), |done| done.detail.clone()),
            before,
            after,
            cancelled_by: done.filter(|done| done.is_cancelled).and_then(|_| execution.cancelled_by()),
        };
        let unwritten = self.record_outcome(context.finished(began, finished), execution).await;
        if let Ok(done) = &mut outcome {
            done.warnings.extend(unwritten);
        }
        outcome
    }

    /// Records an outcome. The action is executed already, so that a failure is only reported, as a warning.
    pub(super) async fn record_outcome(&self, record: Record, execution: &Execution) -> Option<String> {
        let why = self.audit.write(record).await.err()?;
        tracing::error!(action = %execution.id, "{why}; the action was executed, but its outcome was not recorded");
        Some(format!("Its outcome was not recorded: {why}."))
    }

    /// Commits a prepared action, step by step.
    pub(super) async fn steps(
        &self,
        queue: &Queue,
        prepared: &Prepared,
        context: ActionContext<'_>,
    ) -> Result<ActionOutcome, Refusal> {
        let mut commits = 0;
        match self.commit(queue, prepared, context, &mut commits).await {
            Ok(done) => Ok(done),
            Err(StopReason::Queue(error @ Error::Unknown { .. })) if commits == 0 => {
                self.look_up_outcome(queue, prepared, error).await
            }
            Err(StopReason::Queue(error)) if commits == 0 => Err(Refusal::of_job(error)),
            Err(StopReason::Queue(error)) => Err(Refusal::in_part(&error)),
            Err(StopReason::Refused(refusal)) => Err(refusal),
            Err(StopReason::Unwritten(why)) if commits == 0 => Err(why.into()),
            Err(StopReason::Unwritten(why)) => {
                Err(Refusal::InPart(format!("{why}; a part was done, request the action again for the rest")))
            }
        }
    }

    /// Looks up the outcome of one transaction once the connection is back, which is possible for most that were
    /// interrupted.
    async fn look_up_outcome(
        &self,
        queue: &Queue,
        prepared: &Prepared,
        error: Error,
    ) -> Result<ActionOutcome, Refusal> {
        let transaction = match prepared.steps.as_slice() {
            [Step::Job(plan)] => &plan.transaction,
            [Step::One(transaction)] => transaction,
            _ => return Err(Refusal::of_job(error)),
        };
        let until = Instant::now() + OUTCOME_TIMEOUTS * queue.time_limit();
        while Instant::now() < until {
            tokio::time::sleep(OUTCOME_POLL_INTERVAL).await;
            let Ok(present) = self.connected.queue() else { continue };
            match present.recheck(transaction).await {
                Ok(Some(true)) => {
                    let ((before, after), warnings) = (prepared.values(), prepared.warnings.clone());
                    return Ok(ActionOutcome { before, after, warnings, ..ActionOutcome::default() });
                }
                Ok(Some(false)) if present.session() == queue.session() => {
                    let why = "the connection was lost before ZooKeeper committed it; nothing was done";
                    return Err(Refusal::Unavailable(why.to_owned()));
                }
                Ok(Some(false) | None) => break,
                Err(_) => {}
            }
        }
        Err(Refusal::of_job(error))
    }

    /// Commits the steps, and counts the committed transactions.
    async fn commit(
        &self,
        queue: &Queue,
        prepared: &Prepared,
        context: ActionContext<'_>,
        commits: &mut usize,
    ) -> Result<ActionOutcome, StopReason> {
        let execution = context.execution;
        let (before, after) = prepared.values();
        let warnings = prepared.warnings.clone();
        let detail = prepared.steps.is_empty().then(|| NOT_PRESENT.to_owned());
        let mut outcome = ActionOutcome {
            before: before.clone(),
            after,
            version: None,
            warnings,
            detail,
            ..ActionOutcome::default()
        };
        // A deletion passes over each job twice: marking it, and then removing it.
        let passes = prepared.steps.iter().filter(|step| matches!(step, Step::Many(_) | Step::ThenPurge(_))).count();
        let mut pass = 0;
        for step in &prepared.steps {
            let total = prepared.jobs();
            let mut report = |done: usize| {
                *commits += 1;
                execution.set_progress((pass * total + done) / passes.max(1), total);
                check_cancelled(execution)
            };
            let is_whole = match step {
                Step::Job(plan) => {
                    outcome.version = Some(queue.commit_job_plan(plan).await?.version);
                    *commits += 1;
                    true
                }
                Step::One(transaction) => {
                    queue.commit(transaction).await?;
                    *commits += 1;
                    true
                }
                Step::Many(plan) => {
                    let done = queue.execute(plan, 0, |progress| report(progress.jobs)).await?;
                    pass += 1;
                    outcome.detail = Some(counted(plan.jobs_until(done) as u64, "job", "jobs"));
                    done == plan.chunks.len()
                }
                Step::ThenPurge(batch) => {
                    let plan = queue.plan_purge(batch_target(self.store.as_ref(), *batch, context.now)).await?;
                    self.audit.write_all(context.started(&jobs_of(plan.each_job()))).await?;
                    let done = queue.execute(&plan, 0, |progress| report(progress.jobs.min(total))).await?;
                    pass += 1;
                    done == plan.chunks.len()
                }
                Step::Withdraw(plan) => {
                    outcome.detail = Some(counted(self.withdraw(plan, context).await? as u64, "job", "jobs"));
                    *commits += 1;
                    true
                }
                Step::BreakLock(lock, _) => {
                    // The lock was read before the request was recorded, which may have taken a while.
                    queue.commit(&queue.plan_break_lock(lock).await?).await?;
                    *commits += 1;
                    true
                }
                Step::CleanUp(batches) => self.all(ActionKind::Purge, batches, context, &mut outcome).await,
                Step::ReleaseHeld(collection) => {
                    let items = self.held(collection, context.now);
                    let held: Vec<_> = items.iter().map(|(item, _)| (item.clone(), JobState::Held.label())).collect();
                    self.audit.write_all(context.started(&held)).await?;
                    self.all(ActionKind::Release, &items, context, &mut outcome).await
                }
            };
            if !is_whole {
                // What was committed stays; a new request plans the rest.
                (outcome.after, outcome.is_cancelled) = (before, true);
                break;
            }
        }
        Ok(outcome)
    }

    /// Executes an action on each of many items. Returns whether all were processed.
    async fn all(
        &self,
        action: ActionKind,
        items: &[(Target, Option<i32>)],
        context: ActionContext<'_>,
        outcome: &mut ActionOutcome,
    ) -> bool {
        context.execution.set_progress(0, items.len());
        let bulk = BulkAction { kind: action, parameters: ActionParameters::default() };
        let unwritten = self.execute_each(bulk, items, context).await;
        outcome.warnings.extend(unwritten);
        outcome.count(context.execution.progress());
        !outcome.is_cancelled
    }

    /// The batches and jobs of a collection that are Held, with the versions of their statuses.
    fn held(&self, collection: &str, now: Timestamp) -> Vec<(Target, Option<i32>)> {
        let Some(store) = &self.store else { return Vec::new() };
        let batches = store.held_batches(collection).into_iter();
        let batches = batches.map(|batch| (Target::Batch(batch.id), Some(batch.status_version)));
        let jobs = store.matching(&held_in(collection), now).unwrap_or_default().into_iter();
        batches.chain(jobs.map(|(job, version)| (Target::Job(job), Some(version)))).collect()
    }
}

/// Why no further step of an action was committed.
pub(super) enum StopReason {
    Queue(Error),
    /// It was refused, and nothing is left of it.
    Refused(Refusal),
    /// The next step could not be recorded.
    Unwritten(NotWritten),
}

impl From<Error> for StopReason {
    fn from(error: Error) -> Self {
        Self::Queue(error)
    }
}

impl From<NotWritten> for StopReason {
    fn from(why: NotWritten) -> Self {
        Self::Unwritten(why)
    }
}

fn check_cancelled(execution: &Execution) -> ControlFlow<()> {
    if execution.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The context of a requested action: the actor, the reason, its execution, and when it started.
#[derive(Clone, Copy)]
pub(super) struct ActionContext<'a> {
    pub(super) actor: &'a Actor,
    pub(super) reason: &'a Reason,
    pub(super) execution: &'a Execution,
    pub(super) now: Timestamp,
}

impl ActionContext<'_> {
    /// The first record of an action on one target.
    pub(super) fn requested_one(&self, action: &Action, prepared: &Prepared) -> Record {
        let mut record = self.requested(action.kind()).on(vec![action.target().to_string()]);
        if let Record::Requested { before, after, operations, parameters, .. } = &mut record {
            (*before, *after) = prepared.values();
            *operations = prepared.recorded();
            *parameters = action.requested.parameters().written();
        }
        record
    }

    /// A first record of a bulk action, with some of its targets and the state of each before.
    pub(super) fn requested_many(
        &self,
        bulk: BulkAction,
        of: usize,
        some: &[(Target, Option<i32>)],
        before: Vec<String>,
    ) -> Record {
        let mut record = self.requested(bulk.kind);
        if let Record::Requested { targets, count, before_each, parameters, .. } = &mut record {
            (*targets, *count) = (some.iter().map(|(target, _)| target.to_string()).collect(), of as u64);
            *before_each = before;
            *parameters = bulk.parameters.written();
        }
        record
    }

    /// The records of what is about to be changed besides an action's target, each with the label of its state before.
    pub(super) fn started(&self, items: &[(Target, &'static str)]) -> Vec<Record> {
        let record = |some: &[(Target, &'static str)]| {
            let before: Vec<_> = some.iter().map(|(_, before)| (*before).to_owned()).collect();
            let is_known = before.iter().any(|before| !before.is_empty());
            let targets = some.iter().map(|(target, _)| target.to_string()).collect();
            self.started_with(targets, if is_known { before } else { Vec::new() }, Vec::new())
        };
        items.chunks(TARGETS_PER_RECORD).map(record).collect()
    }

    /// The records of further changes of one item of a list, and of what a repair writes and replaces.
    pub(super) fn started_item(&self, prepared: &Prepared) -> Vec<Record> {
        let mut records = self.started(&prepared.with_it);
        if prepared.action.kind() == ActionKind::Repair && !prepared.steps.is_empty() {
            let targets = vec![prepared.action.target().to_string()];
            records.push(self.started_with(targets, Vec::new(), prepared.recorded()));
        }
        records
    }

    fn started_with(&self, targets: Vec<String>, before_each: Vec<String>, operations: Vec<String>) -> Record {
        let by_alert = self.actor.source == Source::Alert;
        Record::Started { id: self.execution.id, at: self.now, targets, before_each, operations, by_alert }
    }

    /// The first record of the action, without its targets.
    pub(super) fn requested(&self, action: ActionKind) -> Record {
        Record::requested(self.execution.id, self.now, self.actor, action.label(), self.reason)
    }

    /// The record of the outcome of the whole action, which began at that instant.
    pub(super) fn finished(&self, began: Instant, finished: Finished) -> Record {
        let duration = began.elapsed();
        Record::outcome(self.execution.id, self.now + duration, self.actor.source, duration, finished)
    }
}
