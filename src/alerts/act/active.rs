//! A decision while it is being executed.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::alerts::decision::Decision;
use crate::alerts::guard::{self, Bound};
use crate::alerts::memory::{Memory, SharedBudget};
use crate::alerts::rule::{Rule, Rules};
use queuekeeper_zookeeper::coordination::{self, Leadership, Write};

/// A decision that is being executed, with its rule's state, each with the version of its znode.
pub(in crate::alerts) struct ActiveDecision<'a> {
    pub(in crate::alerts) lead: &'a Leadership,
    pub(in crate::alerts) rules: &'a Rules,
    pub(in crate::alerts) rule: &'a Rule,
    pub(in crate::alerts) node: String,
    pub(in crate::alerts) decision: Decision,
    pub(in crate::alerts) version: i32,
    pub(in crate::alerts) memory: Memory,
    /// `None` if the znode does not exist yet.
    pub(in crate::alerts) memory_version: Option<i32>,
    pub(in crate::alerts) shared_budget: SharedBudget,
    pub(in crate::alerts) shared_budget_version: i32,
    /// The jobs released just now, each with its version before: the mirror may not show it yet.
    pub(in crate::alerts) released: BTreeSet<(String, Option<i32>)>,
    /// The collections released just now.
    pub(in crate::alerts) freed: BTreeSet<String>,
}

impl ActiveDecision<'_> {
    /// The writes that store the decision and the state of rules; the last ones delete the decision.
    pub(in crate::alerts) fn writes(&self, is_last: bool) -> Vec<Write> {
        let pending = coordination::pending(&self.node);
        let decision = if is_last {
            Write::Delete(pending, self.version)
        } else {
            Write::Set(pending, self.decision.data(), self.version)
        };
        let version = self.memory_version.unwrap_or(0);
        let memory = Write::Set(coordination::rule(&self.rule.name), self.memory.data(), version);
        let shared_budget = Write::Set(coordination::rules(), self.shared_budget.data(), self.shared_budget_version);
        vec![decision, memory, shared_budget]
    }

    /// Increments the versions after [`Self::writes`] were committed.
    pub(in crate::alerts) fn written(&mut self) {
        self.version += 1;
        self.memory_version = self.memory_version.map(|version| version + 1);
        self.shared_budget_version += 1;
    }

    /// How many items the budgets allow, with this many jobs in the rule's states, and what limits them.
    pub(in crate::alerts) fn room(&self, present: u64, now: Timestamp) -> (u64, Bound) {
        guard::room(self.rule, &self.memory, (&self.shared_budget, self.rules.budget), present, now)
    }
}
