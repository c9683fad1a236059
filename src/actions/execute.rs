//! Giving an action: its place among those that go on, and how long it is waited for.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::task::TaskTracker;

use super::action::Action;
use super::actor::{Actor, Role};
use super::audit::{ActionId, Audit, AuditWriter};
use super::bulk::Lists;
use super::carry_out::ActionContext;
use super::clock::Clock;
use super::execution::{Execution, Executions, Key, Outcome, Place};
use super::metrics::{DRY_RUN, Metrics};
use super::prepare::Prepared;
use super::reason::Reason;
use super::refusal::Refusal;
use super::runner::Runner;
use super::session::{Connected, Connection};
use crate::mirror::Store;
use queuekeeper_queue::Queue;
use queuekeeper_queue::fault::Limits;

/// How long an action is waited for: what takes longer goes on, and is asked after by its id.
const WAITED_FOR: Duration = Duration::from_secs(5);

/// Who ends the actions that go on when the process ends.
const ENDED: &str = "the end of the process";

/// How many actions go on at once. Who requests more is told to wait.
const MOST_GOING_ON: usize = 256;

/// What operators may request; cheap to clone.
#[derive(Clone, Debug)]
pub struct Actions {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) connected: Connected,
    pub(super) store: Option<Store>,
    pub(super) clock: Clock,
    pub(super) limits: Limits,
    pub(super) audit: Audit,
    pub(super) metrics: Metrics,
    pub(super) executions: Executions,
    pub(super) lists: Lists,
    pub(super) tasks: TaskTracker,
}

/// An action that was taken.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The action.
    pub execution: Arc<Execution>,
    /// What came of it; `None` where it is still going on.
    pub outcome: Option<Outcome>,
}

impl Actions {
    /// What a server offers: over a connection of its own, which the returned part keeps, with the image's knowledge of
    /// where things are.
    #[must_use]
    pub fn new(
        store: Store,
        limits: Limits,
        (audit, writer): (Audit, AuditWriter),
        metrics: Metrics,
    ) -> (Self, Runner) {
        let (connection, connected) = Connection::new();
        let actions = Self::with(connected, (Some(store), Clock::Mirror), limits, audit, metrics);
        (actions.clone(), Runner { actions, connection, writer })
    }

    /// What the command line offers: over a connection that its caller keeps.
    #[must_use]
    pub fn over(queue: Queue, known: (Option<Store>, Clock), limits: Limits, audit: Audit) -> Self {
        Self::with(Connected::to(queue), known, limits, audit, Metrics::default())
    }

    fn with(
        connected: Connected,
        (store, clock): (Option<Store>, Clock),
        limits: Limits,
        audit: Audit,
        metrics: Metrics,
    ) -> Self {
        let (executions, lists, tasks) = (Executions::default(), Lists::default(), TaskTracker::new());
        Self { shared: Arc::new(Shared { connected, store, clock, limits, audit, metrics, executions, lists, tasks }) }
    }

    /// The audit trail.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.shared.audit
    }

    /// An action by its id, if it was taken lately.
    #[must_use]
    pub fn execution(&self, id: ActionId) -> Option<Arc<Execution>> {
        self.shared.executions.get(id)
    }

    /// The actions that are going on, the oldest first.
    #[must_use]
    pub fn going_on(&self) -> Vec<Arc<Execution>> {
        self.shared.executions.going_on()
    }

    /// Ends an action over many: what is under way is finished, and nothing more is begun.
    ///
    /// # Errors
    /// When there is no such action, or its actor may not look after it.
    pub fn cancel(&self, id: ActionId, actor: &Actor) -> Result<Arc<Execution>, Refusal> {
        Shared::may(actor, Role::Operator)?;
        let execution =
            self.execution(id).ok_or_else(|| Refusal::Missing(format!("there is no action {id} going on")))?;
        if execution.outcome().is_some() {
            return Err(Refusal::Missing(format!(
                "the action {id} is over, and nothing of it is left to be cancelled"
            )));
        }
        tracing::info!(action = %id, actor = %actor.name, "an action is cancelled");
        execution.cancel(&actor.name);
        Ok(execution)
    }

    /// Waits until no action is going on, and takes no more of them. Long ones are cancelled: what is under way is
    /// finished.
    pub async fn end(&self) {
        self.shared.tasks.close();
        self.going_on().iter().for_each(|execution| execution.cancel(ENDED));
        self.shared.tasks.wait().await;
    }

    /// Shows what an action would do, and does nothing.
    ///
    /// # Errors
    /// What stands against it.
    pub async fn plan(
        &self,
        action: &Action,
        actor: &Actor,
        reason: &str,
        now: Timestamp,
    ) -> Result<Prepared, Refusal> {
        let planned = self.shared.prepare(action, actor, reason, now).await;
        let outcome = planned.as_ref().map_or_else(Refusal::label, |_| DRY_RUN);
        self.shared.metrics.count(action.kind(), actor.source, outcome);
        planned
    }

    /// Carries an action out. It goes on to its end even if nobody waits for that any more.
    ///
    /// An action that came before by the same key of the same actor is not done again: its outcome is returned.
    ///
    /// # Errors
    /// What stands against it. Nothing was done then, but with [`Refusal::Unknown`].
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
        let execution = match self.begin(execution, &actor, key, fingerprint)? {
            Begun::New(execution) => {
                let (shared, work_of_task) = (Arc::clone(&self.shared), Arc::clone(&execution));
                let key = key.map(|key| Key { actor: actor.name.clone(), key: key.to_owned() });
                self.shared.tasks.spawn(async move {
                    let context = ActionContext { actor: &actor, reason: &reason, execution: &work_of_task, now };
                    let outcome = shared.carry_out(&action, context).await;
                    let label = outcome.as_ref().map_or_else(Refusal::label, Outcome::label);
                    shared.metrics.count(action.kind(), actor.source, label);
                    // Where nothing was done, whoever sends it again means it as the queue is then.
                    if let (Some(key), Err(refusal)) = (&key, &outcome)
                        && !matches!(refusal, Refusal::Unknown(_) | Refusal::InPart(_))
                    {
                        shared.executions.forget(key);
                    }
                    work_of_task.end(outcome);
                });
                execution
            }
            Begun::Before(execution) => execution,
        };
        match tokio::time::timeout(WAITED_FOR, execution.over()).await {
            Ok(outcome) => outcome.map(|outcome| Accepted { execution, outcome: Some(outcome) }),
            Err(_elapsed) => Ok(Accepted { execution, outcome: None }),
        }
    }

    /// Gives an action its place among those that go on.
    pub(super) fn begin(
        &self,
        execution: Arc<Execution>,
        actor: &Actor,
        key: Option<&str>,
        fingerprint: u64,
    ) -> Result<Begun, Refusal> {
        if self.shared.tasks.is_closed() {
            return Err(Refusal::Unavailable("the server is ending; nothing was done".to_owned()));
        }
        if self.shared.tasks.len() >= MOST_GOING_ON {
            let why = format!("{MOST_GOING_ON} actions are going on; nothing was done, try again in a moment");
            return Err(Refusal::Unavailable(why));
        }
        let key = key.map(|key| Key { actor: actor.name.clone(), key: key.to_owned() });
        match self.shared.executions.add(&execution, key, fingerprint) {
            Place::New => Ok(Begun::New(execution)),
            Place::Before(execution) => Ok(Begun::Before(execution)),
            Place::Another => {
                Err(Refusal::Invalid("another order came before by the same key; nothing was done".to_owned()))
            }
        }
    }
}

/// An action with its place.
pub(super) enum Begun {
    New(Arc<Execution>),
    /// The same order came before.
    Before(Arc<Execution>),
}

/// What tells two actions apart that have the same key.
fn fingerprint(action: &Action, reason: &Reason) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{action:?} {reason}").hash(&mut hasher);
    hasher.finish()
}
