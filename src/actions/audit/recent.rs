//! The newest actions, in memory, for the page and the API.

use std::collections::BTreeMap;

use jiff::Timestamp;
use parking_lot::RwLock;

use super::record::{ActionId, Record};
use crate::actions::metrics::{DONE, UNKNOWN};

/// How many actions are remembered.
const MOST: usize = 10_000;

/// How many targets of an action over many are named with it.
const SUBJECTS: usize = 20;

/// How many of an action's targets that were not done are remembered with why.
const UNDONE: usize = 100;

/// How many actions a page holds at most.
const PAGE_LIMIT: usize = 500;

/// An action and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its id.
    pub id: ActionId,
    /// When it was requested.
    pub at: Timestamp,
    /// By whom.
    pub actor: String,
    /// With what role.
    pub role: String,
    /// By what means.
    pub source: String,
    /// From which address.
    pub from: Option<String>,
    /// What.
    pub action: String,
    /// To what; of many, the first twenty.
    pub targets: Vec<String>,
    /// To how many.
    pub count: u64,
    /// Why.
    pub reason: String,
    /// The state before.
    pub before: Option<String>,
    /// The state after: what was meant, or what came of it.
    pub after: Option<String>,
    /// What was to be written, in words.
    pub operations: Vec<String>,
    /// What came of all of it; `None` while it is going on, or where the process ended meanwhile.
    pub outcome: Option<String>,
    /// What stood against it.
    pub detail: Option<String>,
    /// Who ended it before it was whole.
    pub cancelled_by: Option<String>,
    /// How long it took, in seconds.
    pub duration_seconds: Option<f64>,
    /// Of an action over many: how many have each outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Of an action over many: those that were not done, the first hundred, and why.
    pub undone: Vec<(String, String)>,
}

/// Which actions are wanted. What is not given is not compared.
#[derive(Clone, Debug, Default)]
pub struct AuditQuery {
    /// A text that its actor, targets, reason, detail or id holds, whatever its case.
    pub text: Option<String>,
    /// What was requested.
    pub action: Option<String>,
    /// Who requested it.
    pub actor: Option<String>,
    /// By what means.
    pub source: Option<String>,
    /// What came of it; `going_on` for what is not over.
    pub outcome: Option<String>,
    /// Only what is older than this order.
    pub before: Option<ActionId>,
    /// How many; 500 at most.
    pub limit: usize,
}

/// A page of actions, the newest first.
#[derive(Clone, Debug, Default)]
pub struct EntryPage {
    /// The actions.
    pub entries: Vec<Entry>,
    /// How many match on all pages.
    pub total: usize,
    /// Whether older ones match too.
    pub has_more: bool,
}

/// The outcome by which one asks for what is not over.
pub(super) const GOING_ON: &str = "going_on";

#[derive(Debug, Default)]
pub(super) struct Recent {
    entries: RwLock<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By id, which is by time.
    by_id: BTreeMap<ActionId, Entry>,
}

impl Recent {
    pub(super) fn add(&self, record: Record) {
        let mut kept = self.entries.write();
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
                ..
            } => {
                if let Some(entry) = kept.by_id.get_mut(&id) {
                    // A further line of an action over many.
                    let room = SUBJECTS.saturating_sub(entry.targets.len());
                    entry.targets.extend(targets.into_iter().take(room));
                    return;
                }
                let entry = Entry {
                    id,
                    at,
                    actor,
                    role,
                    source,
                    from,
                    action,
                    targets: targets.into_iter().take(SUBJECTS).collect(),
                    count,
                    reason,
                    before,
                    after,
                    operations,
                    outcome: None,
                    detail: None,
                    cancelled_by: None,
                    duration_seconds: None,
                    outcomes: BTreeMap::new(),
                    undone: Vec::new(),
                };
                kept.by_id.insert(id, entry);
                if kept.by_id.len() > MOST {
                    kept.by_id.pop_first();
                }
            }
            // What it names is part of what the action names; the file has it.
            Record::Begun { .. }
            // These are no actions: the page of rules shows them.
            | Record::Alerts { .. }
            | Record::AlertsUnchanged { .. }
            | Record::Decision { .. }
            | Record::Settled { .. } => {}
            Record::Outcome { id, target, outcome, detail, after, cancelled_by, duration_seconds, .. } => {
                let Some(entry) = kept.by_id.get_mut(&id) else { return };
                if let Some(target) = target {
                    // Of what is done it says what was written.
                    if let Some(why) = detail
                        && outcome != DONE
                        && entry.undone.len() < UNDONE
                    {
                        entry.undone.push((target, why));
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

    /// Notes of what is not over that nobody knows what came of it: the process ended meanwhile.
    pub(super) fn end_all(&self) {
        for entry in self.entries.write().by_id.values_mut() {
            entry.outcome.get_or_insert_with(|| UNKNOWN.to_owned());
        }
    }

    pub(super) fn entry(&self, id: ActionId) -> Option<Entry> {
        self.entries.read().by_id.get(&id).cloned()
    }

    pub(super) fn find(&self, query: &AuditQuery) -> EntryPage {
        let kept = self.entries.read();
        let needle = query.text.as_deref().map(str::to_lowercase);
        let mut page = EntryPage::default();
        for entry in kept.by_id.values().rev().filter(|entry| query.wants(entry, needle.as_deref())) {
            page.total += 1;
            if query.before.is_some_and(|before| entry.id >= before) {
                continue;
            }
            if page.entries.len() < query.limit.clamp(1, PAGE_LIMIT) {
                page.entries.push(entry.clone());
            } else {
                page.has_more = true;
            }
        }
        page
    }
}

impl AuditQuery {
    fn wants(&self, entry: &Entry, needle: Option<&str>) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        let has = |needle: &str| {
            let texts = [&entry.actor, &entry.reason].into_iter().chain(&entry.targets).chain(&entry.detail);
            texts.into_iter().any(|text| text.to_lowercase().contains(needle)) || entry.id.to_string().contains(needle)
        };
        is(&self.action, &entry.action)
            && is(&self.actor, &entry.actor)
            && is(&self.source, &entry.source)
            && is(&self.outcome, entry.outcome.as_deref().unwrap_or(GOING_ON))
            && needle.is_none_or(has)
    }
}
