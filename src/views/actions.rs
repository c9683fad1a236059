//! Actions: their plan, progress and outcome.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::actions::audit::Entry;
use crate::actions::{ActionOutcome, DoneItem, Execution, Frozen, Precondition, Prepared};

/// How many targets of a frozen list are shown.
const SAMPLE: usize = 10;

/// The maximum length of shown data that an action removes, in characters.
const LOST: usize = 300;

/// An action: planned, running or finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct ActionView {
    /// Its id; absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")]
    pub(crate) id: Option<String>,
    /// Which action.
    #[schema(example = "resume")]
    pub(crate) action: String,
    /// Its target, or the number of targets.
    #[schema(example = "jid0000000042")]
    pub(crate) on: String,
    /// The reason given by the actor.
    pub(crate) reason: String,
    /// `done`, `dry_run`, `running`, `cancelled`, `in_part`, or why not: `forbidden`, `invalid`, `missing`,
    /// `conflict`, `unavailable`, `failed`, `unknown`.
    #[schema(example = "done")]
    pub(crate) outcome: String,
    /// What was done, in figures, or why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// What was changed, before: the state, or the priority for `set_priority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "failed")]
    pub(crate) before: Option<String>,
    /// The same after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "downloading")]
    pub(crate) after: Option<String>,
    /// The version of its status after the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<i32>,
    /// Warnings for the operator.
    pub(crate) warnings: Vec<String>,
    /// The operations in ZooKeeper, in words; of many, the first ones.
    pub(crate) operations: Vec<String>,
    /// Znodes whose data is removed or replaced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lost: Vec<LostNode>,
    /// How many items of a bulk action were done.
    pub(crate) done: u64,
    /// How many were not done.
    pub(crate) not_done: u64,
    /// How many have an unknown outcome, because the connection was lost. They count as neither done nor not done.
    pub(crate) unknown: u64,
    /// How many items there are.
    pub(crate) count: u64,
    /// The items of a bulk action that were done, and their change; a hundred at most. The audit file has all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) done_items: Vec<ChangedItem>,
    /// The items that were not done or have an unknown outcome, and why; a hundred at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_done_items: Vec<NotDoneItem>,
    /// The items that a bulk repair repaired, and what was written; a thousand at most. The audit file has all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) written: Vec<WrittenItem>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_seconds: Option<f64>,
    /// The state of its target, in a dry run: an action with this precondition is refused if the target has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) precondition: Option<PreconditionView>,
}

/// The precondition of an action.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct PreconditionView {
    /// The state of its target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    /// The version of its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<i32>,
    /// Of a lock, the transaction that created it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) czxid: Option<i64>,
    /// The hash of the plan, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<String>,
}

impl PreconditionView {
    fn new(precondition: &Precondition) -> Self {
        Self {
            state: precondition.state.as_deref().map(str::to_owned),
            version: precondition.version,
            czxid: precondition.czxid,
            plan: precondition.plan.map(plan_text),
        }
    }
}

/// The hash of a plan as text.
pub(crate) fn plan_text(plan: u64) -> String {
    format!("{plan:x}")
}

/// A znode that is removed, or whose data is replaced.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct LostNode {
    /// Its path.
    pub(crate) path: String,
    /// Its data as text, cut to 300 characters.
    pub(crate) data: String,
}

/// An item that was done.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ChangedItem {
    /// The item, as a target of actions.
    #[schema(example = "jid0000000042")]
    pub(crate) on: String,
    /// Its state before, or what else was changed; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "failed")]
    pub(crate) before: Option<String>,
    /// The same after; absent if the item was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "downloading")]
    pub(crate) after: Option<String>,
}

impl From<DoneItem> for ChangedItem {
    fn from(DoneItem { on, before, after }: DoneItem) -> Self {
        Self { on: on.to_string(), before, after }
    }
}

/// An item that was not done.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct NotDoneItem {
    /// The item, as a target of actions.
    #[schema(example = "jid0000000042")]
    pub(crate) on: String,
    /// Why it was not done.
    pub(crate) why: String,
}

/// An item that was repaired.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct WrittenItem {
    /// The item, as a target of actions.
    #[schema(example = "fault:unloadable_job:/jobs/jid0000000042")]
    pub(crate) on: String,
    /// What was written, and the data that was replaced.
    #[schema(example = "set /jobs/jid0000000042/space_needed at version 0 = 0")]
    pub(crate) what: String,
}

/// A frozen list: an action on it changes no other items.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct FrozenList {
    /// Its id, which becomes that of the action.
    #[schema(example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")]
    pub(crate) id: String,
    /// When it was frozen; it is kept for a limited time.
    pub(crate) at: Timestamp,
    /// The action on each item.
    #[schema(example = "resume")]
    pub(crate) action: String,
    /// The kind of its items: `jobs`, `chosen jobs` or `chosen items`.
    pub(crate) of: &'static str,
    /// How many items it has.
    pub(crate) count: usize,
    /// The first ten of them.
    pub(crate) sample: Vec<String>,
}

impl ActionView {
    /// What an action would do.
    pub(crate) fn planned(prepared: &Prepared, reason: &str) -> Self {
        let lost = prepared.removed.iter().map(|(path, data)| LostNode {
            path: path.clone(),
            data: String::from_utf8_lossy(data).chars().take(LOST).collect(),
        });
        let (before, after) = prepared.values();
        Self {
            action: prepared.action.kind().to_string(),
            on: prepared.action.target().to_string(),
            reason: reason.to_owned(),
            outcome: "dry_run".to_owned(),
            before,
            after,
            warnings: prepared.warnings.clone(),
            operations: prepared.operations(),
            lost: lost.collect(),
            count: prepared.jobs() as u64,
            precondition: Some(PreconditionView::new(&prepared.precondition)),
            ..Self::default()
        }
    }

    /// The progress of an action, or its outcome.
    pub(crate) fn of(execution: &Execution) -> Self {
        let reached = execution.progress();
        let not_done = execution.not_done().into_iter().take(100);
        let mut view = Self {
            id: Some(execution.id.to_string()),
            action: execution.action.to_string(),
            on: execution.on.clone(),
            reason: execution.reason.clone(),
            outcome: "running".to_owned(),
            done: reached.done,
            not_done: reached.failed,
            unknown: reached.unknown,
            count: reached.of,
            done_items: execution.done_items().into_iter().map(ChangedItem::from).collect(),
            not_done_items: not_done.map(|(on, why)| NotDoneItem { on, why: why.to_string() }).collect(),
            written: execution.written().into_iter().map(|(on, what)| WrittenItem { on, what }).collect(),
            ..Self::default()
        };
        match execution.outcome() {
            None => {}
            Some(Ok(outcome)) => view.end(outcome),
            Some(Err(refusal)) => {
                (view.outcome, view.detail) = (refusal.label().to_owned(), Some(refusal.to_string()));
            }
        }
        if reached.of == 0 && view.outcome != "running" {
            view.count_one();
        }
        view
    }

    /// Counts the only item of a finished action that is not a bulk action.
    fn count_one(&mut self) {
        self.count = 1;
        match &*self.outcome {
            "done" => self.done = 1,
            "unknown" => self.unknown = 1,
            _ => self.not_done = 1,
        }
    }

    /// Adds the fields that only the audit trail has.
    pub(crate) fn with(mut self, entry: Option<Entry>) -> Self {
        if let Some(entry) = entry {
            (self.operations, self.duration_seconds) = (entry.operations, entry.duration_seconds);
        }
        self
    }

    fn end(&mut self, outcome: ActionOutcome) {
        outcome.label().clone_into(&mut self.outcome);
        (self.before, self.after) = (outcome.before, outcome.after);
        (self.version, self.warnings, self.detail) = (outcome.version, outcome.warnings, outcome.detail);
    }

    /// An action from the audit trail.
    pub(crate) fn remembered(entry: Entry) -> Self {
        let count = |label: &str| entry.outcomes.get(label).copied().unwrap_or(0);
        let (all, done, unknown) = (entry.outcomes.values().sum::<u64>(), count("done"), count("unknown"));
        let mut view = Self {
            id: Some(entry.id.to_string()),
            on: if entry.count == 1 { entry.targets.join(", ") } else { format!("{} items", entry.count) },
            action: entry.action,
            reason: entry.reason,
            outcome: entry.outcome.unwrap_or_else(|| "unknown".to_owned()),
            detail: entry.detail,
            before: entry.before,
            after: entry.after,
            operations: entry.operations,
            done,
            not_done: all - done - unknown,
            unknown,
            count: entry.count,
            not_done_items: entry.not_done.into_iter().take(100).map(|(on, why)| NotDoneItem { on, why }).collect(),
            duration_seconds: entry.duration_seconds,
            ..Self::default()
        };
        if all == 0 && view.count == 1 {
            view.count_one();
        }
        view
    }
}

impl FrozenList {
    pub(crate) fn new(frozen: &Frozen) -> Self {
        Self {
            id: frozen.id.to_string(),
            at: frozen.at,
            action: frozen.bulk.kind.to_string(),
            of: frozen.of.words(0),
            count: frozen.items.len(),
            sample: frozen.items.iter().take(SAMPLE).map(|(target, _)| target.to_string()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_action_that_has_ended_counts_as_one() {
        for (outcome, counts) in [("done", [1, 0, 0]), ("unknown", [0, 0, 1]), ("conflict", [0, 1, 0])] {
            let mut view = ActionView { outcome: outcome.to_owned(), ..ActionView::default() };
            view.count_one();
            assert_eq!(([view.done, view.not_done, view.unknown], view.count), (counts, 1), "{outcome}");
        }
    }
}
