//! Which actions are listed, and in which order.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use super::decision::Group;
use super::names::names;
use super::{Entry, RUNNING, Recent, hashed};
use crate::actions::audit::record::ActionId;

/// How many actions a page may have.
const PAGE_LIMIT: usize = 500;

/// A filter for actions. Fields that are not set match everything.
#[derive(Clone, Debug, Default)]
pub struct AuditQuery {
    /// A text contained in the actor, a target, the reason, the detail, the id or that of the decision;
    /// case-insensitive.
    pub text: Option<String>,
    /// The action.
    pub action: Option<String>,
    /// The actor's name.
    pub actor: Option<String>,
    /// The interface used.
    pub source: Option<String>,
    /// The outcome; `running` for actions that have none yet.
    pub outcome: Option<String>,
    /// On any of these targets: each as the trail names it, or by its name alone. Empty for any target.
    pub targets: Vec<String>,
    /// The decision of a rule. Its actions are then listed one by one.
    pub decision: Option<ActionId>,
    /// Only actions requested at that time or later.
    pub since: Option<Timestamp>,
    /// Only actions requested before that time.
    pub until: Option<Timestamp>,
    /// The order.
    pub order: AuditOrder,
    /// Only actions behind this one in the order.
    pub after: Option<ActionId>,
    /// The page size, 500 at most.
    pub limit: usize,
}

/// In which order actions are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditOrder {
    /// The last requested first.
    #[default]
    Newest,
    /// The first requested first.
    Oldest,
}

impl AuditOrder {
    /// Every order.
    pub const ALL: [Self; 2] = [Self::Newest, Self::Oldest];

    /// Its name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
        }
    }
}

/// A page of actions. Those of one decision of a rule are one entry, unless only that decision was requested.
#[derive(Clone, Debug, Default)]
pub struct EntryPage {
    /// The actions.
    pub entries: Vec<Entry>,
    /// How many actions match on all pages.
    pub total: usize,
    /// How many of them come before this page.
    pub before: usize,
    /// Whether more actions match behind this page.
    pub has_more: bool,
}

/// The targets of a query, and their hashes.
struct TargetNames<'a> {
    names: HashSet<&'a str>,
    hashes: HashSet<u64>,
}

impl<'a> TargetNames<'a> {
    /// `None` for any target.
    fn new(targets: &'a [String]) -> Option<Self> {
        let names: HashSet<_> = targets.iter().map(|target| &**target).collect();
        let hashes = names.iter().map(|target| hashed(target)).collect();
        (!names.is_empty()).then_some(Self { names, hashes })
    }

    /// Whether an action is on one of them. `further` are the hashes of the targets that its entry does not name.
    fn has(&self, entry: &Entry, further: Option<&Vec<u64>>) -> bool {
        entry.targets.iter().any(|on| names(on).any(|name| self.names.contains(name)))
            || further.is_some_and(|hashes| hashes.iter().any(|hash| self.hashes.contains(hash)))
    }
}

impl Recent {
    pub(in crate::actions::audit) fn find(&self, query: &AuditQuery) -> EntryPage {
        let recent = self.entries.read();
        let needle = query.text.as_deref().map(str::to_lowercase);
        let targets = TargetNames::new(&query.targets);
        let mut page = EntryPage::default();
        let mut groups = Vec::<Group>::new();
        // Where the group of a decision is on this page; `None` for on another one.
        let mut decisions = HashMap::<ActionId, Option<usize>>::new();
        let by_time = recent.by_id.values();
        let in_order: &mut dyn Iterator<Item = &Entry> = match query.order {
            AuditOrder::Newest => &mut by_time.rev(),
            AuditOrder::Oldest => &mut { by_time },
        };
        for entry in in_order.filter(|entry| query.wants(entry, needle.as_deref())) {
            if targets.as_ref().is_some_and(|targets| !targets.has(entry, recent.further.get(&entry.id))) {
                continue;
            }
            let decision = entry.decision.filter(|_| query.decision.is_none());
            if let Some(group) = decision.and_then(|decision| decisions.get(&decision)) {
                if let Some(group) = group {
                    groups[*group].add(entry);
                }
                continue;
            }
            page.total += 1;
            let is_before = query.after.is_some_and(|after| match query.order {
                AuditOrder::Newest => entry.id >= after,
                AuditOrder::Oldest => entry.id <= after,
            });
            let is_here = !is_before && groups.len() < query.limit.clamp(1, PAGE_LIMIT);
            if let Some(decision) = decision {
                decisions.insert(decision, is_here.then_some(groups.len()));
            }
            if is_before {
                page.before += 1;
            } else if is_here {
                groups.push(Group::new(entry.clone()));
            } else {
                page.has_more = true;
            }
        }
        page.entries = groups.into_iter().map(Group::into_entry).collect();
        page
    }
}

impl AuditQuery {
    fn wants(&self, entry: &Entry, needle: Option<&str>) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        let has = |needle: &str| {
            let texts = [&entry.actor, &entry.reason].into_iter().chain(&entry.targets).chain(&entry.detail);
            let mut ids = [Some(entry.id), entry.decision].into_iter().flatten();
            texts.into_iter().any(|text| text.to_lowercase().contains(needle))
                || ids.any(|id| id.to_string().contains(needle))
        };
        is(&self.action, &entry.action)
            && is(&self.actor, &entry.actor)
            && is(&self.source, &entry.source)
            && is(&self.outcome, entry.outcome.as_deref().unwrap_or(RUNNING))
            && self.decision.is_none_or(|decision| entry.decision == Some(decision))
            && self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at < until)
            && needle.is_none_or(has)
    }
}
