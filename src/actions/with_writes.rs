//! Actions that are committed together with writes to znodes of our own, in one transaction.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::accept::Actions;
use super::action::Action;
use super::actor::Actor;
use super::audit::{ActionId, Finished};
use super::execute::ActionContext;
use super::execution::{ActionOutcome, Execution};
use super::outcome::DONE;
use super::prepare::{NOT_PRESENT, Prepared, Step};
use super::reason::Reason;
use super::refusal::Refusal;
use super::shared::Shared;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::{CommitError, Transaction};
use queuekeeper_zookeeper::Write;

/// Why an action was not committed together with other writes. Nothing was written, unless the outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WithWritesError {
    /// The action was refused.
    #[error(transparent)]
    Action(#[from] Refusal),
    /// One of the other writes failed, and with it the action.
    #[error("{path}: {why}")]
    Write {
        /// The znode of that write.
        path: String,
        /// ZooKeeper's error.
        why: zookeeper_client::Error,
    },
}

impl Actions {
    /// Executes an action of a decision together with these writes, in one transaction. It is recorded before and
    /// after, as every action is, with the id of the decision.
    ///
    /// # Errors
    /// When the action or a write is refused, or the action needs more than one transaction.
    pub async fn execute_with_writes(
        &self,
        action: &Action,
        actor: &Actor,
        reason: &Reason,
        (decision, writes): (ActionId, &[Write]),
        now: Timestamp,
    ) -> Result<ActionOutcome, WithWritesError> {
        if self.shared.tasks.is_closed() {
            return Err(Refusal::Unavailable("the server is shutting down; nothing was done".to_owned()).into());
        }
        // Shutdown waits for it.
        let _running = self.shared.tasks.token();
        let on = action.target().to_string();
        let execution = Execution::new(ActionId::new(now), action.kind(), on, reason.to_string(), actor.name.clone());
        let context = ActionContext { actor, reason, execution: &execution, now };
        let outcome = self.shared.execute_one_with_writes(action, context, (decision, writes)).await;
        let label = match &outcome {
            Ok(outcome) => outcome.label(),
            Err(refusal) => refusal.refusal().label(),
        };
        self.shared.metrics.count(action.kind().label(), actor.source, label);
        self.remember(&execution, &outcome);
        outcome
    }

    /// Makes it available by its id.
    fn remember(&self, execution: &Arc<Execution>, outcome: &Result<ActionOutcome, WithWritesError>) {
        execution.end(outcome.clone().map_err(|error| error.refusal()));
        // It has no key, so that it is always new.
        let _ = self.shared.executions.add(execution, None, 0);
    }
}

impl WithWritesError {
    /// The refusal to show for the action.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::Action(refusal) => refusal.clone(),
            Self::Write { .. } => Refusal::conflict(format!("{self}; nothing was done")),
        }
    }
}

impl Shared {
    async fn execute_one_with_writes(
        &self,
        action: &Action,
        context: ActionContext<'_>,
        (decision, writes): (ActionId, &[Write]),
    ) -> Result<ActionOutcome, WithWritesError> {
        let ActionContext { actor, reason, execution, now } = context;
        let began = Instant::now();
        let prepared = self.prepare(action, actor, reason.as_str(), now).await?;
        let transaction = whole(&prepared, writes)?;
        let queue = self.connected.queue()?;
        let requested = context.requested_one(action, &prepared).of_decision(decision);
        self.audit.write(requested).await.map_err(Refusal::from)?;
        let committed = match queue.try_commit(&transaction).await {
            Ok(_) => Ok(()),
            Err(CommitError::Refused { operation, reason, .. }) if matches!(operation.path(), Path::Own(_)) => {
                Err(WithWritesError::Write { path: operation.path().to_string(), why: reason })
            }
            Err(error) => Err(Refusal::of_job(queue.explain(error).await).into()),
        };
        let (before, after) = prepared.values();
        let mut outcome = committed.map(|()| ActionOutcome {
            before: before.clone(),
            after: after.clone(),
            warnings: prepared.warnings.clone(),
            ..ActionOutcome::default()
        });
        let refusal = outcome.as_ref().err().map(WithWritesError::refusal);
        let finished = Finished {
            outcome: refusal.as_ref().map_or(DONE, Refusal::label),
            detail: refusal.map(|refusal| refusal.to_string()),
            before,
            after: outcome.as_ref().ok().and(after),
            ..Finished::default()
        };
        let unwritten = self.record_outcome(context.finished(began, finished), execution).await;
        if let Ok(done) = &mut outcome {
            done.warnings.extend(unwritten);
        }
        outcome
    }
}

/// The transaction of an action, with the further writes.
fn whole(prepared: &Prepared, writes: &[Write]) -> Result<Transaction, Refusal> {
    if prepared.steps.is_empty() {
        return Err(Refusal::Missing(NOT_PRESENT.to_owned()));
    }
    prepared.check_listed()?;
    let many = || {
        Refusal::Invalid(
            "this action needs more than one transaction, and cannot be combined with other writes".to_owned(),
        )
    };
    let [step] = prepared.steps.as_slice() else { return Err(many()) };
    let mut transaction = match step {
        Step::Job(plan) => plan.transaction.clone(),
        Step::One(transaction) | Step::BreakLock(_, transaction) => transaction.clone(),
        Step::Many(_) | Step::ThenPurge(_) | Step::Withdraw(_) | Step::CleanUp(_) | Step::ReleaseHeld(_) => {
            return Err(many());
        }
    };
    for write in writes {
        let foreign = || Refusal::Invalid(format!("{} is not below /queuekeeper", write.path()));
        let path = Path::own(write.path()).ok_or_else(foreign)?;
        match write {
            Write::Present(_) => transaction.check_exists(path),
            Write::Absent(_) => transaction.create(path.clone(), Vec::new()).delete(path, None),
            Write::Create(_, data) => transaction.create(path, data.clone()),
            Write::Set(_, data, version) => transaction.set(path, data.clone(), *version),
            Write::Delete(_, version) => transaction.delete(path, Some(*version)),
        };
    }
    Ok(transaction)
}
