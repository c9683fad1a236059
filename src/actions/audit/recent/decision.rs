//! The actions of one decision of a rule, as one entry.
//!
//! A rule acts on each item in a transaction of its own, with a record before and after. Listed one by one, a release
//! of hundreds of jobs would hide what operators did.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Entry, MAX_TARGETS, RUNNING};
use crate::actions::outcome::{DONE, IN_PART, UNKNOWN};

/// Entries that are shown as one.
#[derive(Debug)]
pub(super) struct Group {
    /// The first of them in the order of the list, with the targets of all.
    entry: Entry,
    /// When the first was requested, and when the last of those that have ended did.
    began: Timestamp,
    ended: Timestamp,
    /// How many of them have which outcome; `None` for none yet.
    outcomes: BTreeMap<Option<String>, u64>,
}

impl Group {
    pub(super) fn new(entry: Entry) -> Self {
        let outcomes = BTreeMap::from([(entry.outcome.clone(), 1)]);
        Self { began: entry.at, ended: end_of(&entry), outcomes, entry }
    }

    pub(super) fn add(&mut self, other: &Entry) {
        let entry = &mut self.entry;
        let room = MAX_TARGETS.saturating_sub(entry.targets.len());
        entry.targets.extend(other.targets.iter().take(room).cloned());
        entry.count += other.count;
        entry.actions += 1;
        if (&entry.before, &entry.after) != (&other.before, &other.after) {
            (entry.before, entry.after) = (None, None);
        }
        (self.began, self.ended) = (self.began.min(other.at), self.ended.max(end_of(other)));
        *self.outcomes.entry(other.outcome.clone()).or_default() += 1;
    }

    /// The one entry. Its outcome is that of all of them; if they differ, the one that needs attention.
    pub(super) fn into_entry(self) -> Entry {
        let Self { mut entry, began, ended, outcomes } = self;
        if entry.actions == 1 {
            return entry;
        }
        if outcomes.len() > 1 {
            let has = |outcome: &str| outcomes.contains_key(&Some(outcome.to_owned()));
            let counts = outcomes.iter().map(|(outcome, count)| {
                let outcome = outcome.as_deref().unwrap_or(RUNNING);
                format!("{count} {}", outcome.replace('_', " "))
            });
            entry.detail = Some(counts.collect::<Vec<_>>().join(", "));
            entry.outcome = if outcomes.contains_key(&None) {
                None
            } else if has(UNKNOWN) {
                Some(UNKNOWN.to_owned())
            } else if has(DONE) {
                Some(IN_PART.to_owned())
            } else {
                entry.outcome
            };
        }
        entry.operations = Vec::new();
        let took = ended.duration_since(began).as_secs_f64();
        entry.duration_seconds = entry.outcome.as_ref().map(|_| took.max(0.0));
        entry
    }
}

fn end_of(entry: &Entry) -> Timestamp {
    let took = SignedDuration::try_from_secs_f64(entry.duration_seconds.unwrap_or(0.0)).unwrap_or_default();
    entry.at.checked_add(took).unwrap_or(entry.at)
}
