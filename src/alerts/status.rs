//! The part of the rules' state that may need attention, for a server that has the rules and for a command that reads
//! only their znodes.

use jiff::Timestamp;

use super::memory::{Breaker, Memory, RuleHold, memory_of};
use super::overview::{Overview, RuleOverview, RulesPause, decisions, orphans, waiting};
use super::rule::{Mode, Rule, Rules, actor_of};
use queuekeeper_zookeeper::coordination::Snapshot;

/// The state of automatic actions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RulesStatus {
    /// Whether our own znodes could be read; if not, what rules hold is not known.
    pub is_read: bool,
    /// Each rule, in the order of the configuration file; without that file, the rules that have a znode, by name.
    pub rules: Vec<RuleStatus>,
    /// Rules that no longer enforce and still hold collections. Empty without the configuration file.
    pub orphans: Vec<(String, Vec<RuleHold>)>,
    /// Who paused automatic actions; `None` if they are not paused.
    pub paused: Option<RulesPause>,
    /// Why this process cannot be a candidate for the leader; `None` if it can, or need not.
    pub problem: Option<String>,
    /// Whether the audit trail for alerts cannot be written here.
    pub is_audit_unwritable: bool,
}

/// The state of one rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleStatus {
    /// Its name.
    pub name: String,
    /// Whether it executes actions, unless paused or stopped; `None` without the configuration file.
    pub is_enforced: Option<bool>,
    /// Its breaker, if it is open.
    pub breaker: Option<Breaker>,
    /// The items that it has left to a user.
    pub left: Vec<String>,
    /// The maximum number of attempts on an item; `None` without the configuration file.
    pub attempts: Option<u32>,
    /// Why its state is not valid; it does not act then.
    pub unreadable: Option<String>,
    /// Its decisions that are pending or executing, in words, each with since when.
    pub waiting: Vec<(String, Timestamp)>,
    /// The collections that it holds; empty in a dry run.
    pub holds: Vec<RuleHold>,
    /// Whether it releases its holds when the alert is resolved; `None` without the configuration file.
    pub is_undone: Option<bool>,
}

impl From<Overview> for RulesStatus {
    fn from(overview: Overview) -> Self {
        let Overview { rules, orphans, paused, problem, is_audit_unwritable, read, .. } = overview;
        Self {
            is_read: read.is_some(),
            rules: rules.into_iter().map(RuleStatus::from).collect(),
            orphans,
            paused,
            problem,
            is_audit_unwritable,
        }
    }
}

impl From<RuleOverview> for RuleStatus {
    fn from(overview: RuleOverview) -> Self {
        let RuleOverview { rule, breaker, holds, waiting, left, unreadable, .. } = overview;
        Self {
            holds: if rule.mode == Mode::Enforce { holds } else { Vec::new() },
            is_enforced: Some(rule.mode == Mode::Enforce),
            attempts: Some(rule.attempts),
            is_undone: Some(rule.is_undone),
            name: rule.name,
            breaker,
            left,
            unreadable,
            waiting,
        }
    }
}

impl RulesStatus {
    /// Whether a rule holds a collection, whose lock names `who` as its holder. Where our own znodes cannot be read, or
    /// the lock is new and they may not have been read since, the lock alone decides.
    #[must_use]
    pub fn hold(&self, collection: &str, who: &str, is_new: bool) -> bool {
        let rules = self.rules.iter().map(|rule| (&rule.name, &rule.holds));
        let orphans = self.orphans.iter().map(|(name, holds)| (name, holds));
        rules.chain(orphans).any(|(name, holds)| {
            // An operator may have released it since, and hold it now.
            who == actor_of(name) && (is_new || !self.is_read || holds.iter().any(|hold| hold.collection == collection))
        })
    }

    /// The state in our own znodes. `rules` are the configured ones, `None` if unknown; `own_time` converts a time of
    /// the servers to our own clock.
    #[must_use]
    pub fn read(
        snapshot: &Snapshot,
        rules: Option<&Rules>,
        own_time: impl Fn(Timestamp) -> Timestamp,
        now: Timestamp,
    ) -> Self {
        let decisions = decisions(snapshot);
        let of_rule = |name: &str, rule: Option<&Rule>| {
            // The state of a dry run is in the process that has the rule, and in no znode.
            let is_dry = rule.is_some_and(|rule| rule.mode != Mode::Enforce);
            let (memory, unreadable) = match memory_of(snapshot, name) {
                _ if is_dry => (Memory::default(), None),
                Ok(memory) => (memory, None),
                Err(stop) => (Memory::default(), Some(stop.why)),
            };
            RuleStatus {
                name: name.to_owned(),
                is_enforced: rule.map(|_| !is_dry),
                breaker: memory.breaker,
                left: memory.left,
                attempts: rule.map(|rule| rule.attempts),
                unreadable,
                waiting: waiting(&decisions, name, now),
                holds: memory.holds,
                is_undone: rule.map(|rule| rule.is_undone),
            }
        };
        Self {
            is_read: true,
            rules: match rules {
                Some(rules) => rules.rules.iter().map(|rule| of_rule(&rule.name, Some(rule))).collect(),
                None => snapshot.rules.keys().map(|name| of_rule(name, None)).collect(),
            },
            orphans: rules.map(|rules| orphans(snapshot, rules)).unwrap_or_default(),
            paused: snapshot.paused.as_ref().map(|node| RulesPause::read(&node.data, own_time(node.created))),
            problem: None,
            is_audit_unwritable: false,
        }
    }
}
