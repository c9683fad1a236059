//! What a rule remembers, as JSON in its znode: what it has spent, what it holds, and where it has given up.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::guard::Stop;
use super::outcome::Outcome;
use super::time::later;
use queuekeeper_zookeeper::coordination::{self, Snapshot};

/// How long attempts on an item are remembered after the last one.
const ATTEMPTS_FOR: Duration = Duration::from_hours(7 * 24);

/// How many items' attempts are remembered; a rule that has touched more does nothing more until some are forgotten.
/// It is a bound on the znode: some 130 KiB of the 1 MiB that a request may have.
pub(super) const MOST_ATTEMPTED: usize = 4_000;

/// How much longer than it matters something is remembered: clocks are put back, and the next leader's may be behind.
const CLOCK_SLACK: Duration = Duration::from_hours(1);

/// What is dated later than this after now is no other process's clock, but somebody's hand: it counts for nothing, or it
/// would stop its rule until then.
const FOREIGN: Duration = Duration::from_hours(24);

/// How many alerts that were acted upon are remembered; a rule that acted on more within its cooldown waits.
const MOST_SEEN: usize = 1_000;

/// How many events are remembered.
const MOST_EVENTS: usize = 20;

/// How many characters an event's detail has at most.
const LONGEST_DETAIL: usize = 300;

/// Tokens that were taken, each with when: they come back when their time is over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Spent(VecDeque<(i64, u32)>);

impl Spent {
    /// How many were taken within a span that ends now. What is dated later, by another's clock, counts too.
    pub(super) fn within(&self, span: Duration, now: Timestamp) -> u64 {
        let since = now.as_millisecond().saturating_sub(millis(span));
        self.0
            .iter()
            .filter(|(at, _)| *at > since && !is_foreign_ms(*at, now))
            .map(|(_, count)| u64::from(*count))
            .sum()
    }

    /// Takes some, and forgets those that came back before a span.
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

/// Whether an instant is so far in the future that no clock can be the reason.
pub(super) fn is_foreign(at: Timestamp, now: Timestamp) -> bool {
    at > later(now, FOREIGN)
}

fn is_foreign_ms(at_ms: i64, now: Timestamp) -> bool {
    at_ms > now.as_millisecond().saturating_add(millis(FOREIGN))
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// How often an item was tried, and when it last was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attempts(u32, i64);

/// A breaker that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    /// Since when.
    pub since: Timestamp,
    /// Why.
    pub why: String,
}

/// A collection that a rule holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Its mnemonic.
    pub collection: String,
    /// Since when, as the hold itself says: whole seconds.
    pub since: Timestamp,
    /// The alert that it was held for.
    pub fingerprint: String,
}

/// An alert that was acted upon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    scope: String,
    fingerprint: String,
    starts_at: Timestamp,
    at: Timestamp,
}

impl Seen {
    /// Whether it is so long ago at most.
    fn is_within(&self, span: Duration, now: Timestamp) -> bool {
        later(self.at, span) > now && !is_foreign(self.at, now)
    }
}

/// Something that a rule did or did not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Event {
    pub(super) at: Timestamp,
    pub(super) outcome: Outcome,
    pub(super) detail: String,
}

/// What a rule remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    pub(super) spent: Spent,
    /// The breaker, while it is open.
    pub breaker: Option<Breaker>,
    seen: VecDeque<Seen>,
    pub(super) attempts: BTreeMap<String, Attempts>,
    /// What it holds.
    pub holds: Vec<Hold>,
    /// When it last did something.
    pub last_action: Option<Timestamp>,
    /// The items that it has left to a person, as it last looked; at most a hundred.
    pub left: Vec<String>,
    pub(super) events: VecDeque<Event>,
}

/// What all rules remember together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Together {
    pub(super) spent: Spent,
}

/// How an alert stands to what a rule has done before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing that matters.
    Nothing,
    /// This very alert was acted upon.
    This,
    /// Another one was, on the same.
    Another,
}

impl Memory {
    /// Reads it; empty data is an empty memory.
    ///
    /// # Errors
    /// When it is none: somebody wrote over it.
    pub(super) fn read(data: &[u8]) -> Result<Self, serde_json::Error> {
        if data.is_empty() { Ok(Self::default()) } else { serde_json::from_slice(data) }
    }

    pub(super) fn data(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a memory holds texts and numbers only")
    }

    /// What the rule has done on a scope within its cooldown.
    pub(super) fn before(
        &self,
        scope: &str,
        fingerprint: &str,
        starts_at: Timestamp,
        cooldown: Duration,
        now: Timestamp,
    ) -> Before {
        let recent = self.seen.iter().filter(|seen| seen.scope == scope && seen.is_within(cooldown, now));
        let mut before = Before::Nothing;
        for seen in recent {
            if seen.fingerprint == fingerprint && seen.starts_at == starts_at {
                return Before::This;
            }
            before = Before::Another;
        }
        before
    }

    /// Notes that an alert was acted upon; what is older than the cooldown is forgotten.
    pub(super) fn see(
        &mut self,
        scope: &str,
        fingerprint: &str,
        starts_at: Timestamp,
        cooldown: Duration,
        now: Timestamp,
    ) {
        let is_it = |seen: &Seen| seen.scope == scope && seen.fingerprint == fingerprint && seen.starts_at == starts_at;
        self.seen.retain(|seen| !is_it(seen) && seen.is_within(cooldown.saturating_add(CLOCK_SLACK), now));
        let (scope, fingerprint) = (scope.to_owned(), fingerprint.to_owned());
        self.seen.push_back(Seen { scope, fingerprint, starts_at, at: now });
    }

    /// Whether it can remember one more alert that it acts upon.
    pub(super) fn has_room(&self, cooldown: Duration, now: Timestamp) -> bool {
        let kept = cooldown.saturating_add(CLOCK_SLACK);
        self.seen.iter().filter(|seen| seen.is_within(kept, now)).count() < MOST_SEEN
    }

    /// How many items' attempts have to be remembered.
    pub(super) fn attempted(&self, now: Timestamp) -> usize {
        let forgotten = now.as_millisecond().saturating_sub(millis(ATTEMPTS_FOR));
        let is_kept = |last_ms| last_ms > forgotten && !is_foreign_ms(last_ms, now);
        self.attempts.values().filter(|Attempts(_, last_ms)| is_kept(*last_ms)).count()
    }

    /// Forgets how often something was tried: it worked, or a person says so.
    pub(super) fn forget_attempts(&mut self, item: Option<&str>) {
        match item {
            Some(item) => drop(self.attempts.remove(item)),
            None => self.attempts.clear(),
        }
    }

    /// How often an item was tried.
    pub(super) fn attempts_on(&self, item: &str) -> u32 {
        self.attempts.get(item).map_or(0, |Attempts(count, _)| *count)
    }

    /// Notes a try.
    pub(super) fn attempt(&mut self, item: &str, now: Timestamp) {
        let forgotten = now.as_millisecond().saturating_sub(millis(ATTEMPTS_FOR));
        self.attempts.retain(|_, Attempts(_, last_ms)| *last_ms > forgotten && !is_foreign_ms(*last_ms, now));
        let Attempts(count, last_ms) = self.attempts.entry(item.to_owned()).or_insert(Attempts(0, 0));
        (*count, *last_ms) = (count.saturating_add(1), now.as_millisecond());
    }

    /// Opens the breaker, unless it is open already.
    pub(super) fn trip(&mut self, why: impl Into<String>, now: Timestamp) {
        self.breaker.get_or_insert_with(|| Breaker { since: now, why: why.into() });
    }

    /// Notes what came of a decision, for whoever looks.
    pub(super) fn tell(&mut self, outcome: Outcome, detail: &str, now: Timestamp) {
        let detail = detail.chars().take(LONGEST_DETAIL).collect();
        self.events.push_front(Event { at: now, outcome, detail });
        self.events.truncate(MOST_EVENTS);
    }

    /// Whether it has nothing to remember any more, however it is configured.
    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        let day = Duration::from_hours(24);
        self.holds.is_empty()
            && self.breaker.is_none()
            && self.last_action.is_none_or(|last| later(last, day) < now || is_foreign(last, now))
            && self.events.front().is_none_or(|event| later(event.at, day) < now || is_foreign(event.at, now))
    }
}

/// What a rule remembers, as it was just read.
///
/// # Errors
/// When it is there and cannot be read, or is no memory: nothing says what the rule may do.
pub(super) fn memory_of(snapshot: &Snapshot, rule: &str) -> Result<Memory, Stop> {
    let path = coordination::rule(rule);
    let unreadable =
        || Stop::new(Outcome::Failed, format!("what the rule remembers cannot be read; delete {path} to begin anew"));
    match snapshot.rules.get(rule) {
        Some(node) => Memory::read(&node.data).map_err(|_| unreadable()),
        None if snapshot.strangers.iter().any(|stranger| stranger.path == path) => Err(unreadable()),
        None => Ok(Memory::default()),
    }
}

impl Together {
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

    /// Instants that somebody may have written, the first and the last there are among them.
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
        fn whatever_stands_in_its_znode_a_rule_stumbles_over_nothing(
            written in memories(),
            now in instants(),
            seconds in prop_oneof![0_u64..100_000, Just(u64::MAX)],
        ) {
            let now: Timestamp = now.parse().unwrap();
            let (span, text) = (Duration::from_secs(seconds), written.to_string());
            let Ok(mut memory) = Memory::read(text.as_bytes()) else { return Ok(()) };
            memory.spent.within(span, now);
            memory.before("", "f", now, span, now);
            memory.has_room(span, now);
            memory.attempted(now);
            memory.is_idle(now);
            memory.spent.take(u32::MAX, span, now);
            memory.attempt("jid0000000001", now);
            memory.see("", "f", now, span, now);
            memory.trip("why", now);
            memory.tell(Outcome::Executed, "detail", now);
            // And what it writes, it reads.
            prop_assert_eq!(Memory::read(&memory.data()).unwrap(), memory);
        }

        #[test]
        fn any_bytes_are_a_memory_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Memory::read(&bytes);
            let _ = Together::read(&bytes);
            let _ = super::super::Decision::read(&bytes);
            let _ = super::super::Payload::read(&bytes);
        }
    }
}
