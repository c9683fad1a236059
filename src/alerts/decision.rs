//! A decision that was accepted: a znode that says what is to be done, and how far it is.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::item::Item;
use super::payload::Alert;
use super::rule::{Narrow, Rule};
use crate::actions::audit::ActionId;
use crate::actions::{Fault, JobState, State as _};

/// The alert that a decision is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cause {
    pub(super) alert: String,
    pub(super) fingerprint: String,
    pub(super) starts_at: Timestamp,
}

impl Cause {
    pub(super) fn of(alert: &Alert) -> Self {
        let Alert { fingerprint, starts_at, .. } = alert;
        Self { alert: alert.name().to_owned(), fingerprint: fingerprint.clone(), starts_at: *starts_at }
    }
}

/// To what an alert narrows a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Scope {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) collection: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) fault: Option<String>,
}

impl Scope {
    /// What the labels of an alert narrow a rule to; `Err` with the label that names what the rule has not.
    pub(super) fn of(rule: &Rule, alert: &Alert) -> Result<Self, Narrow> {
        let mut scope = Self::default();
        for narrow in &rule.narrow_by {
            let Some(value) = alert.labels.get(narrow.label()) else { continue };
            let select = &rule.select;
            let is_one = match narrow {
                Narrow::State => select.states.iter().any(|state| state.label() == value),
                Narrow::Fault => select.faults.iter().any(|fault| fault.label() == value),
                // Whether there is one is looked for in the image.
                Narrow::Collection => select.collections.is_empty() || select.collections.contains(value),
            };
            if !is_one {
                return Err(*narrow);
            }
            let place = match narrow {
                Narrow::State => &mut scope.state,
                Narrow::Fault => &mut scope.fault,
                Narrow::Collection => &mut scope.collection,
            };
            *place = Some(value.clone());
        }
        Ok(scope)
    }

    pub(super) fn has_state(&self, state: JobState) -> bool {
        self.state.as_deref().is_none_or(|only| state.label() == only)
    }

    pub(super) fn has_fault(&self, fault: Fault) -> bool {
        self.fault.as_deref().is_none_or(|only| fault.label() == only)
    }

    /// What tells it from others, in a memory.
    pub(super) fn key(&self) -> String {
        let parts = [("state", &self.state), ("collection", &self.collection), ("fault", &self.fault)];
        let parts = parts.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        parts.collect::<Vec<_>>().join(",")
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// What the rule does.
    Act,
    /// Taking back what it did.
    Undo,
}

/// The items of a decision, frozen when it was begun.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct List {
    /// The items that are still to come.
    pub(super) items: VecDeque<Item>,
    /// How many were done.
    pub(super) done: usize,
    /// Which, the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(super) did: Vec<String>,
    /// How many were not done, since they had changed.
    pub(super) passed: usize,
    /// How many there were that the rule would have taken without its limits.
    pub(super) of: usize,
    /// What kept it from taking all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) limited: Option<String>,
    /// Of what is taken back: since when each collection was held.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub(super) held_from: BTreeMap<String, Timestamp>,
}

impl List {
    /// How far it came, in words.
    pub(super) fn in_words(&self, what: &str) -> String {
        let passed = if self.passed > 0 { format!(", {} had changed", self.passed) } else { String::new() };
        let limited = self.limited.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
        format!("{what} {} of {}{passed}{limited}", self.done, self.of)
    }

    /// The first of those that were done.
    pub(super) fn named(&self) -> String {
        const SHOWN: usize = 3;
        let shown: Vec<_> = self.did.iter().take(SHOWN).map(|on| on.trim_start_matches("collection:")).collect();
        match (shown.is_empty(), self.done > SHOWN) {
            (true, _) => String::new(),
            (false, true) => format!(": {} and {} more", shown.join(", "), self.done - SHOWN),
            (false, false) => format!(": {}", shown.join(", ")),
        }
    }
}

/// A decision that was accepted, as JSON in its znode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub(super) id: ActionId,
    pub(super) kind: Kind,
    pub(super) rule: String,
    pub(super) cause: Cause,
    pub(super) scope: Scope,
    /// When it was accepted.
    pub(super) at: Timestamp,
    /// Its items; `None` before it is begun.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) list: Option<List>,
    /// How often it failed.
    #[serde(default)]
    pub(super) failures: u32,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) not_before: Option<Timestamp>,
}

impl Decision {
    pub(super) fn new(kind: Kind, rule: &Rule, cause: Cause, scope: Scope, now: Timestamp) -> Self {
        let id = ActionId::new(now);
        Self { id, kind, rule: rule.name.clone(), cause, scope, at: now, list: None, failures: 0, not_before: None }
    }

    /// The name of its znode. What must not be decided twice at once has the same: a rule on a scope, and the undoing
    /// of what a rule did.
    pub(super) fn name(&self) -> String {
        match self.kind {
            Kind::Act => act_name(&self.rule, &self.scope),
            Kind::Undo => format!("{}.undo", self.rule),
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// When it is none: somebody wrote it by hand, or a later version did.
    pub(super) fn read(data: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(data)
    }

    pub(super) fn data(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a decision holds texts and numbers only")
    }

    /// Whether something of it was done, or may have been.
    pub(super) fn is_begun(&self) -> bool {
        self.list.is_some()
    }

    /// Why it is done, as actions and status messages say it.
    pub(super) fn reason(&self) -> String {
        let Cause { alert, fingerprint, starts_at } = &self.cause;
        let what = match self.kind {
            Kind::Act => "firing",
            Kind::Undo => "resolved, which fired",
        };
        format!("alert {alert} ({fingerprint}), {what} since {starts_at:.0}; rule {}", self.rule)
    }
}

/// The name of the znode of a rule's decision on a scope.
pub(super) fn act_name(rule: &str, scope: &Scope) -> String {
    format!("{rule}.act.{}", hash(&scope.key()))
}

/// A text as a part of a znode's name, whatever it holds.
fn hash(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    digest.as_ref()[..8].iter().fold(String::new(), |mut name, byte| {
        write!(name, "{byte:02x}").expect("writing to a String does not fail");
        name
    })
}
