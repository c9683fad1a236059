//! Giving an order: its place among those that go on, and how long it is waited for.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::task::TaskTracker;

use super::actor::{Actor, Role};
use super::audit::{Audit, AuditWriter, OrderId};
use super::bulk::Lists;
use super::carry_out::Given;
use super::clock::Clock;
use super::metrics::{DRY_RUN, Metrics};
use super::order::{Order, Reason};
use super::prepare::Prepared;
use super::refusal::Refusal;
use super::runner::Runner;
use super::session::{Connected, Connection};
use super::work::{Key, Outcome, Place, Work, Works};
use crate::mirror::Store;
use queuekeeper_queue::Queue;
use queuekeeper_queue::fault::Limits;

/// How long an order is waited for: what takes longer goes on, and is asked after by its id.
const WAITED_FOR: Duration = Duration::from_secs(5);

/// Who ends the orders that go on when the process ends.
const ENDED: &str = "the end of the process";

/// How many orders go on at once. Who orders more is told to wait.
const MOST_GOING_ON: usize = 256;

/// What operators may order; cheap to clone.
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
    pub(super) works: Works,
    pub(super) lists: Lists,
    pub(super) tasks: TaskTracker,
}

/// An order that was taken.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The order.
    pub work: Arc<Work>,
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
        let (works, lists, tasks) = (Works::default(), Lists::default(), TaskTracker::new());
        Self { shared: Arc::new(Shared { connected, store, clock, limits, audit, metrics, works, lists, tasks }) }
    }

    /// The audit trail.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.shared.audit
    }

    /// An order by its id, if it was taken lately.
    #[must_use]
    pub fn work(&self, id: OrderId) -> Option<Arc<Work>> {
        self.shared.works.get(id)
    }

    /// The orders that are going on, the oldest first.
    #[must_use]
    pub fn going_on(&self) -> Vec<Arc<Work>> {
        self.shared.works.going_on()
    }

    /// Ends an order over many: what is under way is finished, and nothing more is begun.
    ///
    /// # Errors
    /// When there is no such order, or its actor may not look after it.
    pub fn cancel(&self, id: OrderId, actor: &Actor) -> Result<Arc<Work>, Refusal> {
        Shared::may(actor, Role::Operator)?;
        let work = self.work(id).ok_or_else(|| Refusal::Missing(format!("there is no order {id} going on")))?;
        if work.outcome().is_some() {
            return Err(Refusal::Missing(format!("the order {id} is over, and nothing of it is left to be cancelled")));
        }
        tracing::info!(order = %id, actor = %actor.name, "an order is cancelled");
        work.cancel(&actor.name);
        Ok(work)
    }

    /// Waits until no order is going on, and takes no more of them. Long ones are cancelled: what is under way is
    /// finished.
    pub async fn end(&self) {
        self.shared.tasks.close();
        self.going_on().iter().for_each(|work| work.cancel(ENDED));
        self.shared.tasks.wait().await;
    }

    /// Shows what an order would do, and does nothing.
    ///
    /// # Errors
    /// What stands against it.
    pub async fn plan(&self, order: &Order, actor: &Actor, reason: &str, now: Timestamp) -> Result<Prepared, Refusal> {
        let planned = self.shared.prepare(order, actor, reason, now).await;
        let outcome = planned.as_ref().map_or_else(Refusal::label, |_| DRY_RUN);
        self.shared.metrics.count(order.action, actor.source, outcome);
        planned
    }

    /// Carries an order out. It goes on to its end even if nobody waits for that any more.
    ///
    /// An order that came before by the same key of the same actor is not done again: its outcome is given.
    ///
    /// # Errors
    /// What stands against it. Nothing was done then, but with [`Refusal::Unknown`].
    pub async fn execute(
        &self,
        order: Order,
        actor: Actor,
        reason: Reason,
        key: Option<&str>,
        now: Timestamp,
    ) -> Result<Taken, Refusal> {
        let work = Work::new(
            OrderId::new(now),
            order.action,
            order.subject.to_string(),
            reason.to_string(),
            actor.name.clone(),
        );
        let fingerprint = fingerprint(&order, &reason);
        let work = match self.begin(work, &actor, key, fingerprint)? {
            Begun::New(work) => {
                let (shared, work_of_task) = (Arc::clone(&self.shared), Arc::clone(&work));
                let key = key.map(|key| Key { actor: actor.name.clone(), key: key.to_owned() });
                self.shared.tasks.spawn(async move {
                    let given = Given { actor: &actor, reason: &reason, work: &work_of_task, now };
                    let outcome = shared.carry_out(&order, given).await;
                    let label = outcome.as_ref().map_or_else(Refusal::label, Outcome::label);
                    shared.metrics.count(order.action, actor.source, label);
                    // Where nothing was done, whoever sends it again means it as the queue is then.
                    if let (Some(key), Err(refusal)) = (&key, &outcome)
                        && !matches!(refusal, Refusal::Unknown(_) | Refusal::InPart(_))
                    {
                        shared.works.forget(key);
                    }
                    work_of_task.end(outcome);
                });
                work
            }
            Begun::Before(work) => work,
        };
        match tokio::time::timeout(WAITED_FOR, work.over()).await {
            Ok(outcome) => outcome.map(|outcome| Taken { work, outcome: Some(outcome) }),
            Err(_elapsed) => Ok(Taken { work, outcome: None }),
        }
    }

    /// Gives an order its place among those that go on.
    pub(super) fn begin(
        &self,
        work: Arc<Work>,
        actor: &Actor,
        key: Option<&str>,
        fingerprint: u64,
    ) -> Result<Begun, Refusal> {
        if self.shared.tasks.is_closed() {
            return Err(Refusal::Unavailable("the server is ending; nothing was done".to_owned()));
        }
        if self.shared.tasks.len() >= MOST_GOING_ON {
            let why = format!("{MOST_GOING_ON} orders are going on; nothing was done, try again in a moment");
            return Err(Refusal::Unavailable(why));
        }
        let key = key.map(|key| Key { actor: actor.name.clone(), key: key.to_owned() });
        match self.shared.works.add(&work, key, fingerprint) {
            Place::New => Ok(Begun::New(work)),
            Place::Before(work) => Ok(Begun::Before(work)),
            Place::Another => {
                Err(Refusal::Invalid("another order came before by the same key; nothing was done".to_owned()))
            }
        }
    }
}

/// An order with its place.
pub(super) enum Begun {
    New(Arc<Work>),
    /// The same order came before.
    Before(Arc<Work>),
}

/// What tells two orders apart that have the same key.
fn fingerprint(order: &Order, reason: &Reason) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{order:?} {reason}").hash(&mut hasher);
    hasher.finish()
}
