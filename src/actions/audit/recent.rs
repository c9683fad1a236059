//! The newest actions, in memory, for the pages and the API.

use std::collections::BTreeMap;

use jiff::Timestamp;
use parking_lot::RwLock;

use super::record::{ActionId, Record};
use crate::actions::metrics::{DONE, UNKNOWN};

/// How many actions are kept.
const MAX_ACTIONS: usize = 10_000;

/// How many targets of a bulk action are kept with it.
const MAX_TARGETS: usize = 20;

/// How many failed items of a bulk action are kept with the reason.
const MAX_FAILED: usize = 100;

/// How many actions a page may have.
const PAGE_LIMIT: usize = 500;

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
    /// The reason given by the actor.
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

/// A filter for actions. Fields that are not set match everything.
#[derive(Clone, Debug, Default)]
pub struct AuditQuery {
    /// A text contained in the actor, a target, the reason, the detail or the id; case-insensitive.
    pub text: Option<String>,
    /// The action.
    pub action: Option<String>,
    /// The actor's name.
    pub actor: Option<String>,
    /// The interface used.
    pub source: Option<String>,
    /// The outcome; `running` for actions that have none yet.
    pub outcome: Option<String>,
    /// Only actions older than this one.
    pub before: Option<ActionId>,
    /// The page size, 500 at most.
    pub limit: usize,
}

/// A page of actions, the newest first.
#[derive(Clone, Debug, Default)]
pub struct EntryPage {
    /// The actions.
    pub entries: Vec<Entry>,
    /// How many actions match on all pages.
    pub total: usize,
    /// Whether older actions match as well.
    pub has_more: bool,
}

/// The filter value for actions that are still running.
pub(super) const RUNNING: &str = "running";

#[derive(Debug, Default)]
pub(super) struct Recent {
    entries: RwLock<RecentActions>,
}

#[derive(Debug, Default)]
struct RecentActions {
    /// By id, and so by time.
    by_id: BTreeMap<ActionId, Entry>,
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
                ..
            } => {
                if let Some(entry) = recent.by_id.get_mut(&id) {
                    // A further line of a bulk action.
                    let room = MAX_TARGETS.saturating_sub(entry.targets.len());
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
                    targets: targets.into_iter().take(MAX_TARGETS).collect(),
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
                    not_done: Vec::new(),
                };
                recent.by_id.insert(id, entry);
                if recent.by_id.len() > MAX_ACTIONS {
                    recent.by_id.pop_first();
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

    pub(super) fn find(&self, query: &AuditQuery) -> EntryPage {
        let recent = self.entries.read();
        let needle = query.text.as_deref().map(str::to_lowercase);
        let mut page = EntryPage::default();
        for entry in recent.by_id.values().rev().filter(|entry| query.wants(entry, needle.as_deref())) {
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
            && is(&self.outcome, entry.outcome.as_deref().unwrap_or(RUNNING))
            && needle.is_none_or(has)
    }
}
