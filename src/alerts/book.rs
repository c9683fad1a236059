//! The last that this process decided, for the page: what comes from others is in the memory of each rule.

use std::collections::VecDeque;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::outcome::Outcome;

/// How many are kept.
const KEPT: usize = 200;

/// One decision, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) at: Timestamp,
    pub(super) rule: Option<String>,
    pub(super) alert: String,
    pub(super) outcome: Option<Outcome>,
    pub(super) detail: String,
    /// How often the same came one after the other.
    pub(super) count: u64,
}

/// The last decisions, the newest first.
#[derive(Debug, Default)]
pub(super) struct Book(Mutex<VecDeque<Line>>);

impl Book {
    /// Notes one. What repeats the one before is only counted: an alert is sent again and again.
    pub(super) fn note(&self, line: Line) {
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

    pub(super) fn lines(&self) -> Vec<Line> {
        self.0.lock().iter().cloned().collect()
    }
}
