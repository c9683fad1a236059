//! What of the rules a person may have to look at, whoever looks: a server that has the rules, or a command that reads
//! what they left in the tree.

use jiff::Timestamp;

use super::memory::{Breaker, Hold, Memory, memory_of};
use super::overview::{Overview, Pause, RuleOverview, decisions, orphans, waiting};
use super::rule::{Mode, Rule, Rules};
use queuekeeper_zookeeper::coordination::Snapshot;

/// What automatic action is at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Each rule, in the order of the file; where the file is not known, those that have a znode, by name.
    pub rules: Vec<RuleStanding>,
    /// Rules that do not act any more and still hold collections. None where the file is not known.
    pub orphans: Vec<(String, Vec<Hold>)>,
    /// Who paused all automatic action; `None` while it is not.
    pub paused: Option<Pause>,
    /// Why this process cannot stand for election; `None` where it can, or need not.
    pub problem: Option<String>,
    /// Whether what rules do cannot be written down here.
    pub is_trail_lost: bool,
}

/// What one rule is at.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleStanding {
    /// Its name.
    pub name: String,
    /// Its breaker, while it is open.
    pub breaker: Option<Breaker>,
    /// The items that it has left to a person.
    pub left: Vec<String>,
    /// How often it tries an item; `None` where its file is not known.
    pub attempts: Option<u32>,
    /// Why what it remembers cannot be read; it does nothing then.
    pub unreadable: Option<String>,
    /// The decisions of it that wait or are being carried out, in words, each with since when.
    pub waiting: Vec<(String, Timestamp)>,
    /// What it holds; nothing in a dry run.
    pub holds: Vec<Hold>,
    /// Whether it takes back what it did when the alert is resolved; `None` where its file is not known.
    pub is_undone: Option<bool>,
}

impl From<Overview> for Standing {
    fn from(overview: Overview) -> Self {
        let Overview { rules, orphans, paused, problem, is_trail_lost, .. } = overview;
        Self { rules: rules.into_iter().map(RuleStanding::from).collect(), orphans, paused, problem, is_trail_lost }
    }
}

impl From<RuleOverview> for RuleStanding {
    fn from(overview: RuleOverview) -> Self {
        let RuleOverview { rule, breaker, holds, waiting, left, unreadable, .. } = overview;
        Self {
            holds: if rule.mode == Mode::Enforce { holds } else { Vec::new() },
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

impl Standing {
    /// What our own znodes say of it. `rules` are those of the file, `None` where it is not known; `own_time` converts a
    /// time of the servers to our own clock.
    #[must_use]
    pub fn read(
        snapshot: &Snapshot,
        rules: Option<&Rules>,
        own_time: impl Fn(Timestamp) -> Timestamp,
        now: Timestamp,
    ) -> Self {
        let decisions = decisions(snapshot);
        let of_rule = |name: &str, rule: Option<&Rule>| {
            // What a rule would do in a dry run is remembered by the process that has the rule, and by no znode.
            let is_dry = rule.is_some_and(|rule| rule.mode != Mode::Enforce);
            let (memory, unreadable) = match memory_of(snapshot, name) {
                _ if is_dry => (Memory::default(), None),
                Ok(memory) => (memory, None),
                Err(stop) => (Memory::default(), Some(stop.why)),
            };
            RuleStanding {
                name: name.to_owned(),
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
            rules: match rules {
                Some(rules) => rules.rules.iter().map(|rule| of_rule(&rule.name, Some(rule))).collect(),
                None => snapshot.rules.keys().map(|name| of_rule(name, None)).collect(),
            },
            orphans: rules.map(|rules| orphans(snapshot, rules)).unwrap_or_default(),
            paused: snapshot.paused.as_ref().map(|node| Pause::read(&node.data, own_time(node.created))),
            problem: None,
            is_trail_lost: false,
        }
    }
}
