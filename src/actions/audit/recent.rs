//! The newest actions, in memory, for the pages and the API.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use parking_lot::RwLock;

use super::record::{ActionId, Record};
use crate::actions::outcome::{DONE, RUNNING, UNKNOWN};

mod decision;
mod names;
mod query;

use names::names;
pub use query::{AuditOrder, AuditQuery, EntryPage};

/// How many actions are kept.
const MAX_ACTIONS: usize = 10_000;

/// How many targets of a bulk action are kept with it.
const MAX_TARGETS: usize = 20;

/// How many targets of bulk actions beyond those are kept in all, as hashes.
const MAX_FURTHER: usize = 1_000_000;

/// How many failed items of a bulk action are kept with the reason.
const MAX_FAILED: usize = 100;

/// An action and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its id.
    pub id: ActionId,
    /// When it was requested.
    pub at: Timestamp,
    /// The actor's name.
    pub actor: String,
    /// The actor's role.
    pub role: String,
    /// The interface used.
    pub source: String,
    /// The client's address.
    pub from: Option<String>,
    /// The action.
    pub action: String,
    /// The targets; of a bulk action, the first twenty.
    pub targets: Vec<String>,
    /// How many targets there are.
    pub count: u64,
    /// The decision of a rule that it belongs to.
    pub decision: Option<ActionId>,
    /// How many actions this is: more than one where those of a decision are listed as one.
    pub actions: u64,
    /// The actor's reason.
    pub reason: String,
    /// The state before.
    pub before: Option<String>,
    /// The state after: planned, or, once the action has finished, reached.
    pub after: Option<String>,
    /// The planned writes, in words.
    pub operations: Vec<String>,
    /// The outcome of the whole action; `None` while it is running, or if the process ended before recording one.
    pub outcome: Option<String>,
    /// Why it failed, or what was done.
    pub detail: Option<String>,
    /// Who cancelled it.
    pub cancelled_by: Option<String>,
    /// How long it took, in seconds.
    pub duration_seconds: Option<f64>,
    /// Of a bulk action: the number of items by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Of a bulk action: the first hundred items that failed, and why.
    pub not_done: Vec<(String, String)>,
}

#[derive(Debug, Default)]
pub(super) struct Recent {
    entries: RwLock<RecentActions>,
}

#[derive(Debug, Default)]
struct RecentActions {
    /// By id, and so by time.
    by_id: BTreeMap<ActionId, Entry>,
    /// The hashes of the targets of bulk actions that their entries do not name.
    further: BTreeMap<ActionId, Vec<u64>>,
    /// How many these are.
    further_count: usize,
}

impl RecentActions {
    /// Notes further targets of a bulk action, so that it is found by each of them.
    fn note(&mut self, id: ActionId, targets: impl Iterator<Item = String>) {
        let hashes = self.further.entry(id).or_default();
        let before = hashes.len();
        targets.for_each(|target| hashes.extend(names(&target).map(hashed)));
        self.further_count += hashes.len() - before;
        if hashes.is_empty() {
            self.further.remove(&id);
        }
        while self.further_count > MAX_FURTHER && self.further.len() > 1 {
            self.further_count -= self.further.pop_first().map_or(0, |(_, hashes)| hashes.len());
        }
    }
}

fn hashed(target: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    target.hash(&mut hasher);
    hasher.finish()
}

impl Recent {
    pub(super) fn add(&self, record: Record) {
        let mut recent = self.entries.write();
        match record {
            Record::Requested {
                id,
                at,
                actor,
                role,
                source,
                from,
                action,
                targets,
                count,
                reason,
                before,
                after,
                operations,
                decision,
                ..
            } => {
                if let Some(entry) = recent.by_id.get_mut(&id) {
                    // A further line of a bulk action.
                    let room = MAX_TARGETS.saturating_sub(entry.targets.len());
                    let mut targets = targets.into_iter();
                    entry.targets.extend(targets.by_ref().take(room));
                    recent.note(id, targets);
                    return;
                }
                let mut targets = targets.into_iter();
                let entry = Entry {
                    id,
                    at,
                    actor,
                    role,
                    source,
                    from,
                    action,
                    targets: targets.by_ref().take(MAX_TARGETS).collect(),
                    count,
                    decision,
                    actions: 1,
                    reason,
                    before,
                    after,
                    operations,
                    outcome: None,
                    detail: None,
                    cancelled_by: None,
                    duration_seconds: None,
                    outcomes: BTreeMap::new(),
                    not_done: Vec::new(),
                };
                recent.by_id.insert(id, entry);
                recent.note(id, targets);
                if recent.by_id.len() > MAX_ACTIONS
                    && let Some((oldest, _)) = recent.by_id.pop_first()
                    && let Some(hashes) = recent.further.remove(&oldest)
                {
                    recent.further_count -= hashes.len();
                }
            }
            // The record of the request names the targets already, and the file has the details.
            Record::Started { .. }
            // These are no actions; the page of rules shows them.
            | Record::Alerts { .. }
            | Record::AlertsUnchanged { .. }
            | Record::Decision { .. }
            | Record::Settled { .. } => {}
            Record::Outcome { id, target, outcome, detail, after, cancelled_by, duration_seconds, .. } => {
                let Some(entry) = recent.by_id.get_mut(&id) else { return };
                if let Some(target) = target {
                    // For a finished item, the detail is what was written to it.
                    if let Some(why) = detail
                        && outcome != DONE
                        && entry.not_done.len() < MAX_FAILED
                    {
                        entry.not_done.push((target, why));
                    }
                    *entry.outcomes.entry(outcome).or_default() += 1;
                } else {
                    (entry.outcome, entry.detail) = (Some(outcome), detail);
                    (entry.cancelled_by, entry.duration_seconds) = (cancelled_by, Some(duration_seconds));
                    entry.after = after.or(entry.after.take());
                }
            }
        }
    }

    /// Marks running actions as unknown: the process that ran them has ended.
    pub(super) fn mark_unfinished_unknown(&self) {
        for entry in self.entries.write().by_id.values_mut() {
            entry.outcome.get_or_insert_with(|| UNKNOWN.to_owned());
        }
    }

    pub(super) fn entry(&self, id: ActionId) -> Option<Entry> {
        self.entries.read().by_id.get(&id).cloned()
    }
}
