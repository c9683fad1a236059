//! The state of the rules, for the page, the API and the attention list.

use jiff::Timestamp;

use super::decision::{Decision, DecisionKind};
use super::foreign::{Foreign, foreign};
use super::guard;
use super::memory::{Breaker, Memory, RuleHold, SharedBudget, memory_of};
use super::outcome::AlertOutcome;
use super::rule::{Mode, Rule, Rules};
use super::server::Alerts;
use crate::words::moment;
use queuekeeper_zookeeper::coordination::Snapshot;

/// The state of the rules at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// Each rule, in the order of the configuration file.
    pub rules: Vec<RuleOverview>,
    /// Rules that no longer enforce, or are not configured in this process, and still hold collections.
    pub orphans: Vec<(String, Vec<RuleHold>)>,
    /// Who paused automatic actions, why and since when; `None` if they are not paused.
    pub paused: Option<RulesPause>,
    /// Whether this process is the leader.
    pub leads: bool,
    /// When our own znodes were last read; `None` if they cannot be. They are read only if a rule enforces.
    pub read: Option<Timestamp>,
    /// How many items the shared budget allows now.
    pub budget_left: u64,
    /// The most recent decisions of this process, newest first.
    pub events: Vec<EventRow>,
    /// Unexpected znodes below `/queuekeeper`, at most a hundred.
    pub foreign: Vec<Foreign>,
    /// How many more of them there are.
    pub more_foreign: usize,
    /// Why this process cannot be a candidate for the leader; `None` if it can, or need not.
    pub problem: Option<String>,
    /// Whether the audit trail for alerts cannot be written here, so that this process does not act.
    pub is_audit_unwritable: bool,
}

/// Automatic actions are paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesPause {
    /// The name of the user; empty if unknown.
    pub who: String,
    /// The reason; empty if unknown.
    pub why: String,
    /// Since when, by the servers' clock.
    pub since: Timestamp,
}

/// The state of one rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleOverview {
    /// The rule.
    pub rule: Rule,
    /// Its breaker, if it is open.
    pub breaker: Option<Breaker>,
    /// How many items its budget allows now; the limit from its share of the jobs is known only at a selection.
    pub budget_left: u64,
    /// The collections that it holds; in a dry run, those that it would.
    pub holds: Vec<RuleHold>,
    /// Its decisions that are pending or executing, in words, each with since when.
    pub waiting: Vec<(String, Timestamp)>,
    /// The items that it has left to a user.
    pub left: Vec<String>,
    /// When it last acted; in a dry run, would have.
    pub last_action: Option<Timestamp>,
    /// Why its state is not valid; it does not act then.
    pub unreadable: Option<String>,
    /// Its events, newest first.
    pub events: Vec<EventRow>,
}

/// A decision, as shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// When; of equal ones, the last.
    pub at: Timestamp,
    /// The rule; `None` for a call that was rejected.
    pub rule: Option<String>,
    /// The alert.
    pub alert: String,
    /// The outcome; `None` if it was accepted.
    pub outcome: Option<AlertOutcome>,
    /// The outcome in words.
    pub detail: String,
    /// How many consecutive ones were equal.
    pub count: u64,
}

impl Alerts {
    /// The state of the rules, as of the last read of our own znodes, within about a second.
    #[must_use]
    pub fn overview(&self, now: Timestamp) -> Overview {
        let shared = &self.shared;
        let rules = self.rules();
        let seen = shared.seen.read().clone();
        let (snapshot, read) = seen.map_or((None, None), |(snapshot, read)| (Some(snapshot), Some(read)));
        let snapshot = snapshot.unwrap_or_default();
        let shared_budget =
            snapshot.all.as_ref().and_then(|all| SharedBudget::read(&all.data).ok()).unwrap_or_default();
        let decisions = decisions(&snapshot);
        let dry = shared.dry.lock();
        let lines = shared.recent.lines();
        let of_rule = |rule: &Rule| {
            let is_real = rule.mode == Mode::Enforce;
            let (memory, unreadable) = if is_real {
                memory_of(&snapshot, &rule.name)
                    .map_or_else(|stop| (Memory::default(), Some(stop.why)), |memory| (memory, None))
            } else {
                (dry.memories.get(&rule.name).cloned().unwrap_or_default(), None)
            };
            let shared_budget = if is_real { &shared_budget } else { &dry.shared_budget };
            // Without the share, which depends on the queue.
            let unshared = Rule { max_share: None, ..rule.clone() };
            let remembered = memory.events.iter().map(|event| EventRow {
                at: event.at,
                rule: Some(rule.name.clone()),
                alert: rule.alert.clone(),
                outcome: Some(event.outcome),
                detail: event.detail.clone(),
                count: 1,
            });
            let is_remembered = |events: &EventRow| {
                memory.events.iter().any(|event| Some(event.outcome) == events.outcome && event.detail == events.detail)
            };
            let here = lines.iter().filter(|line| line.rule.as_ref() == Some(&rule.name)).map(EventRow::of);
            let mut events: Vec<_> = here.filter(|events| !is_remembered(events)).chain(remembered).collect();
            events.sort_by_key(|events| std::cmp::Reverse(events.at));
            // Accepted decisions that have finished are not listed twice.
            let over = events.iter().find(|events| events.outcome.is_some()).map(|events| events.at);
            events.retain(|events| events.outcome.is_some() || over.is_none_or(|over| events.at > over));
            events.truncate(20);
            RuleOverview {
                budget_left: guard::room(&unshared, &memory, (shared_budget, rules.budget), 0, now).0,
                waiting: waiting(&decisions, &rule.name, now),
                breaker: memory.breaker.clone(),
                holds: memory.holds.clone(),
                left: memory.left.clone(),
                last_action: memory.last_action,
                unreadable,
                events,
                rule: rule.clone(),
            }
        };
        let (mut strange, more_foreign) = foreign(&snapshot, now);
        strange.extend(shared.unread.read().clone());
        Overview {
            foreign: strange,
            more_foreign,
            problem: shared.coordination.problem(),
            is_audit_unwritable: shared.is_audit_unwritable(),
            rules: rules.rules.iter().map(of_rule).collect(),
            orphans: orphans(&snapshot, &rules),
            paused: snapshot
                .paused
                .as_ref()
                .map(|node| RulesPause::read(&node.data, shared.store.own_time(node.created))),
            leads: shared.coordination.lead().is_some(),
            read,
            budget_left: u64::from(rules.budget.items)
                .saturating_sub(shared_budget.spent.within(rules.budget.per, now)),
            events: lines.iter().map(EventRow::of).collect(),
        }
    }
}

/// The decisions that are pending or executing.
pub(super) fn decisions(snapshot: &Snapshot) -> Vec<Decision> {
    snapshot.pending.iter().filter_map(|node| Decision::read(&node.data).ok()).collect()
}

/// Those of one rule in words, each with since when.
pub(super) fn waiting(decisions: &[Decision], rule: &str, now: Timestamp) -> Vec<(String, Timestamp)> {
    let of_rule = decisions.iter().filter(|decision| decision.rule == rule);
    of_rule.map(|decision| (decision.in_words(now), decision.at)).collect()
}

/// The holds of rules that no longer enforce.
pub(super) fn orphans(snapshot: &Snapshot, rules: &Rules) -> Vec<(String, Vec<RuleHold>)> {
    let nodes = snapshot.rules.iter();
    let idle = nodes.filter(|(name, _)| rules.get(name).is_none_or(|rule| rule.mode != Mode::Enforce));
    let holds = idle.filter_map(|(name, node)| {
        let memory = Memory::read(&node.data).ok().filter(|memory| !memory.holds.is_empty())?;
        Some((name.clone(), memory.holds))
    });
    holds.collect()
}

impl EventRow {
    fn of(line: &super::recent::RecentDecision) -> Self {
        let super::recent::RecentDecision { at, rule, alert, outcome, detail, count } = line.clone();
        Self { at, rule, alert, outcome, detail, count }
    }
}

impl RulesPause {
    pub(super) fn read(data: &[u8], since: Timestamp) -> Self {
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct Note {
            who: String,
            why: String,
        }
        let Note { who, why } = serde_json::from_slice(data).unwrap_or_default();
        let brief = |text: String| text.chars().take(500).collect();
        Self { who: brief(who), why: brief(why), since }
    }
}

impl Decision {
    fn in_words(&self, now: Timestamp) -> String {
        let what = match self.kind {
            DecisionKind::Act => "executing for",
            DecisionKind::Undo => "releasing its holds for",
        };
        let alert = &self.cause.alert;
        match (&self.list, self.not_before.filter(|at| *at > now)) {
            (_, Some(at)) => format!("{what} {alert}: failed, retrying at {}", moment(at)),
            (None, None) => format!("{what} {alert}: not started"),
            (Some(list), None) => {
                let left = list.items.len();
                format!("{what} {alert}: {} done, {left} remaining", list.done)
            }
        }
    }
}
