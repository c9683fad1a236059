//! What a rule decides about an alert, or why it does not act.

use super::outcome::AlertOutcome;

/// Why a rule does not act now, with the detail in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) outcome: AlertOutcome,
    pub(super) why: String,
    /// The items that are left to a user.
    pub(super) left: Vec<String>,
}

impl Stop {
    pub(super) fn new(outcome: AlertOutcome, why: impl Into<String>) -> Self {
        Self { outcome, why: why.into(), left: Vec::new() }
    }
}

/// What a rule decides about an alert.
#[derive(Clone)]
pub(super) struct Evaluation {
    /// `None` if it is accepted; its outcome is counted when it has been executed.
    pub(super) outcome: Option<AlertOutcome>,
    pub(super) detail: String,
    pub(super) targets: Vec<String>,
    /// Whether it changes something, or would in a dry run. It then has a record of its own; other decisions are only
    /// counted.
    pub(super) changes: bool,
}

impl From<Stop> for Evaluation {
    fn from(stop: Stop) -> Self {
        Self { outcome: Some(stop.outcome), detail: stop.why, targets: Vec::new(), changes: false }
    }
}
