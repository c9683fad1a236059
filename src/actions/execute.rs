//! Carrying out an order: who may, what it means, written down, done, written down.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio_util::task::TaskTracker;

use super::actor::{Actor, Role};
use super::audit::{Audit, AuditWriter, OrderId, Record};
use super::bulk::Lists;
use super::metrics::{DONE, DRY_RUN, Metrics};
use super::order::{Order, Reason};
use super::prepare::{Desk, Prepared, Step};
use super::refusal::Refusal;
use super::session::{Connected, Connection};
use super::work::{Key, Outcome, Place, Work, Works};
use crate::mirror::Store;
use crate::queue::fault::Limits;
use crate::queue::{Progress, Queue};
use crate::zookeeper::{ConnectError, Sessions};
use tokio_util::sync::CancellationToken;

/// How long an order is waited for: what takes longer goes on, and is asked after by its id.
const WAITED_FOR: Duration = Duration::from_secs(5);

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
    pub(super) limits: Limits,
    pub(super) audit: Audit,
    pub(super) metrics: Metrics,
    pub(super) works: Works,
    pub(super) lists: Lists,
    pub(super) tasks: TaskTracker,
}

/// What orders need to go on: their connection, and the writer of the audit trail. Awaited by whoever made it.
#[derive(Debug)]
pub struct Runner {
    actions: Actions,
    connection: Connection,
    writer: AuditWriter,
}

impl Runner {
    /// Keeps orders going until `shutdown`. What is under way then is finished and written down.
    ///
    /// # Errors
    /// As [`Sessions::establish`].
    pub async fn run(self, sessions: Sessions, shutdown: CancellationToken) -> Result<(), ConnectError> {
        let end = CancellationToken::new();
        let ended = async {
            shutdown.cancelled().await;
            self.actions.end().await;
            end.cancel();
        };
        let connected = async {
            let connected = self.connection.run(sessions, end.clone()).await;
            // Where it ended by itself, there is nothing more to wait for.
            end.cancel();
            connected
        };
        let until = async {
            tokio::select! {
                () = ended => {}
                () = end.cancelled() => {}
            }
        };
        let (connected, (), ()) = tokio::join!(connected, self.writer.run(end.clone()), until);
        connected
    }
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
        let actions = Self::with(connected, Some(store), limits, audit, metrics);
        (actions.clone(), Runner { actions, connection, writer })
    }

    /// What the command line offers: over a connection that its caller keeps.
    #[must_use]
    pub fn over(queue: Queue, store: Option<Store>, audit: Audit) -> Self {
        Self::with(Connected::to(queue), store, Limits::default(), audit, Metrics::default())
    }

    fn with(connected: Connected, store: Option<Store>, limits: Limits, audit: Audit, metrics: Metrics) -> Self {
        let (works, lists, tasks) = (Works::default(), Lists::default(), TaskTracker::new());
        Self { shared: Arc::new(Shared { connected, store, limits, audit, metrics, works, lists, tasks }) }
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
        tracing::info!(order = %id, actor = %actor.name, "an order is cancelled");
        work.cancel();
        Ok(work)
    }

    /// Waits until no order is going on, and takes no more of them. Long ones are cancelled: what is under way is
    /// finished.
    pub async fn end(&self) {
        self.shared.tasks.close();
        self.going_on().iter().for_each(|work| work.cancel());
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
        let print = print(&order, &reason);
        let work = match self.begin(work, &actor, key, print)? {
            Begun::New(work) => {
                let (shared, work_of_task) = (Arc::clone(&self.shared), Arc::clone(&work));
                self.shared.tasks.spawn(async move {
                    let outcome = shared.carry_out(&order, &actor, &reason, &work_of_task, now).await;
                    let label = outcome.as_ref().map_or_else(Refusal::label, |_| DONE);
                    shared.metrics.count(order.action, actor.source, label);
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
        print: u64,
    ) -> Result<Begun, Refusal> {
        if self.shared.tasks.is_closed() {
            return Err(Refusal::Unavailable("the server is ending; nothing was done".to_owned()));
        }
        if self.shared.tasks.len() >= MOST_GOING_ON {
            let why = format!("{MOST_GOING_ON} orders are going on; nothing was done, try again in a moment");
            return Err(Refusal::Unavailable(why));
        }
        let key = key.map(|key| Key { actor: actor.name.clone(), key: key.to_owned() });
        match self.shared.works.add(&work, key, print) {
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
fn print(order: &Order, reason: &Reason) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{order:?} {reason}").hash(&mut hasher);
    hasher.finish()
}

impl Shared {
    pub(super) fn may(actor: &Actor, needs: Role) -> Result<(), Refusal> {
        if actor.role >= needs { Ok(()) } else { Err(Refusal::Forbidden { needs, has: actor.role }) }
    }

    pub(super) async fn prepare(
        &self,
        order: &Order,
        actor: &Actor,
        reason: &str,
        now: Timestamp,
    ) -> Result<Prepared, Refusal> {
        // Before anything is read: who may not order it learns nothing by it.
        Self::may(actor, order.subject.role(order.action).unwrap_or(Role::Operator))?;
        let queue = self.connected.queue()?;
        let (store, limits) = (self.store.as_ref(), &self.limits);
        let desk = Desk { queue: &queue, store, who: &actor.name, reason, limits, now };
        let prepared = desk.prepare(order).await?;
        Self::may(actor, prepared.needs)?;
        Ok(prepared)
    }

    async fn carry_out(
        &self,
        order: &Order,
        actor: &Actor,
        reason: &Reason,
        work: &Work,
        now: Timestamp,
    ) -> Result<Outcome, Refusal> {
        let began = Instant::now();
        let prepared = self.prepare(order, actor, reason.as_str(), now).await?;
        let queue = self.connected.queue()?;
        let mut ordered = ordered(work.id, order.action, actor, reason, now);
        if let Record::Ordered { subjects, count, before, after, operations, .. } = &mut ordered {
            (*subjects, *count) = (vec![order.subject.to_string()], 1);
            (*before, *after) = (prepared.before.map(str::to_owned), prepared.after.map(str::to_owned));
            *operations = prepared.operations();
        }
        self.audit.write(ordered).await.map_err(|why| Refusal::Unavailable(format!("{why}; nothing was done")))?;
        let done = self.steps(&queue, &prepared, work).await;
        let outcome = done.map(|(version, detail)| Outcome {
            before: prepared.before,
            after: prepared.after,
            version,
            warnings: prepared.warnings.clone(),
            detail,
        });
        let record = Record::Outcome {
            id: work.id,
            at: now + began.elapsed(),
            subject: None,
            outcome: outcome.as_ref().map_or_else(Refusal::label, |_| DONE).to_owned(),
            detail: outcome.as_ref().map_or_else(|refusal| Some(refusal.to_string()), |done| done.detail.clone()),
            after: outcome.as_ref().ok().and_then(|done| done.after).map(str::to_owned),
            duration_seconds: began.elapsed().as_secs_f64(),
        };
        if let Err(why) = self.audit.write(record).await {
            tracing::error!(order = %work.id, "{why}; the order was carried out, and what came of it is not recorded");
        }
        outcome
    }

    /// Commits what was prepared. Gives the version of the subject's status, and what was done in figures.
    pub(super) async fn steps(
        &self,
        queue: &Queue,
        prepared: &Prepared,
        work: &Work,
    ) -> Result<(Option<i32>, Option<String>), Refusal> {
        let mut version = None;
        let mut detail = None;
        let total = prepared.jobs();
        for step in &prepared.work {
            match step {
                Step::Job(plan) => version = Some(queue.commit_job_plan(plan).await?.version),
                Step::One(transaction) => {
                    queue.commit(transaction).await?;
                }
                Step::Many(plan) => {
                    queue.execute(plan, 0, |progress: Progress| work.set_reached(progress.jobs, total)).await?;
                    detail = Some(format!("{} jobs", plan.jobs()));
                }
                Step::ThenPurge(batch) => {
                    let plan = queue.plan_purge(*batch).await?;
                    queue.execute(&plan, 0, |_| {}).await?;
                }
                Step::CleanUp => {
                    let done = queue.clean_up(|_, _| {}).await?;
                    for (batch, why) in &done.kept {
                        work.add_failed(batch.to_string(), why.clone().into());
                    }
                    let kept = done.kept.first().map_or_else(String::new, |(batch, why)| {
                        format!(", {} left where they are, {batch} since {why}", done.kept.len())
                    });
                    detail = Some(format!("{} batches purged{kept}", done.purged.len()));
                }
            }
        }
        Ok((version, detail))
    }
}

/// The first record of an order, without what it is about.
pub(super) fn ordered(id: OrderId, action: super::Action, actor: &Actor, reason: &Reason, now: Timestamp) -> Record {
    Record::Ordered {
        id,
        at: now,
        actor: actor.name.clone(),
        role: actor.role.label().to_owned(),
        source: actor.source.label().to_owned(),
        from: actor.from.map(|from| from.to_string()),
        action: action.label().to_owned(),
        subjects: Vec::new(),
        count: 0,
        reason: reason.to_string(),
        before: None,
        after: None,
        operations: Vec::new(),
    }
}
