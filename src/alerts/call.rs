//! What is found out while one call of Alertmanager is looked after.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::accept::{Verdict, memory_of};
use super::guard::Stop;
use super::memory::Memory;
use crate::actions::audit::Decided;
use crate::coordination::Snapshot;

/// How many decisions by which nothing is carried out are named in the audit trail, of one call.
const MOST_TOLD: usize = 100;

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

/// Those decisions that the audit trail names: whoever has alerts sent chooses how many there are, and could push what
/// others ordered out of its files with them.
pub(super) fn to_be_told(decisions: &[Decided]) -> Vec<Decided> {
    let mut others = 0;
    let is_told = |decided: &&Decided| {
        others += usize::from(decided.outcome != ACCEPTED);
        decided.outcome == ACCEPTED || others <= MOST_TOLD
    };
    decisions.iter().filter(is_told).cloned().collect()
}
