//! A decision that was accepted: a znode with what is to be done and its progress.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::item::DecisionItem;
use super::payload::Alert;
use super::rule::{Narrow, Rule};
use crate::actions::audit::ActionId;
use crate::actions::{Fault, JobState, State as _};
use crate::words::moment;

/// The alert that caused a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Trigger {
    pub(super) alert: String,
    pub(super) fingerprint: String,
    pub(super) starts_at: Timestamp,
}

impl Trigger {
    pub(super) fn of(alert: &Alert) -> Self {
        let Alert { fingerprint, starts_at, .. } = alert;
        Self { alert: alert.name().to_owned(), fingerprint: fingerprint.clone(), starts_at: *starts_at }
    }
}

/// The values to which an alert narrows a rule.
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
    /// The scope from the labels of an alert; `Err` with the label whose value the rule does not select.
    pub(super) fn of(rule: &Rule, alert: &Alert) -> Result<Self, Narrow> {
        let mut scope = Self::default();
        for narrow in &rule.narrow_by {
            let Some(value) = alert.labels.get(narrow.label()) else { continue };
            let select = &rule.select;
            let is_one = match narrow {
                Narrow::State => select.states.iter().any(|state| state.label() == value),
                Narrow::Fault => select.faults.iter().any(|fault| fault.label() == value),
                // Whether the collection exists is checked in the mirror.
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

    /// The key of the scope in a rule's state.
    pub(super) fn key(&self) -> String {
        let parts = [("state", &self.state), ("collection", &self.collection), ("fault", &self.fault)];
        let parts = parts.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        parts.collect::<Vec<_>>().join(",")
    }
}

/// The kind of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DecisionKind {
    /// Executes the rule.
    Act,
    /// Releases what the rule holds.
    Undo,
}

/// The items of a decision, frozen when its execution starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ItemList {
    /// The items that remain.
    pub(super) items: VecDeque<DecisionItem>,
    /// How many were done.
    pub(super) done: usize,
    /// The first hundred of those.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(super) did: Vec<String>,
    /// How many were skipped because they had changed.
    pub(super) passed: usize,
    /// How many the rule would have taken without its limits.
    pub(super) of: usize,
    /// What limited the list.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) limited: Option<String>,
    /// When releasing: since when each collection was held.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub(super) held_from: BTreeMap<String, Timestamp>,
}

impl ItemList {
    /// The result in words.
    pub(super) fn in_words(&self, what: &str) -> String {
        let passed = if self.passed > 0 { format!(", {} skipped (changed)", self.passed) } else { String::new() };
        let limited = self.limited.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
        format!("{what} {} of {}{passed}{limited}", self.done, self.of)
    }

    /// The first of the items that were done.
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

/// An accepted decision, stored as JSON in its znode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub(super) id: ActionId,
    pub(super) kind: DecisionKind,
    pub(super) rule: String,
    pub(super) cause: Trigger,
    pub(super) scope: Scope,
    /// When it was accepted.
    pub(super) at: Timestamp,
    /// Its items; `None` before its execution starts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) list: Option<ItemList>,
    /// How often it failed.
    #[serde(default)]
    pub(super) failures: u32,
    /// When it is retried.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) not_before: Option<Timestamp>,
}

impl Decision {
    pub(super) fn new(kind: DecisionKind, rule: &Rule, cause: Trigger, scope: Scope, now: Timestamp) -> Self {
        let id = ActionId::new(now);
        Self { id, kind, rule: rule.name.clone(), cause, scope, at: now, list: None, failures: 0, not_before: None }
    }

    /// The name of its znode. Decisions that must not be pending at once share a name: those of a rule on one scope,
    /// and the releases of a rule.
    pub(super) fn name(&self) -> String {
        match self.kind {
            DecisionKind::Act => act_name(&self.rule, &self.scope),
            DecisionKind::Undo => format!("{}.undo", self.rule),
        }
    }

    /// Parses a decision.
    ///
    /// # Errors
    /// When the data is not a decision of this version.
    pub(super) fn read(data: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(data)
    }

    pub(super) fn data(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a decision holds texts and numbers only")
    }

    /// Whether something of it was done, or may have been.
    pub(super) fn is_started(&self) -> bool {
        self.list.is_some()
    }

    /// The reason for its actions.
    pub(super) fn reason(&self) -> String {
        let Trigger { alert, fingerprint, starts_at } = &self.cause;
        let what = match self.kind {
            DecisionKind::Act => "firing",
            DecisionKind::Undo => "resolved; was firing",
        };
        let since = moment(*starts_at);
        format!("alert {alert} ({fingerprint}), {what} since {since}; rule {}", self.rule)
    }
}

/// The name of the znode of a rule's decision on a scope.
pub(super) fn act_name(rule: &str, scope: &Scope) -> String {
    format!("{rule}.act.{}", hash(&scope.key()))
}

/// A hash of any text, as a part of a znode's name.
fn hash(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    digest.as_ref()[..8].iter().fold(String::new(), |mut name, byte| {
        write!(name, "{byte:02x}").expect("writing to a String does not fail");
        name
    })
}
