//! The most recent decisions of this process, for the page. Those of other processes are in the state of each rule.

use std::collections::VecDeque;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::outcome::AlertOutcome;

/// How many are kept.
const KEPT: usize = 200;

/// A decision, as shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecentDecision {
    pub(super) at: Timestamp,
    pub(super) rule: Option<String>,
    pub(super) alert: String,
    pub(super) outcome: Option<AlertOutcome>,
    pub(super) detail: String,
    /// How many consecutive ones were equal.
    pub(super) count: u64,
}

/// The most recent decisions, newest first.
#[derive(Debug, Default)]
pub(super) struct RecentDecisions(Mutex<VecDeque<RecentDecision>>);

impl RecentDecisions {
    /// Adds one. Repetitions are only counted, since Alertmanager repeats its notifications.
    pub(super) fn note(&self, line: RecentDecision) {
        let mut kept = self.0.lock();
        if let Some(before) = kept.front_mut()
            && (&before.rule, &before.alert, before.outcome, &before.detail)
                == (&line.rule, &line.alert, line.outcome, &line.detail)
        {
            (before.at, before.count) = (line.at, before.count + line.count);
            return;
        }
        kept.push_front(line);
        kept.truncate(KEPT);
    }

    pub(super) fn lines(&self) -> Vec<RecentDecision> {
        self.0.lock().iter().cloned().collect()
    }
}
