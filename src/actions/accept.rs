//! Accepting actions: limits, idempotency keys, and how long a caller waits for the outcome.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use tokio_util::task::TaskTracker;

use super::action::Action;
use super::actor::{Actor, Role};
use super::audit::{ActionId, Audit};
use super::clock::Clock;
use super::execute::ActionContext;
use super::execution::{ActionOutcome, Admission, Execution, Executions, Key};
use super::lists::Lists;
use super::metrics::Metrics;
use super::outcome::DRY_RUN;
use super::prepare::Prepared;
use super::reason::Reason;
use super::refusal::Refusal;
use super::session::Connected;
use super::shared::Shared;
use crate::mirror::MirrorStore;
use queuekeeper_queue::Queue;
use queuekeeper_queue::fault::Limits;

/// How long a caller waits for an action. A longer one continues, and its outcome is available by its id.
pub(super) const CALLER_TIMEOUT: Duration = Duration::from_secs(5);

/// What cancels the running actions when the process ends.
const SHUTDOWN: &str = "the shutdown of the server";

/// How many actions may run concurrently. Further ones are refused.
const MAX_RUNNING: usize = 256;

/// The actions of operators; cheap to clone.
#[derive(Clone, Debug)]
pub struct Actions {
    pub(super) shared: Arc<Shared>,
}

/// An accepted action.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The action.
    pub execution: Arc<Execution>,
    /// Its outcome; `None` while it is running.
    pub outcome: Option<ActionOutcome>,
}

impl Actions {
    /// Actions of the command line: over a connection of the caller.
    #[must_use]
    pub fn over(queue: Queue, known: (Option<MirrorStore>, Clock), limits: Limits, audit: Audit) -> Self {
        Self::with(Connected::to(queue), known, limits, audit, Metrics::default())
    }

    pub(super) fn with(
        connected: Connected,
        (store, clock): (Option<MirrorStore>, Clock),
        limits: Limits,
        audit: Audit,
        metrics: Metrics,
    ) -> Self {
        let (executions, lists, tasks) = (Executions::default(), Lists::default(), TaskTracker::new());
        let catalogue = OnceLock::new();
        let has_same_catalogue = AtomicBool::new(false);
        let shared = Shared {
            connected,
            store,
            catalogue,
            has_same_catalogue,
            clock,
            limits,
            audit,
            metrics,
            executions,
            lists,
            tasks,
        };
        Self { shared: Arc::new(shared) }
    }

    /// From now on actions go by what a catalogue has of deposits, too.
    pub fn know(&self, catalogue: &Catalogue) {
        // There is one of a server, and it is the same for as long as that runs.
        let _ = self.shared.catalogue.set(catalogue.clone());
    }

    /// The audit trail.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.shared.audit
    }

    /// A recent action by its id.
    #[must_use]
    pub fn execution(&self, id: ActionId) -> Option<Arc<Execution>> {
        self.shared.executions.get(id)
    }

    /// The running actions, the oldest first.
    #[must_use]
    pub fn running(&self) -> Vec<Arc<Execution>> {
        self.shared.executions.running()
    }

    /// Cancels a bulk action: items in progress are finished, and no further ones are started.
    ///
    /// # Errors
    /// When there is no such action, it has finished, or the role does not suffice.
    pub fn cancel(&self, id: ActionId, actor: &Actor) -> Result<Arc<Execution>, Refusal> {
        Shared::require_role(actor, Role::Operator)?;
        let execution =
            self.execution(id).ok_or_else(|| Refusal::Missing(format!("there is no running action {id}")))?;
        if execution.outcome().is_some() {
            return Err(Refusal::Missing(format!("the action {id} has finished and cannot be cancelled")));
        }
        tracing::info!(action = %id, actor = %actor.name, "cancelled an action");
        execution.cancel(&actor.name);
        Ok(execution)
    }

    /// Refuses new actions, cancels bulk actions, and waits until no action is running.
    pub async fn end(&self) {
        self.shared.tasks.close();
        self.running().iter().for_each(|execution| execution.cancel(SHUTDOWN));
        self.shared.tasks.wait().await;
    }

    /// Shows what an action would do, without executing it.
    ///
    /// # Errors
    /// Why the action is refused.
    pub async fn plan(
        &self,
        action: &Action,
        actor: &Actor,
        reason: &str,
        now: Timestamp,
    ) -> Result<Prepared, Refusal> {
        let planned = match self.shared.connected.queue_at_hand() {
            Ok(_) => self.shared.prepare(action, actor, reason, now).await,
            Err(refusal) => Err(refusal),
        };
        let outcome = planned.as_ref().map_or_else(Refusal::label, |_| DRY_RUN);
        self.shared.metrics.count(action.kind().label(), actor.source, outcome);
        planned
    }

    /// Executes an action. It runs to its end even if the caller stops waiting.
    ///
    /// A repeated action with the same key of the same actor is not executed again: it gets the outcome of the first.
    ///
    /// # Errors
    /// Why the action is refused. Nothing was done, except with [`Refusal::Unknown`] and [`Refusal::InPart`].
    pub async fn execute(
        &self,
        action: Action,
        actor: Actor,
        reason: Reason,
        key: Option<&str>,
        now: Timestamp,
    ) -> Result<Accepted, Refusal> {
        let execution = Execution::new(
            ActionId::new(now),
            action.kind(),
            action.target().to_string(),
            reason.to_string(),
            actor.name.clone(),
        );
        let fingerprint = fingerprint(&action, &reason);
        let execution = match self.start(execution, &actor, key, fingerprint)? {
            Started::New(execution) => {
                let (shared, task_execution) = (Arc::clone(&self.shared), Arc::clone(&execution));
                let key = key.map(|key| Key { actor: actor.name.clone(), key: key.to_owned() });
                self.shared.tasks.spawn(async move {
                    let context = ActionContext { actor: &actor, reason: &reason, execution: &task_execution, now };
                    let outcome = shared.execute_one(&action, context).await;
                    let label = outcome.as_ref().map_or_else(Refusal::label, ActionOutcome::label);
                    shared.metrics.count(action.kind().label(), actor.source, label);
                    // Nothing was done, so that a repetition is a new action on the queue as it is then.
                    if let (Some(key), Err(refusal)) = (&key, &outcome)
                        && !matches!(refusal, Refusal::Unknown(_) | Refusal::InPart(_))
                    {
                        shared.executions.forget(key);
                    }
                    task_execution.end(outcome);
                });
                execution
            }
            Started::Repeated(execution) => execution,
        };
        match tokio::time::timeout(CALLER_TIMEOUT, execution.finished()).await {
            Ok(outcome) => outcome.map(|outcome| Accepted { execution, outcome: Some(outcome) }),
            Err(_elapsed) => Ok(Accepted { execution, outcome: None }),
        }
    }

    /// Starts an action, unless it is a repetition or too many are running.
    pub(super) fn start(
        &self,
        execution: Arc<Execution>,
        actor: &Actor,
        key: Option<&str>,
        fingerprint: u64,
    ) -> Result<Started, Refusal> {
        if self.shared.tasks.is_closed() {
            return Err(Refusal::Unavailable("the server is shutting down; nothing was done".to_owned()));
        }
        if self.shared.tasks.len() >= MAX_RUNNING {
            let why = format!("{MAX_RUNNING} actions are running; nothing was done, try again in a moment");
            return Err(Refusal::Unavailable(why));
        }
        let key = key.map(|key| Key { actor: actor.name.clone(), key: key.to_owned() });
        match self.shared.executions.add(&execution, key, fingerprint) {
            Admission::New => Ok(Started::New(execution)),
            Admission::Repeated(execution) => Ok(Started::Repeated(execution)),
            Admission::KeyReused => {
                Err(Refusal::Invalid("the key was used for another action before; nothing was done".to_owned()))
            }
        }
    }
}

/// The result of starting an action.
pub(super) enum Started {
    New(Arc<Execution>),
    /// The same action was requested before.
    Repeated(Arc<Execution>),
}

/// Distinguishes actions that have the same key.
fn fingerprint(action: &Action, reason: &Reason) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{action:?} {reason}").hash(&mut hasher);
    hasher.finish()
}
