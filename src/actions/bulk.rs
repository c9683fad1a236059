//! Actions over many: a list is frozen first, looked at, and then carried out item by item. Nothing outside the list is
//! touched, whatever arrives meanwhile.

mod lists;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::action::{Action, ActionParameters};
use super::actor::{Actor, Role, Source};
use super::audit::{ActionId, Record};
use super::carry_out::ActionContext;
use super::execute::{Actions, Begun, Shared};
use super::execution::{Execution, Key, Outcome};
use super::kind::ActionKind;
use super::metrics::DONE;
use super::prepare::priority_text;
use super::reason::Reason;
use super::refusal::Refusal;
use super::target::Target;
use queuekeeper_queue::state::State as _;

pub(super) use lists::Lists;
pub use lists::{Frozen, ListOf, MOST_ITEMS};

/// How many items are carried out at once.
const IN_FLIGHT: usize = 32;

/// How many targets one line of the audit trail names.
pub(super) const TARGETS_A_LINE: usize = 1_000;

/// How long what came of items is gathered until it is written down: a sync for each of thousands in a second would
/// keep the disk and the processor busy with nothing else.
const GATHERED_FOR: Duration = Duration::from_millis(50);

/// Who ends an action whose outcomes cannot be written down.
const UNWRITTEN: &str = "the audit trail, which cannot be written";

/// What is requested on each item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BulkAction {
    /// Which action.
    pub kind: ActionKind,
    /// What it takes besides its target.
    pub parameters: ActionParameters,
}

impl BulkAction {
    /// One that takes nothing besides its target.
    #[must_use]
    pub fn new(kind: ActionKind) -> Self {
        Self { kind, parameters: ActionParameters::default() }
    }

    /// The action on one item, at this version of its status.
    ///
    /// # Errors
    /// As [`Requested::new`](super::Requested::new).
    pub fn on(self, target: &Target, version: Option<i32>) -> Result<Action, Refusal> {
        Ok(Action::new(self.kind, target.clone(), self.parameters)?.at_version(version))
    }
}

/// What was done to an item.
struct Did {
    /// What was changed of it, its state as a rule, as it is afterwards.
    after: Option<String>,
    /// What a repair has written.
    written: Option<String>,
}

/// What was to be changed of an item, as it was before, and what came of it.
type Item = (Option<String>, Result<Did, Refusal>);

impl Actions {
    /// Freezes a list. `of` says what it is a list of.
    ///
    /// # Errors
    /// When its actor may not request that, the list is empty or too long, or an item does not support the action.
    pub fn freeze(
        &self,
        bulk: BulkAction,
        of: ListOf,
        items: Vec<(Target, Option<i32>)>,
        actor: &Actor,
        now: Timestamp,
    ) -> Result<Arc<Frozen>, Refusal> {
        let mut named = HashSet::new();
        // What is named twice is done once.
        let items: Vec<_> = items.into_iter().filter(|(target, _)| named.insert(target.to_string())).collect();
        if items.is_empty() {
            return Err(Refusal::Invalid("nothing is chosen, and so there is nothing to do".to_owned()));
        }
        if items.len() > MOST_ITEMS {
            let (count, most) = (items.len(), MOST_ITEMS);
            return Err(Refusal::Invalid(format!(
                "{count} items are more than {most}, the most that one action takes"
            )));
        }
        Shared::may(actor, needed(bulk.kind, &items))?;
        for (target, version) in &items {
            bulk.on(target, *version)?;
        }
        let frozen = Frozen { id: ActionId::new(now), at: now, actor: actor.name.clone(), bulk, of, items };
        let frozen = Arc::new(frozen);
        self.shared.lists.add(Arc::clone(&frozen));
        Ok(frozen)
    }

    /// A list that was frozen within the last half hour and not requested yet.
    #[must_use]
    pub fn frozen(&self, id: ActionId, now: Timestamp) -> Option<Arc<Frozen>> {
        self.shared.lists.get(id, now)
    }

    /// Begins to carry out what a frozen list says, and does not wait for its end.
    ///
    /// A list is executed once: the same request again gets the same execution.
    ///
    /// # Errors
    /// When there is no such list, it is another's, or its actor may not request that.
    pub fn execute_frozen(
        &self,
        id: ActionId,
        actor: Actor,
        reason: Reason,
        now: Timestamp,
    ) -> Result<Arc<Execution>, Refusal> {
        let gone = || {
            Refusal::Missing(format!("there is no list {id}: it was requested already, or is older than half an hour"))
        };
        // One of which nothing was done may be requested again.
        let is_refused = |execution: &Arc<Execution>| matches!(execution.outcome(), Some(Err(_)));
        if let Some(execution) =
            self.execution(id).filter(|execution| execution.actor == actor.name && !is_refused(execution))
        {
            return Ok(execution);
        }
        let frozen = self.frozen(id, now).filter(|frozen| frozen.actor == actor.name).ok_or_else(gone)?;
        Shared::may(&actor, needed(frozen.bulk.kind, &frozen.items))?;
        self.shared.connected.queue()?;
        let on = format!("{} {}", frozen.items.len(), frozen.of.words(frozen.items.len()));
        let execution = Execution::new(frozen.id, frozen.bulk.kind, on, reason.to_string(), actor.name.clone());
        execution.set_reached(0, frozen.items.len());
        let mut hasher = DefaultHasher::new();
        (frozen.bulk, id.to_string()).hash(&mut hasher);
        // The list's id is its key, so that two who press the button at once request it once.
        match self.begin(execution, &actor, Some(&format!("list {id}")), hasher.finish())? {
            Begun::Before(execution) => Ok(execution),
            Begun::New(execution) => {
                let (shared, work_of_task) = (Arc::clone(&self.shared), Arc::clone(&execution));
                self.shared.tasks.spawn(async move {
                    let context = ActionContext { actor: &actor, reason: &reason, execution: &work_of_task, now };
                    let outcome = shared.carry_out_list(&frozen, context).await;
                    if outcome.is_err() {
                        shared.executions.forget(&Key { actor: actor.name.clone(), key: format!("list {id}") });
                    }
                    work_of_task.end(outcome);
                });
                Ok(execution)
            }
        }
    }
}

/// The role that an action takes on all of a list.
fn needed(kind: ActionKind, items: &[(Target, Option<i32>)]) -> Role {
    // That an item does not support it is told only to those who may act.
    let roles = items.iter().map(|(target, _)| target.role(kind).unwrap_or(Role::Operator));
    roles.max().unwrap_or(Role::Operator)
}

impl Shared {
    async fn carry_out_list(&self, frozen: &Frozen, context: ActionContext<'_>) -> Result<Outcome, Refusal> {
        let began = Instant::now();
        for targets in frozen.items.chunks(TARGETS_A_LINE) {
            let before = self.known_before(frozen.bulk.kind, targets);
            let record = context.requested_many(frozen.bulk, frozen.items.len(), targets, before);
            self.audit.write(record).await?;
        }
        let mut outcome = Outcome::default();
        outcome.warnings.extend(self.carry_out_each(frozen.bulk, &frozen.items, context).await);
        let execution = context.execution;
        outcome.count(execution.reached());
        let record = Record::Outcome {
            id: execution.id,
            at: context.now + began.elapsed(),
            target: None,
            outcome: outcome.label().to_owned(),
            detail: outcome.detail.clone(),
            before: None,
            after: None,
            cancelled_by: execution.cancelled_by().filter(|_| outcome.is_cancelled),
            duration_seconds: began.elapsed().as_secs_f64(),
            by_alert: context.actor.source == Source::Alert,
        };
        outcome.warnings.extend(self.end(record, execution).await);
        Ok(outcome)
    }

    /// Does the same to each item of a list, so many at once, and writes down what comes of each. Where that cannot be
    /// written, nothing more is begun, and what is said of it comes back.
    pub(super) async fn carry_out_each(
        &self,
        bulk: BulkAction,
        items: &[(Target, Option<i32>)],
        context: ActionContext<'_>,
    ) -> Option<String> {
        let ActionContext { actor, execution, now, .. } = context;
        let began = Instant::now();
        let (records, written) = mpsc::unbounded_channel();
        let carry_out = async {
            let records = records;
            // By their places, since a closure over references is not general enough for a task.
            let outcomes = futures::stream::iter(0..items.len()).map(|at| async move {
                let began = Instant::now();
                let (target, version) = &items[at];
                if execution.is_cancelled() {
                    return None;
                }
                let (before, outcome) = self.item(bulk, target, *version, context).await;
                Some((target, before, outcome, began.elapsed()))
            });
            let mut outcomes = std::pin::pin!(outcomes.buffer_unordered(IN_FLIGHT));
            while let Some(next) = outcomes.next().await {
                let Some((target, before, outcome, duration)) = next else { continue };
                let label = outcome.as_ref().map_or_else(Refusal::label, |_| DONE);
                self.metrics.count(bulk.kind, actor.source, label);
                let record = Record::Outcome {
                    id: execution.id,
                    at: now + began.elapsed(),
                    target: Some(target.to_string()),
                    outcome: label.to_owned(),
                    detail: outcome.as_ref().map_or_else(|why| Some(why.to_string()), |did| did.written.clone()),
                    before,
                    after: outcome.as_ref().ok().and_then(|did| did.after.clone()),
                    cancelled_by: None,
                    duration_seconds: duration.as_secs_f64(),
                    by_alert: actor.source == Source::Alert,
                };
                // The other half ends only after this one.
                let _ = records.send(record);
                match outcome {
                    Ok(did) => execution.add_done(target, did.written),
                    Err(refusal) => execution.add_failed(target.to_string(), refusal),
                }
            }
        };
        let ((), unwritten) = tokio::join!(carry_out, self.write_down(written, execution));
        unwritten
    }

    /// What is to be changed of each, as far as the image knows it; nothing, where it knows none. Should the process end
    /// before what came of an item is written down, this, the item's znodes and what was requested tell what was changed.
    fn known_before(&self, action: ActionKind, items: &[(Target, Option<i32>)]) -> Vec<String> {
        let Some(store) = &self.store else { return Vec::new() };
        let known: Vec<_> = items
            .iter()
            .map(|(target, _)| match target {
                Target::Job(id) => store.job(*id).map(|job| match action {
                    ActionKind::SetPriority => job.priority.map(priority_text).unwrap_or_default(),
                    _ => job.state.map_or("other", |state| state.label()).to_owned(),
                }),
                Target::Batch(id) => {
                    store.batch(*id).map(|found| found.batch.state.map_or("other", |state| state.label()).to_owned())
                }
                _ => None,
            })
            .collect();
        if known.iter().all(Option::is_none) {
            Vec::new()
        } else {
            known.into_iter().map(Option::unwrap_or_default).collect()
        }
    }

    /// One item. Gives what is changed of it, its state as a rule, before and after. Boxed, since a step of an action can be
    /// a list of others.
    fn item<'a>(
        &'a self,
        bulk: BulkAction,
        target: &'a Target,
        version: Option<i32>,
        context: ActionContext<'a>,
    ) -> BoxFuture<'a, Item> {
        let ActionContext { actor, reason, now, .. } = context;
        Box::pin(async move {
            let action = match bulk.on(target, version) {
                Ok(action) => action,
                Err(refusal) => return (None, Err(refusal)),
            };
            // Its own progress is nothing of the list's.
            let unseen = Execution::new(context.execution.id, bulk.kind, String::new(), String::new(), String::new());
            let attempt = async || {
                let prepared = match self.prepare(&action, actor, reason.as_str(), now).await {
                    Ok(prepared) => prepared,
                    Err(refusal) => return (None, Err(refusal)),
                };
                let (before, after) = prepared.values();
                let steps = async {
                    prepared.check_listed()?;
                    self.audit.write_all(context.begun_item(&prepared)).await?;
                    let queue = self.connected.queue()?;
                    self.steps(&queue, &prepared, ActionContext { execution: &unseen, ..context }).await?;
                    Ok(Did { after, written: prepared.repaired() })
                };
                let did = steps.await;
                (before, did)
            };
            match attempt().await {
                // Another repair of the list may just have changed the same nodes.
                (_, Err(Refusal::Conflict { .. } | Refusal::Missing(_))) if bulk.kind == ActionKind::Repair => {
                    attempt().await
                }
                outcome => outcome,
            }
        })
    }

    /// Writes down what came of items, as many at a time as come within a moment.
    async fn write_down(&self, mut records: mpsc::UnboundedReceiver<Record>, execution: &Execution) -> Option<String> {
        let mut some = Vec::new();
        let mut unwritten: Option<(u64, String)> = None;
        while records.recv_many(&mut some, TARGETS_A_LINE).await > 0 {
            let gather = async {
                while some.len() < TARGETS_A_LINE {
                    let room = TARGETS_A_LINE - some.len();
                    if records.recv_many(&mut some, room).await == 0 {
                        break;
                    }
                }
            };
            // The time is over, or the room, or the items: what has come is written in any case.
            let _ = tokio::time::timeout(GATHERED_FOR, gather).await;
            let count = some.len() as u64;
            if let Err(why) = self.audit.write_all(std::mem::take(&mut some)).await {
                execution.cancel(UNWRITTEN);
                if unwritten.is_none() {
                    tracing::error!(action = %execution.id, "{why}; nothing more of the list is begun");
                }
                unwritten.get_or_insert((0, why.to_string())).0 += count;
            }
        }
        unwritten.map(|(count, why)| format!("What came of {count} of its items is not recorded: {why}."))
    }
}
