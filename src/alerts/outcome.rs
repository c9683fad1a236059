//! The outcomes of an alert.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! outcomes {
    ($( $(#[$doc:meta])* $outcome:ident $label:literal, )+) => {
        /// The outcome of an alert.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum AlertOutcome { $( $(#[$doc])* $outcome, )+ }

        impl AlertOutcome {
            /// Every outcome.
            pub const ALL: [Self; [$($label),+].len()] = [$(Self::$outcome),+];

            /// The name in the audit file, and the label value.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self { $(Self::$outcome => $label),+ }
            }
        }
    };
}

outcomes! {
    /// The rule acted.
    Executed "executed",
    /// The rule is in dry run, and would have acted.
    DryRun "dry_run",
    /// The same was decided already, or just now.
    Duplicate "duplicate",
    /// The rule has acted on the same scope within its cooldown.
    Cooldown "cooldown",
    /// The budget is used up; the rule's breaker opens.
    Budget "budget",
    /// The rule's breaker is open.
    BreakerOpen "breaker_open",
    /// All items reached the limit of attempts: they are left to a user.
    GaveUp "gave_up",
    /// Automatic actions are paused.
    Paused "paused",
    /// No item is selected, or all had changed.
    NothingToDo "nothing_to_do",
    /// The mirror is not up to date.
    NotSynced "not_synced",
    /// No rule matches it, or its labels narrow the rule to nothing.
    NoMatch "no_match",
    /// The alert is resolved.
    Resolved "resolved",
    /// The call is not a supported message of Alertmanager.
    Invalid "invalid",
    /// The caller is not authorized.
    Unauthorized "unauthorized",
    /// Too many decisions are pending.
    QueueFull "queue_full",
    /// The actions failed.
    Failed "failed",
    /// Whether the actions were executed is not known.
    Unknown "unknown",
}

impl fmt::Display for AlertOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}
