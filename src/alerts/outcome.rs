//! What can come of an alert.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! outcomes {
    ($( $(#[$doc:meta])* $outcome:ident $label:literal, )+) => {
        /// What came of an alert: a closed list.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Outcome { $( $(#[$doc])* $outcome, )+ }

        impl Outcome {
            /// Every outcome.
            pub const ALL: [Self; [$($label),+].len()] = [$(Self::$outcome),+];

            /// The name in the audit file, which is also the label value.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self { $(Self::$outcome => $label),+ }
            }
        }
    };
}

outcomes! {
    /// Something was done.
    Executed "executed",
    /// It was told what would have been done.
    DryRun "dry_run",
    /// The same is decided already, or was just now.
    Duplicate "duplicate",
    /// The rule has just acted on the same.
    Cooldown "cooldown",
    /// The rule may not do more for now; its breaker opens.
    Budget "budget",
    /// The rule's breaker is open.
    BreakerOpen "breaker_open",
    /// All that could be done was tried often enough: it is left to a person.
    GaveUp "gave_up",
    /// All automatic action is paused.
    Paused "paused",
    /// The condition does not hold, or nothing is left of it.
    NothingToDo "nothing_to_do",
    /// The image of the queue is behind, and cannot be acted upon.
    NotSynced "not_synced",
    /// No rule names it, or it narrows one to what there is not.
    NoMatch "no_match",
    /// It is over.
    Resolved "resolved",
    /// The call is no message of Alertmanager that we know.
    Invalid "invalid",
    /// Whoever called may not.
    Unauthorized "unauthorized",
    /// Too many decisions wait.
    QueueFull "queue_full",
    /// It could not be done.
    Failed "failed",
    /// Whether it was done is not known.
    Unknown "unknown",
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}
