//! What is found out while one call of Alertmanager is looked after.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::accept::Verdict;
use super::guard::Stop;
use super::memory::{Memory, memory_of};
use crate::actions::audit::{Counted, Decided};
use queuekeeper_zookeeper::coordination::Snapshot;

/// What a decision is called that is to be carried out.
pub(super) const ACCEPTED: &str = "accepted";

/// What was found out already. A thousand alerts in one call cost what one does: whoever can have Alertmanager call chooses
/// how many there are, and what stands in them.
pub(super) struct Call<'a> {
    /// Our own znodes as they were when it began; `None` where no rule needs them.
    pub(super) snapshot: Option<&'a Snapshot>,
    /// How many decisions wait.
    pub(super) waiting: usize,
    /// The rules of which nothing is taken back any more, since their alert is on.
    pub(super) kept: HashSet<&'a str>,
    memories: HashMap<&'a str, Result<Arc<Memory>, Stop>>,
    /// What each rule made of the first alert that narrows it so and that nothing stood against.
    pub(super) decided: HashMap<(&'a str, String), Result<(), Stop>>,
    /// What each rule made of the first alert that is over and for which it takes something back.
    pub(super) undone: HashMap<&'a str, Verdict>,
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

    /// What a rule remembers; nothing, where nothing can be looked up.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn memory(&mut self, rule: &'a str) -> Result<Arc<Memory>, Stop> {
        let snapshot = self.snapshot;
        let read = || snapshot.map_or_else(|| Ok(Memory::default()), |snapshot| memory_of(snapshot, rule));
        self.memories.entry(rule).or_insert_with(|| read().map(Arc::new)).clone()
    }
}

/// What was decided of a call that changes nothing, counted by rule and outcome: whoever has alerts sent chooses how many
/// there are, and what stands in them.
#[derive(Debug, Default)]
pub(super) struct Unchanging(BTreeMap<(String, String), (u64, String)>);

impl Unchanging {
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
