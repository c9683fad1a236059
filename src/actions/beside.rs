//! Actions that are carried out together with writes to znodes of our own, in one transaction: all of it is done, or
//! nothing.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::action::Action;
use super::actor::{Actor, Source};
use super::audit::{ActionId, Record};
use super::carry_out::ActionContext;
use super::execute::{Actions, Shared};
use super::execution::{Execution, Outcome};
use super::prepare::{NOT_SHOWN, Prepared, Step};
use super::reason::Reason;
use super::refusal::Refusal;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::{CommitError, Transaction};
use queuekeeper_zookeeper::Write;

/// Why an action was not carried out together with other writes. Nothing was done, unless it says that this is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBeside {
    /// The action itself was refused.
    #[error(transparent)]
    Action(#[from] Refusal),
    /// One of the other writes was, and with it the action.
    #[error("{path}: {why}")]
    Write {
        /// The znode that it was about.
        path: String,
        /// Why, in ZooKeeper's words.
        why: zookeeper_client::Error,
    },
}

impl Actions {
    /// Carries an action out together with these writes, in one transaction. It is written down before and after, as
    /// every order.
    ///
    /// # Errors
    /// When the action or a write stands against it, and when it takes more than one transaction.
    pub async fn execute_beside(
        &self,
        action: &Action,
        actor: &Actor,
        reason: &Reason,
        writes: &[Write],
        now: Timestamp,
    ) -> Result<Outcome, NotBeside> {
        if self.shared.tasks.is_closed() {
            return Err(Refusal::Unavailable("the server is ending; nothing was done".to_owned()).into());
        }
        // Whoever ends the server waits for it.
        let _going_on = self.shared.tasks.token();
        let on = action.target().to_string();
        let execution = Execution::new(ActionId::new(now), action.kind(), on, reason.to_string(), actor.name.clone());
        let outcome = self
            .shared
            .carry_out_beside(action, ActionContext { actor, reason, execution: &execution, now }, writes)
            .await;
        let label = match &outcome {
            Ok(outcome) => outcome.label(),
            Err(refusal) => refusal.refusal().label(),
        };
        self.shared.metrics.count(action.kind(), actor.source, label);
        self.remember(&execution, &outcome);
        outcome
    }

    /// Lets it be asked after by its id.
    fn remember(&self, execution: &Arc<Execution>, outcome: &Result<Outcome, NotBeside>) {
        execution.end(outcome.clone().map_err(|error| error.refusal()));
        // It has no key, so that it is new in any case.
        let _ = self.shared.executions.add(execution, None, 0);
    }
}

impl NotBeside {
    /// What it is to whoever asks after the action.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::Action(refusal) => refusal.clone(),
            Self::Write { .. } => Refusal::conflict(format!("{self}; nothing was done")),
        }
    }
}

impl Shared {
    async fn carry_out_beside(
        &self,
        action: &Action,
        context: ActionContext<'_>,
        writes: &[Write],
    ) -> Result<Outcome, NotBeside> {
        let ActionContext { actor, reason, execution, now } = context;
        let began = Instant::now();
        let prepared = self.prepare(action, actor, reason.as_str(), now).await?;
        let transaction = whole(&prepared, writes)?;
        let queue = self.connected.queue()?;
        let requested = context.requested_one(action, &prepared);
        self.audit.write(requested).await.map_err(Refusal::from)?;
        let committed = match queue.try_commit(&transaction).await {
            Ok(_) => Ok(()),
            Err(CommitError::Refused { operation, reason, .. }) if matches!(operation.path(), Path::Own(_)) => {
                Err(NotBeside::Write { path: operation.path().to_string(), why: reason })
            }
            Err(error) => Err(Refusal::of_job(queue.explain(error).await).into()),
        };
        let mut outcome = committed.map(|()| Outcome {
            before: prepared.before,
            after: prepared.after,
            warnings: prepared.warnings.clone(),
            ..Outcome::default()
        });
        let refusal = outcome.as_ref().err().map(NotBeside::refusal);
        let record = Record::Outcome {
            id: execution.id,
            at: now + began.elapsed(),
            target: None,
            outcome: refusal.as_ref().map_or(super::metrics::DONE, Refusal::label).to_owned(),
            detail: refusal.map(|refusal| refusal.to_string()),
            before: prepared.values().0,
            after: outcome.as_ref().ok().and_then(|_| prepared.values().1),
            cancelled_by: None,
            duration_seconds: began.elapsed().as_secs_f64(),
            by_alert: actor.source == Source::Alert,
        };
        let unwritten = self.end(record, execution).await;
        if let Ok(done) = &mut outcome {
            done.warnings.extend(unwritten);
        }
        outcome
    }
}

/// The one transaction of an action, with what is written besides.
fn whole(prepared: &Prepared, writes: &[Write]) -> Result<Transaction, Refusal> {
    if prepared.steps.is_empty() {
        return Err(Refusal::Missing(NOT_SHOWN.to_owned()));
    }
    prepared.check_listed()?;
    let many = || Refusal::Invalid("this takes more than one transaction, and is not done by itself".to_owned());
    let [step] = prepared.steps.as_slice() else { return Err(many()) };
    let mut transaction = match step {
        Step::Job(plan) => plan.transaction.clone(),
        Step::One(transaction) | Step::BreakLock(_, transaction) => transaction.clone(),
        Step::Many(_) | Step::ThenPurge(_) | Step::CleanUp(_) | Step::ReleaseJobs(_) => return Err(many()),
    };
    for write in writes {
        let foreign = || Refusal::Invalid(format!("{} is no znode of queuekeeper's own", write.path()));
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
