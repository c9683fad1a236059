//! The state of one call of Alertmanager while it is processed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::evaluation::{Evaluation, Stop};
use super::memory::{Memory, memory_of};
use crate::actions::audit::{Counted, Decided};
use queuekeeper_zookeeper::coordination::Snapshot;

/// The outcome of a decision that is accepted and not executed yet.
pub(super) const ACCEPTED: &str = "accepted";

/// Results that are computed once for each call, so that a thousand alerts cost as much as one: any client that
/// can send alerts through Alertmanager chooses their number and contents.
pub(super) struct Call<'a> {
    /// Our own znodes at the start of the call; `None` if no rule needs them.
    pub(super) snapshot: Option<&'a Snapshot>,
    /// How many decisions are pending.
    pub(super) waiting: usize,
    /// The rules whose holds are no longer released, since their alert is firing.
    pub(super) kept: HashSet<&'a str>,
    memories: HashMap<&'a str, Result<Arc<Memory>, Stop>>,
    /// The evaluation of each rule for the first accepted alert of each scope.
    pub(super) decided: HashMap<(&'a str, String), Result<(), Stop>>,
    /// The evaluation of each rule for the first resolved alert for which it releases something.
    pub(super) undone: HashMap<&'a str, Evaluation>,
}

impl<'a> Call<'a> {
    pub(super) fn new(snapshot: Option<&'a Snapshot>) -> Self {
        let waiting = snapshot.map_or(0, |snapshot| snapshot.pending.len());
        Self {
            snapshot,
            waiting,
            kept: HashSet::new(),
            memories: HashMap::new(),
            decided: HashMap::new(),
            undone: HashMap::new(),
        }
    }

    /// The state of a rule; empty if no znodes were read.
    ///
    /// # Errors
    /// When it is not valid.
    pub(super) fn memory(&mut self, rule: &'a str) -> Result<Arc<Memory>, Stop> {
        let snapshot = self.snapshot;
        let read = || snapshot.map_or_else(|| Ok(Memory::default()), |snapshot| memory_of(snapshot, rule));
        self.memories.entry(rule).or_insert_with(|| read().map(Arc::new)).clone()
    }
}

/// The decisions of a call that change nothing, counted by rule and outcome, since the number of alerts and their
/// contents are not limited otherwise.
#[derive(Debug, Default)]
pub(super) struct UnchangedDecisions(BTreeMap<(String, String), (u64, String)>);

impl UnchangedDecisions {
    pub(super) fn add(&mut self, decided: &Decided) {
        let counted = self.0.entry((decided.rule.clone(), decided.outcome.clone())).or_default();
        counted.0 += 1;
        counted.1.clone_from(&decided.detail);
    }

    pub(super) fn count(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }

    pub(super) fn decisions(self) -> Vec<Counted> {
        let counted = |((rule, outcome), (count, detail))| Counted { rule, outcome, count, detail };
        self.0.into_iter().map(counted).collect()
    }
}
