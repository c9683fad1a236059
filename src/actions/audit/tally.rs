//! Counts Alertmanager calls that change nothing, which are recorded as sums.

use std::collections::BTreeMap;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::record::{ActionId, Counted, Record};

/// How many different decisions are counted separately until they are written; further ones are counted as others.
const MAX_KINDS: usize = 1_000;

/// The decisions of one call that change nothing.
#[derive(Clone, Debug, Default)]
pub struct Unchanged {
    /// The name of the token used.
    pub actor: String,
    /// How many alerts match no rule.
    pub unmatched: u64,
    /// How many alerts Alertmanager omitted.
    pub truncated: u64,
    /// The decisions about the others, by rule and outcome.
    pub decisions: Vec<Counted>,
    /// Whether it is a whole call, and not the rest of one that has a record of its own.
    pub is_call: bool,
}

/// The sums since the last record, by actor.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<BTreeMap<String, Sum>>);

/// The sum of one actor.
#[derive(Clone, Debug)]
struct Sum {
    since: Timestamp,
    calls: u64,
    unmatched: u64,
    truncated: u64,
    others: u64,
    /// By rule and outcome: the number of decisions, and the most recent detail.
    kinds: BTreeMap<(String, String), (u64, String)>,
}

impl Tally {
    pub(super) fn add(&self, unchanged: Unchanged, now: Timestamp) {
        let mut sums = self.0.lock();
        let sum = sums.entry(unchanged.actor).or_insert_with(|| Sum {
            since: now,
            calls: 0,
            unmatched: 0,
            truncated: 0,
            others: 0,
            kinds: BTreeMap::new(),
        });
        sum.calls += u64::from(unchanged.is_call);
        sum.unmatched += unchanged.unmatched;
        sum.truncated += unchanged.truncated;
        for Counted { rule, outcome, count, detail } in unchanged.decisions {
            let key = (rule, outcome);
            if sum.kinds.len() >= MAX_KINDS && !sum.kinds.contains_key(&key) {
                sum.others += count;
                continue;
            }
            let kind = sum.kinds.entry(key).or_default();
            *kind = (kind.0 + count, detail);
        }
    }

    /// Takes the sums: one record for each actor.
    pub(super) fn take(&self, now: Timestamp) -> Vec<Record> {
        let sums = std::mem::take(&mut *self.0.lock());
        let record = |(actor, sum): (String, Sum)| Record::AlertsUnchanged {
            id: ActionId::new(now),
            at: now,
            since: sum.since,
            actor,
            calls: sum.calls,
            unmatched: sum.unmatched,
            truncated: sum.truncated,
            decisions: sum
                .kinds
                .into_iter()
                .map(|((rule, outcome), (count, detail))| Counted { rule, outcome, count, detail })
                .collect(),
            others: sum.others,
        };
        sums.into_iter().map(record).collect()
    }
}
