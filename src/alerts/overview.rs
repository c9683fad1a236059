//! How the rules stand, for the page, the API and the attention list.

use jiff::Timestamp;

use super::decision::{Decision, Kind};
use super::foreign::{Foreign, foreign};
use super::guard;
use super::memory::{Breaker, Hold, Memory, Together, memory_of};
use super::outcome::Outcome;
use super::rule::{Mode, Rule, Rules};
use super::server::Alerts;
use queuekeeper_zookeeper::coordination::Snapshot;

/// How the rules stand at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// Each rule, in the order of the file.
    pub rules: Vec<RuleOverview>,
    /// Rules that do not act any more, or are in no file of this process, and still hold collections.
    pub orphans: Vec<(String, Vec<Hold>)>,
    /// Who paused all automatic action, why and since when, as it was noted; `None` while it is not.
    pub paused: Option<Pause>,
    /// Whether this process carries decisions out.
    pub leads: bool,
    /// When our own znodes were last read; `None` while they cannot be. Without rules that act, nobody reads them.
    pub read: Option<Timestamp>,
    /// How much all rules may still do together, now.
    pub budget_left: u64,
    /// The last that this process decided, the newest first.
    pub events: Vec<EventRow>,
    /// What stands among our own znodes and a person should look at, at most a hundred.
    pub foreign: Vec<Foreign>,
    /// How many there are beyond those.
    pub more_foreign: usize,
    /// Why this process cannot stand for election; `None` where it can, or need not.
    pub problem: Option<String>,
    /// Whether what rules do cannot be written down here, so that this process decides and does nothing.
    pub is_trail_lost: bool,
}

/// The kill switch is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// By whom; empty where that is not said.
    pub who: String,
    /// Why; empty where that is not said.
    pub why: String,
    /// Since when, by the servers' clock.
    pub since: Timestamp,
}

/// How one rule stands.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleOverview {
    /// The rule.
    pub rule: Rule,
    /// Its breaker, while it is open.
    pub breaker: Option<Breaker>,
    /// How many items it may still touch now; what its share of the jobs leaves is known when it is looked at.
    pub budget_left: u64,
    /// What it holds; in a dry run, what it would.
    pub holds: Vec<Hold>,
    /// The decisions of it that wait or are being carried out, in words, each with since when.
    pub waiting: Vec<(String, Timestamp)>,
    /// The items that it has left to a person.
    pub left: Vec<String>,
    /// When it last did something; in a dry run, would have.
    pub last_action: Option<Timestamp>,
    /// Why what it remembers cannot be read; it does nothing then.
    pub unreadable: Option<String>,
    /// What it did and did not do, the newest first.
    pub events: Vec<EventRow>,
}

/// Something that was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// When; of many alike, the last.
    pub at: Timestamp,
    /// By which rule; `None` for a call that was refused.
    pub rule: Option<String>,
    /// About which alert.
    pub alert: String,
    /// What came of it; `None` for what was accepted to be carried out.
    pub outcome: Option<Outcome>,
    /// In words.
    pub detail: String,
    /// How often the same came one after the other.
    pub count: u64,
}

impl Alerts {
    /// How the rules stand now: as our own znodes were when they were last read, within the last second or so.
    #[must_use]
    pub fn overview(&self, now: Timestamp) -> Overview {
        let shared = &self.shared;
        let rules = self.rules();
        let seen = shared.seen.read().clone();
        let (snapshot, read) = seen.map_or((None, None), |(snapshot, read)| (Some(snapshot), Some(read)));
        let snapshot = snapshot.unwrap_or_default();
        let together = snapshot.all.as_ref().and_then(|all| Together::read(&all.data).ok()).unwrap_or_default();
        let decisions = decisions(&snapshot);
        let dry = shared.dry.lock();
        let lines = shared.book.lines();
        let of_rule = |rule: &Rule| {
            let is_real = rule.mode == Mode::Enforce;
            let (memory, unreadable) = if is_real {
                memory_of(&snapshot, &rule.name)
                    .map_or_else(|stop| (Memory::default(), Some(stop.why)), |memory| (memory, None))
            } else {
                (dry.memories.get(&rule.name).cloned().unwrap_or_default(), None)
            };
            let together = if is_real { &together } else { &dry.together };
            // Without the share: that takes a look at the queue.
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
            // What was accepted and is over is not listed twice.
            let over = events.iter().find(|events| events.outcome.is_some()).map(|events| events.at);
            events.retain(|events| events.outcome.is_some() || over.is_none_or(|over| events.at > over));
            events.truncate(20);
            RuleOverview {
                budget_left: guard::room(&unshared, &memory, (together, rules.budget), 0, now).0,
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
            is_trail_lost: shared.is_trail_lost(),
            rules: rules.rules.iter().map(of_rule).collect(),
            orphans: orphans(&snapshot, &rules),
            paused: snapshot.paused.as_ref().map(|node| Pause::read(&node.data, shared.store.own_time(node.created))),
            leads: shared.coordination.lead().is_some(),
            read,
            budget_left: u64::from(rules.budget.items).saturating_sub(together.spent.within(rules.budget.per, now)),
            events: lines.iter().map(EventRow::of).collect(),
        }
    }
}

/// The decisions that wait or are being carried out.
pub(super) fn decisions(snapshot: &Snapshot) -> Vec<Decision> {
    snapshot.pending.iter().filter_map(|node| Decision::read(&node.data).ok()).collect()
}

/// Those of one rule in words, each with since when.
pub(super) fn waiting(decisions: &[Decision], rule: &str, now: Timestamp) -> Vec<(String, Timestamp)> {
    let of_rule = decisions.iter().filter(|decision| decision.rule == rule);
    of_rule.map(|decision| (decision.in_words(now), decision.at)).collect()
}

/// What rules hold that do not act any more.
pub(super) fn orphans(snapshot: &Snapshot, rules: &Rules) -> Vec<(String, Vec<Hold>)> {
    let nodes = snapshot.rules.iter();
    let idle = nodes.filter(|(name, _)| rules.get(name).is_none_or(|rule| rule.mode != Mode::Enforce));
    let holds = idle.filter_map(|(name, node)| {
        let memory = Memory::read(&node.data).ok().filter(|memory| !memory.holds.is_empty())?;
        Some((name.clone(), memory.holds))
    });
    holds.collect()
}

impl EventRow {
    fn of(line: &super::book::Line) -> Self {
        let super::book::Line { at, rule, alert, outcome, detail, count } = line.clone();
        Self { at, rule, alert, outcome, detail, count }
    }
}

impl Pause {
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
            Kind::Act => "acts on",
            Kind::Undo => "takes back what it did for",
        };
        let alert = &self.cause.alert;
        match (&self.list, self.not_before.filter(|at| *at > now)) {
            (_, Some(at)) => format!("{what} {alert}: failed, and is tried again at {at:.0}"),
            (None, None) => format!("{what} {alert}: not begun"),
            (Some(list), None) => {
                let left = list.items.len();
                format!("{what} {alert}: {} done, {left} to come", list.done)
            }
        }
    }
}
