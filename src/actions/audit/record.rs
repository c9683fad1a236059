//! The lines of an action.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::tally::Counted;
use crate::actions::actor::Source;

/// What an action is known by: a UUID of version 7, so that ids sort by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActionId(Uuid);

impl ActionId {
    /// A new one. `now` is the instant that it sorts by.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        let seconds = u64::try_from(now.as_second()).unwrap_or(0);
        let nanoseconds = u32::try_from(now.subsec_nanosecond()).unwrap_or(0);
        let context = uuid::ContextV7::new();
        Self(Uuid::new_v7(uuid::Timestamp::from_unix(&context, seconds, nanoseconds)))
    }
}

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ActionId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

/// A line of the audit trail. Times are RFC 3339 in UTC, durations in seconds, states by their labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// Somebody requested something, and nothing of it is done yet.
    Requested {
        /// The action's id.
        id: ActionId,
        /// When.
        at: Timestamp,
        /// Who: a user, a token, a rule, or `user@host`.
        actor: String,
        /// His role.
        role: String,
        /// By what means: `web`, `api`, `alert` or `cli`.
        source: String,
        /// The address that he asked from.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        from: Option<String>,
        /// What is to be done.
        action: String,
        /// To what; of many, the first thousand of one line.
        targets: Vec<String>,
        /// To how many in all.
        count: u64,
        /// Why.
        reason: String,
        /// The state before, or the priority where that is changed, as `priority 5`; not for many.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        before: Option<String>,
        /// The same after.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        after: Option<String>,
        /// Of an action over many: the same before, of each target of this line.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        before_each: Vec<String>,
        /// Where jobs are to be resumed, where the action names a state.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        to: Option<String>,
        /// The priority to set.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        priority: Option<u8>,
        /// Whether it was to be done also where it is refused as a rule.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        force: bool,
        /// Whether the held jobs of a collection were to be released with it.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        with_jobs: bool,
        /// What will be written, in words; not for many.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        operations: Vec<String>,
    },
    /// What of an action is about to be changed, and is not named by its first lines, or not as it is: the jobs of a
    /// batch, or what a repair of many writes and replaces. Should the process end before the outcome is written, this
    /// and the tree tell what was done.
    Begun {
        /// The action's id.
        id: ActionId,
        /// When.
        at: Timestamp,
        /// What is about to be changed, a thousand in one line.
        targets: Vec<String>,
        /// The state of each of them before; empty where that is not known.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        before_each: Vec<String>,
        /// What will be written, in words, and the data that it replaces; for a repair.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        operations: Vec<String>,
        /// Whether an alert set the action off.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        by_alert: bool,
    },
    /// What came of it, or of one of its targets.
    Outcome {
        /// The action's id.
        id: ActionId,
        /// When.
        at: Timestamp,
        /// Which of many targets it is about; absent where it is about all.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        target: Option<String>,
        /// `done`, `failed` and its like.
        outcome: String,
        /// What stood against it, or how many were done.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        detail: Option<String>,
        /// The state before, or the priority where that was changed, as it was read just before.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        before: Option<String>,
        /// The same after.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        after: Option<String>,
        /// Who ended it before it was whole.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cancelled_by: Option<String>,
        /// How long it took.
        duration_seconds: f64,
        /// Whether an alert set the action off: the line stands beside that of the action.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        by_alert: bool,
    },
    /// Alertmanager called, and what was decided. An alert that no rule names is only counted.
    Alerts {
        /// The call's id.
        id: ActionId,
        /// When.
        at: Timestamp,
        /// Who called: the name of the token.
        actor: String,
        /// The address that it called from.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        from: Option<String>,
        /// The receiver of Alertmanager.
        receiver: String,
        /// What the alerts are grouped by.
        group: String,
        /// How many alerts Alertmanager left out.
        truncated: u64,
        /// How many no rule names.
        unmatched: u64,
        /// What was decided of each of the others by which something changes, or would in a dry run.
        decisions: Vec<Decided>,
        /// How many there were besides, by which nothing changes: they are in the next sum.
        #[serde(default)]
        more: u64,
    },
    /// Calls of Alertmanager by which nothing changed, summed up.
    AlertsUnchanged {
        /// The id of this sum.
        id: ActionId,
        /// When.
        at: Timestamp,
        /// Since when.
        since: Timestamp,
        /// Who called: the name of the token.
        actor: String,
        /// How many calls changed nothing at all.
        calls: u64,
        /// How many alerts no rule names.
        unmatched: u64,
        /// How many alerts Alertmanager left out.
        truncated: u64,
        /// What was decided of the others.
        decisions: Vec<Counted>,
        /// How many decisions of yet other kinds there were.
        others: u64,
    },
    /// Every action before this line has an outcome.
    Settled {
        /// The id of this note.
        id: ActionId,
        /// When.
        at: Timestamp,
    },
    /// A decision was carried out, or given up; the actions that it gave have lines of their own.
    Decision {
        /// The decision's id.
        id: ActionId,
        /// When.
        at: Timestamp,
        /// By which rule, about which alert, and what came of it.
        #[serde(flatten)]
        decided: Decided,
    },
}

/// What a rule decided of an alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The rule.
    pub rule: String,
    /// The alert's name, as the rule names it.
    pub alert: String,
    /// Alertmanager's hash of its labels.
    pub fingerprint: String,
    /// Since when it is on.
    pub starts_at: Timestamp,
    /// Whether it is on: `firing` or `resolved`.
    pub status: String,
    /// What came of it; `accepted` where it is to be carried out.
    pub outcome: String,
    /// In words.
    pub detail: String,
    /// On what the rule acts, as `states=failed max_retries=2 limit=20`.
    #[serde(default)]
    pub selector: String,
    /// What it was done to, or would have been in a dry run; a hundred at most.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub targets: Vec<String>,
}

impl Record {
    /// The action's id.
    #[must_use]
    pub fn id(&self) -> ActionId {
        match self {
            Self::Requested { id, .. }
            | Self::Begun { id, .. }
            | Self::Outcome { id, .. }
            | Self::Alerts { id, .. }
            | Self::AlertsUnchanged { id, .. }
            | Self::Settled { id, .. }
            | Self::Decision { id, .. } => *id,
        }
    }

    /// Whether alerts brought it about, actions of rules included, and no person.
    pub(super) fn is_of_alerts(&self) -> bool {
        match self {
            Self::Alerts { .. } | Self::AlertsUnchanged { .. } | Self::Decision { .. } => true,
            Self::Requested { source, .. } => source == Source::Alert.label(),
            Self::Begun { by_alert, .. } | Self::Outcome { by_alert, .. } => *by_alert,
            Self::Settled { .. } => false,
        }
    }

    /// Its line, with the end of the line.
    pub(super) fn line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("a record holds texts and numbers only");
        line.push('\n');
        line
    }

    /// Reads a line; `None` for what is none, such as one that was cut when the power failed.
    pub(super) fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}
