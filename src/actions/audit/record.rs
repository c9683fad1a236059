//! The records of the audit trail.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::actions::actor::{Actor, Source};
use crate::actions::parameters::WrittenParameters;
use crate::actions::reason::Reason;

/// How many targets one record of the audit trail has.
pub(in crate::actions) const TARGETS_PER_RECORD: usize = 1_000;

/// The id of an action: a UUID version 7, so that ids sort by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActionId(Uuid);

impl ActionId {
    /// A new id that sorts by `now`.
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

/// A record, which is one line of JSON. Times are RFC 3339 in UTC, durations in seconds, states by their labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// An action was requested; nothing of it is executed yet.
    Requested {
        /// The action's id.
        id: ActionId,
        /// When it was requested.
        at: Timestamp,
        /// The name of the user, token or rule, or `user@host`.
        actor: String,
        /// The actor's role.
        role: String,
        /// The interface used: `web`, `api`, `alert` or `cli`.
        source: String,
        /// The client's address.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        from: Option<String>,
        /// The action.
        action: String,
        /// Its targets; of a bulk action, up to a thousand for each record.
        targets: Vec<String>,
        /// How many targets there are in all records.
        count: u64,
        /// The actor's reason.
        reason: String,
        /// The state before, or, where the priority is changed, that, as `priority 5`; not in a bulk action.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        before: Option<String>,
        /// The state or priority after.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        after: Option<String>,
        /// Of a bulk action: the state or priority before, of each target of this record.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        before_each: Vec<String>,
        /// The parameters.
        #[serde(flatten)]
        parameters: WrittenParameters,
        /// The planned writes, in words; not in a bulk action.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        operations: Vec<String>,
        /// Of a rule: the decision that it belongs to, which has records of its own.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        decision: Option<ActionId>,
    },
    /// Further items are about to be changed, or items of a list in a way that the request does not show: the jobs of a
    /// batch, or what a bulk repair writes and replaces. If the process ends before the outcome is recorded, this and
    /// the znodes show what was done.
    Started {
        /// The action's id.
        id: ActionId,
        /// When it was recorded.
        at: Timestamp,
        /// The items, up to a thousand for each record.
        targets: Vec<String>,
        /// The state of each before; empty if not known.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        before_each: Vec<String>,
        /// Of a repair: the planned writes, in words, and the data that they replace.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        operations: Vec<String>,
        /// Whether a rule requested the action.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        by_alert: bool,
    },
    /// The outcome of an action, or of one target of a bulk action.
    Outcome {
        /// The action's id.
        id: ActionId,
        /// When it finished.
        at: Timestamp,
        /// The target of a bulk action; absent for the outcome of the whole action.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        target: Option<String>,
        /// `done`, `failed` or another outcome.
        outcome: String,
        /// Why it failed, or how many items were done.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        detail: Option<String>,
        /// The state before, or, where the priority is changed, that, as it was just before the change.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        before: Option<String>,
        /// The state or priority after.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        after: Option<String>,
        /// Who cancelled it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cancelled_by: Option<String>,
        /// How long it took.
        duration_seconds: f64,
        /// Whether a rule requested the action, whose records have a file of their own.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        by_alert: bool,
    },
    /// A call of Alertmanager and the decisions about it. Alerts that match no rule are only counted.
    Alerts {
        /// The call's id.
        id: ActionId,
        /// When it was received.
        at: Timestamp,
        /// The name of the token used.
        actor: String,
        /// The client's address.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        from: Option<String>,
        /// The name of the receiver in Alertmanager.
        receiver: String,
        /// The labels by which the alerts are grouped.
        group: String,
        /// How many alerts Alertmanager omitted.
        truncated: u64,
        /// How many alerts match no rule.
        unmatched: u64,
        /// The decisions that change something, or would in a dry run.
        decisions: Vec<Decided>,
        /// How many decisions change nothing; the next sum counts them.
        #[serde(default)]
        more: u64,
    },
    /// The sum of Alertmanager calls that change nothing.
    AlertsUnchanged {
        /// The id of this sum.
        id: ActionId,
        /// The end of the period.
        at: Timestamp,
        /// The start of the period.
        since: Timestamp,
        /// The name of the token used.
        actor: String,
        /// How many calls changed nothing.
        calls: u64,
        /// How many alerts match no rule.
        unmatched: u64,
        /// How many alerts Alertmanager omitted.
        truncated: u64,
        /// The decisions about the others.
        decisions: Vec<Counted>,
        /// How many decisions of further kinds there were.
        others: u64,
    },
    /// Every action before this line has an outcome.
    Settled {
        /// The id of this record.
        id: ActionId,
        /// When it was recorded.
        at: Timestamp,
    },
    /// A decision was executed or abandoned; its actions have records of their own.
    Decision {
        /// The decision's id.
        id: ActionId,
        /// When it finished.
        at: Timestamp,
        /// The rule, the alert and the outcome.
        #[serde(flatten)]
        decided: Decided,
    },
}

/// What a rule decided about an alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The rule.
    pub rule: String,
    /// The alert's name.
    pub alert: String,
    /// Alertmanager's hash of its labels.
    pub fingerprint: String,
    /// Since when the alert is firing.
    pub starts_at: Timestamp,
    /// `firing` or `resolved`.
    pub status: String,
    /// The outcome; `accepted` if it is to be executed.
    pub outcome: String,
    /// The outcome in words.
    pub detail: String,
    /// The rule's selector, as `states=failed max_retries=2 limit=20`.
    #[serde(default)]
    pub selector: String,
    /// The targets, or, in a dry run, those that would have been; a hundred at most.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub targets: Vec<String>,
}

/// How an action, or one target of a bulk action, finished: what [`Record::outcome`] records.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// The target of a bulk action; `None` for the whole action.
    pub target: Option<String>,
    /// The label of the outcome.
    pub outcome: &'static str,
    /// Why it failed, or how many items were done.
    pub detail: Option<String>,
    /// What is changed, before.
    pub before: Option<String>,
    /// What is changed, after.
    pub after: Option<String>,
    /// Who cancelled it.
    pub cancelled_by: Option<String>,
}

/// How often a rule decided the same without changing anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The rule.
    pub rule: String,
    /// The outcome.
    pub outcome: String,
    /// How often.
    pub count: u64,
    /// The detail of the most recent one.
    pub detail: String,
}

impl Record {
    /// The record of a requested action, as yet without its targets and parameters.
    #[must_use]
    pub fn requested(id: ActionId, at: Timestamp, actor: &Actor, action: &str, reason: &Reason) -> Self {
        Self::Requested {
            id,
            at,
            actor: actor.name.clone(),
            role: actor.role.label().to_owned(),
            source: actor.source.label().to_owned(),
            from: actor.from.map(|from| from.to_string()),
            action: action.to_owned(),
            targets: Vec::new(),
            count: 0,
            reason: reason.to_string(),
            before: None,
            after: None,
            before_each: Vec::new(),
            parameters: WrittenParameters::default(),
            operations: Vec::new(),
            decision: None,
        }
    }

    /// The same, on these targets: all that the action has.
    #[must_use]
    pub fn on(mut self, all: Vec<String>) -> Self {
        if let Self::Requested { targets, count, .. } = &mut self {
            (*count, *targets) = (all.len() as u64, all);
        }
        self
    }

    /// The same, with the state of each target before, and what is to be done, in words.
    #[must_use]
    pub(in crate::actions) fn with(mut self, states: Vec<String>, words: Vec<String>) -> Self {
        if let Self::Requested { before_each, operations, .. } = &mut self {
            (*before_each, *operations) = (states, words);
        }
        self
    }

    /// The same, with the state of its only target, before and after.
    #[must_use]
    pub(in crate::actions) fn between(mut self, from: Option<String>, to: Option<String>) -> Self {
        if let Self::Requested { before, after, .. } = &mut self {
            (*before, *after) = (from, to);
        }
        self
    }

    /// The same, as a part of this decision of a rule.
    #[must_use]
    pub fn of_decision(mut self, id: ActionId) -> Self {
        if let Self::Requested { decision, .. } = &mut self {
            *decision = Some(id);
        }
        self
    }

    /// The record of an outcome of an action that this source requested.
    #[must_use]
    pub fn outcome(id: ActionId, at: Timestamp, source: Source, duration: Duration, finished: Finished) -> Self {
        let Finished { target, outcome, detail, before, after, cancelled_by } = finished;
        Self::Outcome {
            id,
            at,
            target,
            outcome: outcome.to_owned(),
            detail,
            before,
            after,
            cancelled_by,
            duration_seconds: duration.as_secs_f64(),
            by_alert: source == Source::Alert,
        }
    }

    /// The action's id.
    #[must_use]
    pub fn id(&self) -> ActionId {
        match self {
            Self::Requested { id, .. }
            | Self::Started { id, .. }
            | Self::Outcome { id, .. }
            | Self::Alerts { id, .. }
            | Self::AlertsUnchanged { id, .. }
            | Self::Settled { id, .. }
            | Self::Decision { id, .. } => *id,
        }
    }

    /// Whether it belongs in the file for alerts, as actions of rules do.
    pub(super) fn is_caused_by_alerts(&self) -> bool {
        match self {
            Self::Alerts { .. } | Self::AlertsUnchanged { .. } | Self::Decision { .. } => true,
            Self::Requested { source, .. } => source == Source::Alert.label(),
            Self::Started { by_alert, .. } | Self::Outcome { by_alert, .. } => *by_alert,
            Self::Settled { .. } => false,
        }
    }

    /// The record as a line, with the newline, and with the name of its queue where one server serves several.
    pub(super) fn line(&self, deployment: Option<&str>) -> String {
        #[derive(Serialize)]
        struct RecordLine<'a> {
            #[serde(flatten)]
            record: &'a Record,
            #[serde(skip_serializing_if = "Option::is_none")]
            deployment: Option<&'a str>,
        }
        let line = RecordLine { record: self, deployment };
        let mut line = serde_json::to_string(&line).expect("a record holds texts and numbers only");
        line.push('\n');
        line
    }

    /// Parses a line; `None` if it is not a record, such as one that a power failure cut short.
    pub(super) fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}
