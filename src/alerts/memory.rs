//! The state of a rule, stored as JSON in its znode: used budget, holds, cooldowns and attempts.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::evaluation::Stop;
use super::outcome::AlertOutcome;
use super::time::later;
use queuekeeper_zookeeper::coordination::{self, Snapshot};

/// How long attempts on an item are kept after the last one.
const ATTEMPTS_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// For how many items attempts are kept; a rule that has touched more does not act until some expire. It limits the
/// znode to about 130 KiB of the 1 MiB that a request may have.
pub(super) const MAX_ATTEMPTED: usize = 4_000;

/// How much longer than needed entries are kept, since clocks are corrected, and the next leader's may be behind.
const CLOCK_SLACK: Duration = Duration::from_hours(1);

/// A date further in the future than this is not explained by clock differences. It is ignored, since it would stop its
/// rule until then.
const FOREIGN: Duration = Duration::from_hours(24);

/// How many alerts are kept; a rule that has acted on more within its cooldown waits.
const MAX_SEEN: usize = 1_000;

/// How many events are kept.
const MAX_EVENTS: usize = 20;

/// The maximum length of an event's detail, in characters.
const MAX_DETAIL_CHARS: usize = 300;

/// Tokens that were taken, each with its time; they are returned after the budget's period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct SpentTokens(VecDeque<(i64, u32)>);

impl SpentTokens {
    /// How many were taken within the period before now. Later ones, by another clock, count too.
    pub(super) fn within(&self, span: Duration, now: Timestamp) -> u64 {
        let since = now.as_millisecond().saturating_sub(millis(span));
        self.0
            .iter()
            .filter(|(at, _)| *at > since && !is_foreign_ms(*at, now))
            .map(|(_, count)| u64::from(*count))
            .sum()
    }

    /// Takes some, and forgets those that were returned.
    pub(super) fn take(&mut self, count: u32, longest: Duration, now: Timestamp) {
        let now_ms = now.as_millisecond();
        let since = now_ms.saturating_sub(millis(longest.saturating_add(CLOCK_SLACK)));
        self.0.retain(|(at, _)| *at > since && !is_foreign_ms(*at, now));
        match self.0.back_mut() {
            Some((at, taken)) if *at == now_ms => *taken = taken.saturating_add(count),
            Some(_) | None => self.0.push_back((now_ms, count)),
        }
    }
}

/// Whether a date is so far in the future that clock differences cannot explain it.
pub(super) fn is_foreign(at: Timestamp, now: Timestamp) -> bool {
    at > later(now, FOREIGN)
}

fn is_foreign_ms(at_ms: i64, now: Timestamp) -> bool {
    at_ms > now.as_millisecond().saturating_add(millis(FOREIGN))
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// The number of attempts on an item, and the time of the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attempts(u32, i64);

/// An open breaker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    /// Since when it is open.
    pub since: Timestamp,
    /// Why it was opened.
    pub why: String,
}

/// A collection held by a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleHold {
    /// Its mnemonic.
    pub collection: String,
    /// Since when, as in the data of the hold: whole seconds.
    pub since: Timestamp,
    /// The fingerprint of the alert.
    pub fingerprint: String,
}

/// An alert on which the rule has acted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SeenAlert {
    scope: String,
    fingerprint: String,
    starts_at: Timestamp,
    at: Timestamp,
}

impl SeenAlert {
    /// Whether it is within this period before now.
    fn is_within(&self, span: Duration, now: Timestamp) -> bool {
        later(self.at, span) > now && !is_foreign(self.at, now)
    }
}

/// An event of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Event {
    pub(super) at: Timestamp,
    pub(super) outcome: AlertOutcome,
    pub(super) detail: String,
}

/// The state of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    pub(super) spent: SpentTokens,
    /// The breaker, if it is open.
    pub breaker: Option<Breaker>,
    seen: VecDeque<SeenAlert>,
    pub(super) attempts: BTreeMap<String, Attempts>,
    /// The collections that it holds.
    pub holds: Vec<RuleHold>,
    /// When it last acted.
    pub last_action: Option<Timestamp>,
    /// The items that it has left to a user, as of its last selection; at most a hundred.
    pub left: Vec<String>,
    pub(super) events: VecDeque<Event>,
}

/// The state shared by all rules: the used budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedBudget {
    pub(super) spent: SpentTokens,
}

/// Whether a rule has acted before on an alert or its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreviousAction {
    /// It has not, or not within its cooldown.
    None,
    /// It has acted on this alert.
    SameAlert,
    /// It has acted on another alert with the same scope.
    OtherAlert,
}

impl Memory {
    /// Parses it; empty data is an empty state.
    ///
    /// # Errors
    /// When the data is not a rule's state.
    pub(super) fn read(data: &[u8]) -> Result<Self, serde_json::Error> {
        if data.is_empty() { Ok(Self::default()) } else { serde_json::from_slice(data) }
    }

    pub(super) fn data(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a state holds texts and numbers only")
    }

    /// What the rule has done on a scope within its cooldown.
    pub(super) fn previous_action(
        &self,
        scope: &str,
        fingerprint: &str,
        starts_at: Timestamp,
        cooldown: Duration,
        now: Timestamp,
    ) -> PreviousAction {
        let recent = self.seen.iter().filter(|seen| seen.scope == scope && seen.is_within(cooldown, now));
        let mut before = PreviousAction::None;
        for seen in recent {
            if seen.fingerprint == fingerprint && seen.starts_at == starts_at {
                return PreviousAction::SameAlert;
            }
            before = PreviousAction::OtherAlert;
        }
        before
    }

    /// Records an alert on which the rule acts, and removes those older than the cooldown.
    pub(super) fn record_alert(
        &mut self,
        scope: &str,
        fingerprint: &str,
        starts_at: Timestamp,
        cooldown: Duration,
        now: Timestamp,
    ) {
        let is_it =
            |seen: &SeenAlert| seen.scope == scope && seen.fingerprint == fingerprint && seen.starts_at == starts_at;
        self.seen.retain(|seen| !is_it(seen) && seen.is_within(cooldown.saturating_add(CLOCK_SLACK), now));
        let (scope, fingerprint) = (scope.to_owned(), fingerprint.to_owned());
        self.seen.push_back(SeenAlert { scope, fingerprint, starts_at, at: now });
    }

    /// Whether there is room for one more alert.
    pub(super) fn has_room(&self, cooldown: Duration, now: Timestamp) -> bool {
        let kept = cooldown.saturating_add(CLOCK_SLACK);
        self.seen.iter().filter(|seen| seen.is_within(kept, now)).count() < MAX_SEEN
    }

    /// For how many items attempts are kept.
    pub(super) fn attempted(&self, now: Timestamp) -> usize {
        let forgotten = now.as_millisecond().saturating_sub(millis(ATTEMPTS_LIFETIME));
        let is_kept = |last_ms| last_ms > forgotten && !is_foreign_ms(last_ms, now);
        self.attempts.values().filter(|Attempts(_, last_ms)| is_kept(*last_ms)).count()
    }

    /// Resets the attempts on an item, or on all: it succeeded, or a user requested it.
    pub(super) fn forget_attempts(&mut self, item: Option<&str>) {
        match item {
            Some(item) => drop(self.attempts.remove(item)),
            None => self.attempts.clear(),
        }
    }

    /// The number of attempts on an item.
    pub(super) fn attempts_on(&self, item: &str) -> u32 {
        self.attempts.get(item).map_or(0, |Attempts(count, _)| *count)
    }

    /// Records an attempt.
    pub(super) fn record_attempt(&mut self, item: &str, now: Timestamp) {
        let forgotten = now.as_millisecond().saturating_sub(millis(ATTEMPTS_LIFETIME));
        self.attempts.retain(|_, Attempts(_, last_ms)| *last_ms > forgotten && !is_foreign_ms(*last_ms, now));
        let Attempts(count, last_ms) = self.attempts.entry(item.to_owned()).or_insert(Attempts(0, 0));
        (*count, *last_ms) = (count.saturating_add(1), now.as_millisecond());
    }

    /// Opens the breaker, unless it is open already.
    pub(super) fn trip(&mut self, why: impl Into<String>, now: Timestamp) {
        self.breaker.get_or_insert_with(|| Breaker { since: now, why: why.into() });
    }

    /// Records an event, for the page.
    pub(super) fn record_event(&mut self, outcome: AlertOutcome, detail: &str, now: Timestamp) {
        let detail = detail.chars().take(MAX_DETAIL_CHARS).collect();
        self.events.push_front(Event { at: now, outcome, detail });
        self.events.truncate(MAX_EVENTS);
    }

    /// Whether it holds nothing that matters, under any configuration.
    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        let day = Duration::from_hours(24);
        self.holds.is_empty()
            && self.breaker.is_none()
            && self.last_action.is_none_or(|last| later(last, day) < now || is_foreign(last, now))
            && self.events.front().is_none_or(|event| later(event.at, day) < now || is_foreign(event.at, now))
    }
}

/// The state of a rule, from a snapshot.
///
/// # Errors
/// When it exists but is not valid: what the rule may do is unknown.
pub(super) fn memory_of(snapshot: &Snapshot, rule: &str) -> Result<Memory, Stop> {
    let path = coordination::rule(rule);
    let unreadable =
        || Stop::new(AlertOutcome::Failed, format!("the state of the rule is not valid; delete {path} to reset it"));
    match snapshot.rules.get(rule) {
        Some(node) => Memory::read(&node.data).map_err(|_| unreadable()),
        None if snapshot.foreign.iter().any(|node| node.path == path) => Err(unreadable()),
        None => Ok(Memory::default()),
    }
}

impl SharedBudget {
    pub(super) fn read(data: &[u8]) -> Result<Self, serde_json::Error> {
        if data.is_empty() { Ok(Self::default()) } else { serde_json::from_slice(data) }
    }

    pub(super) fn data(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("it holds numbers only")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Instants in a znode, including the first and the last possible ones.
    fn instants() -> impl Strategy<Value = &'static str> {
        prop_oneof![
            Just("-009999-01-02T01:59:59Z"),
            Just("1970-01-01T00:00:00Z"),
            Just("2026-11-21T10:00:00Z"),
            Just("9999-12-30T22:00:00.999999999Z"),
        ]
    }

    fn memories() -> impl Strategy<Value = Value> {
        let numbers = || prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), Just(0)];
        (instants(), instants(), numbers(), any::<u32>(), numbers(), any::<u32>()).prop_map(
            |(one, other, spent, taken, tried, count)| {
                json!({
                    "spent": [[spent, taken], [tried, count]],
                    "breaker": {"since": one, "why": "\u{0}<script>"},
                    "seen": [{"scope": "", "fingerprint": "f", "starts_at": other, "at": one}],
                    "attempts": {"jid0000000001": [count, tried]},
                    "holds": [{"collection": "../..", "since": other, "fingerprint": "f"}],
                    "last_action": one,
                    "left": ["x"],
                    "events": [{"at": other, "outcome": "executed", "detail": "y"}],
                })
            },
        )
    }

    proptest! {
        #[test]
        fn a_rule_copes_with_any_state_in_its_znode(
            written in memories(),
            now in instants(),
            seconds in prop_oneof![0_u64..100_000, Just(u64::MAX)],
        ) {
            let now: Timestamp = now.parse().unwrap();
            let (span, text) = (Duration::from_secs(seconds), written.to_string());
            let Ok(mut memory) = Memory::read(text.as_bytes()) else { return Ok(()) };
            memory.spent.within(span, now);
            memory.previous_action("", "f", now, span, now);
            memory.has_room(span, now);
            memory.attempted(now);
            memory.is_idle(now);
            memory.spent.take(u32::MAX, span, now);
            memory.record_attempt("jid0000000001", now);
            memory.record_alert("", "f", now, span, now);
            memory.trip("why", now);
            memory.record_event(AlertOutcome::Executed, "detail", now);
            // The result can be read again.
            prop_assert_eq!(Memory::read(&memory.data()).unwrap(), memory);
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Memory::read(&bytes);
            let _ = SharedBudget::read(&bytes);
            let _ = super::super::Decision::read(&bytes);
            let _ = super::super::Payload::read(&bytes);
        }
    }
}
