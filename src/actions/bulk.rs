//! Bulk actions: a list is frozen and confirmed first, and then executed item by item. Items that arrive later are not
//! touched.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::accept::{Actions, Started};
use super::actor::{Actor, Role};
use super::audit::{ActionId, Finished, Record, TARGETS_PER_RECORD};
use super::execute::ActionContext;
use super::execution::{ActionOutcome, Execution, ItemChange, Key};
use super::kind::ActionKind;
use super::lists::{BulkAction, Frozen, ListOf, ListOrigin, MAX_ITEMS, no_list};
use super::outcome::DONE;
use super::prepare::priority_text;
use super::reason::Reason;
use super::refusal::Refusal;
use super::shared::Shared;
use super::target::Target;
use queuekeeper_queue::state::State as _;

/// How many items are executed concurrently.
const IN_FLIGHT: usize = 32;

/// How long outcomes of items are collected before they are recorded: one sync for each of thousands per second would
/// keep the disk and the processor busy.
const BATCH_WINDOW: Duration = Duration::from_millis(50);

/// What cancels an action whose outcomes cannot be recorded.
const UNWRITABLE: &str = "the audit trail, which cannot be written";

/// The state of an item before, or what else the action changes, and the outcome.
type ItemOutcome = (Option<String>, Result<ItemChange, Refusal>);

impl Actions {
    /// Freezes a list. `of` is what the list contains.
    ///
    /// # Errors
    /// When the role does not suffice, the list is empty or too long, or the action is not supported for an item.
    pub fn freeze(
        &self,
        bulk: BulkAction,
        of: ListOf,
        items: Vec<(Target, Option<i32>)>,
        actor: &Actor,
        now: Timestamp,
    ) -> Result<Arc<Frozen>, Refusal> {
        self.freeze_from(ListOrigin::default(), bulk, (of, items), actor, now)
    }

    /// The same with the list of jobs that it was made from, to lead back there. A job that was left out of it by name
    /// is not an item.
    ///
    /// # Errors
    /// Likewise.
    pub fn freeze_from(
        &self,
        origin: ListOrigin,
        bulk: BulkAction,
        (of, items): (ListOf, Vec<(Target, Option<i32>)>),
        actor: &Actor,
        now: Timestamp,
    ) -> Result<Arc<Frozen>, Refusal> {
        let mut named: HashSet<_> = origin.left_out.iter().map(ToString::to_string).collect();
        // An item that is named twice is executed once.
        let items: Vec<_> = items.into_iter().filter(|(target, _)| named.insert(target.to_string())).collect();
        if items.is_empty() {
            return Err(Refusal::Invalid("no item is selected".to_owned()));
        }
        if items.len() > MAX_ITEMS {
            let (count, most) = (items.len(), MAX_ITEMS);
            return Err(Refusal::Invalid(format!("{count} items exceed the limit of {most} for one action")));
        }
        Shared::require_role(actor, required_role(bulk.kind, &items))?;
        for (target, version) in &items {
            bulk.on(target, *version)?;
        }
        let frozen = Frozen { id: ActionId::new(now), at: now, actor: actor.name.clone(), bulk, of, origin, items };
        let frozen = Arc::new(frozen);
        self.shared.lists.add(Arc::clone(&frozen));
        Ok(frozen)
    }

    /// A list that was frozen within the last [`LIST_LIFETIME`](super::LIST_LIFETIME) and is still kept.
    #[must_use]
    pub fn frozen(&self, id: ActionId, now: Timestamp) -> Option<Arc<Frozen>> {
        self.shared.lists.get(id, now)
    }

    /// Starts executing a frozen list, without waiting for the end.
    ///
    /// A list is executed once: a repeated request gets the same execution.
    ///
    /// # Errors
    /// When there is no such list, another actor froze it, or the role does not suffice.
    pub fn execute_frozen(
        &self,
        id: ActionId,
        actor: Actor,
        reason: Reason,
        now: Timestamp,
    ) -> Result<Arc<Execution>, Refusal> {
        // A list that was refused as a whole may be requested again.
        let is_refused = |execution: &Arc<Execution>| matches!(execution.outcome(), Some(Err(_)));
        if let Some(execution) =
            self.execution(id).filter(|execution| execution.actor == actor.name && !is_refused(execution))
        {
            return Ok(execution);
        }
        let frozen = self.frozen(id, now).filter(|frozen| frozen.actor == actor.name).ok_or_else(no_list)?;
        Shared::require_role(&actor, required_role(frozen.bulk.kind, &frozen.items))?;
        self.shared.connected.queue_at_hand()?;
        let on = format!("{} {}", frozen.items.len(), frozen.of.words(frozen.items.len()));
        let execution = Execution::new(frozen.id, frozen.bulk.kind, on, reason.to_string(), actor.name.clone());
        execution.set_progress(0, frozen.items.len());
        let mut hasher = DefaultHasher::new();
        (frozen.bulk, id.to_string()).hash(&mut hasher);
        // The list's id is its key, so that a double click executes it once.
        match self.start(execution, &actor, Some(&format!("list {id}")), hasher.finish())? {
            Started::Repeated(execution) => Ok(execution),
            Started::New(execution) => {
                let (shared, task_execution) = (Arc::clone(&self.shared), Arc::clone(&execution));
                self.shared.tasks.spawn(async move {
                    let context = ActionContext { actor: &actor, reason: &reason, execution: &task_execution, now };
                    let outcome = shared.execute_list(&frozen, context).await;
                    if outcome.is_err() {
                        shared.executions.forget(&Key { actor: actor.name.clone(), key: format!("list {id}") });
                    }
                    task_execution.end(outcome);
                });
                Ok(execution)
            }
        }
    }
}

/// The role that an action on all items of a list requires.
fn required_role(kind: ActionKind, items: &[(Target, Option<i32>)]) -> Role {
    // Whether the action is supported for an item is reported only to callers who may request it.
    let roles = items.iter().map(|(target, _)| target.role(kind).unwrap_or(Role::Operator));
    roles.max().unwrap_or(Role::Operator)
}

impl Shared {
    async fn execute_list(&self, frozen: &Frozen, context: ActionContext<'_>) -> Result<ActionOutcome, Refusal> {
        let began = Instant::now();
        for targets in frozen.items.chunks(TARGETS_PER_RECORD) {
            let before = self.known_before(frozen.bulk.kind, targets);
            let record = context.requested_many(frozen.bulk, frozen.items.len(), targets, before);
            self.audit.write(record).await?;
        }
        let mut outcome = ActionOutcome::default();
        outcome.warnings.extend(self.execute_each(frozen.bulk, &frozen.items, context).await);
        let execution = context.execution;
        outcome.count(execution.progress());
        let finished = Finished {
            outcome: outcome.label(),
            detail: outcome.detail.clone(),
            cancelled_by: execution.cancelled_by().filter(|_| outcome.is_cancelled),
            ..Finished::default()
        };
        outcome.warnings.extend(self.record_outcome(context.finished(began, finished), execution).await);
        Ok(outcome)
    }

    /// Executes the action on each item of a list, many concurrently, and records each outcome. If that fails, no
    /// further item is started, and a warning is returned.
    pub(super) async fn execute_each(
        &self,
        bulk: BulkAction,
        items: &[(Target, Option<i32>)],
        context: ActionContext<'_>,
    ) -> Option<String> {
        let ActionContext { actor, execution, now, .. } = context;
        let began = Instant::now();
        let (records, written) = mpsc::unbounded_channel();
        let execute_items = async {
            let records = records;
            // By index, since a closure over references is not general enough for a task.
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
                self.metrics.count(bulk.kind.label(), actor.source, label);
                let from = before.clone();
                let finished = Finished {
                    target: Some(target.to_string()),
                    outcome: label,
                    detail: outcome.as_ref().map_or_else(|why| Some(why.to_string()), |change| change.written.clone()),
                    before,
                    after: outcome.as_ref().ok().and_then(|change| change.after.clone()),
                    cancelled_by: None,
                };
                let record = Record::outcome(execution.id, now + began.elapsed(), actor.source, duration, finished);
                // The receiver outlives this.
                let _ = records.send(record);
                match outcome {
                    Ok(change) => execution.add_done(target, from, change),
                    Err(refusal) => execution.add_failed(target.to_string(), refusal),
                }
            }
        };
        let ((), unwritten) = tokio::join!(execute_items, self.record_outcomes(written, execution));
        unwritten
    }

    /// The state of each item, or what else is changed, as far as the mirror knows it; empty if it knows none. If the
    /// process ends before the outcome of an item is recorded, this and the znodes of the item show what was changed.
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

    /// One item: its state, or what else is changed, before and after. Boxed, since a step of an action can be a list
    /// of others.
    fn item<'a>(
        &'a self,
        bulk: BulkAction,
        target: &'a Target,
        version: Option<i32>,
        context: ActionContext<'a>,
    ) -> BoxFuture<'a, ItemOutcome> {
        let ActionContext { actor, reason, now, .. } = context;
        Box::pin(async move {
            let action = match bulk.on(target, version) {
                Ok(action) => action,
                Err(refusal) => return (None, Err(refusal)),
            };
            // An item's own progress is not that of the list.
            let unseen = Execution::new(context.execution.id, bulk.kind, String::new(), String::new(), String::new());
            let attempt = async || {
                let prepared = match self.prepare(&action, actor, reason.as_str(), now).await {
                    Ok(prepared) => prepared,
                    Err(refusal) => return (None, Err(refusal)),
                };
                let (before, after) = prepared.values();
                let steps = async {
                    prepared.check_listed()?;
                    self.audit.write_all(context.started_item(&prepared)).await?;
                    let queue = self.connected.queue()?;
                    self.steps(&queue, &prepared, ActionContext { execution: &unseen, ..context }).await?;
                    Ok(ItemChange { after, written: prepared.repaired() })
                };
                let change = steps.await;
                (before, change)
            };
            match attempt().await {
                // Another repair of the list may just have changed the same znodes.
                (_, Err(Refusal::Conflict { .. } | Refusal::Missing(_))) if bulk.kind == ActionKind::Repair => {
                    attempt().await
                }
                outcome => outcome,
            }
        })
    }

    /// Records the outcomes of items, those of a short time together.
    async fn record_outcomes(
        &self,
        mut records: mpsc::UnboundedReceiver<Record>,
        execution: &Execution,
    ) -> Option<String> {
        let mut some = Vec::new();
        let mut unwritten: Option<(u64, String)> = None;
        while records.recv_many(&mut some, TARGETS_PER_RECORD).await > 0 {
            let gather = async {
                while some.len() < TARGETS_PER_RECORD {
                    let room = TARGETS_PER_RECORD - some.len();
                    if records.recv_many(&mut some, room).await == 0 {
                        break;
                    }
                }
            };
            // What has arrived is written, whether the time, the room or the items ended.
            let _ = tokio::time::timeout(BATCH_WINDOW, gather).await;
            let count = some.len() as u64;
            if let Err(why) = self.audit.write_all(std::mem::take(&mut some)).await {
                execution.cancel(UNWRITABLE);
                if unwritten.is_none() {
                    tracing::error!(action = %execution.id, "{why}; no further items of the list are started");
                }
                unwritten.get_or_insert((0, why.to_string())).0 += count;
            }
        }
        unwritten.map(|(count, why)| format!("The outcome of {count} of its items was not recorded: {why}."))
    }
}
