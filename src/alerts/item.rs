//! One item of a decision, and its action.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::memory::RuleHold;
use super::rule::RuleAction;
use crate::actions::{Action, ActionKind, ActionParameters, Precondition, Refusal, Target};

/// An item of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DecisionItem {
    /// The target, as text.
    pub(super) on: String,
    /// The version of its status when it was selected.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) version: Option<i32>,
    /// For the release of a hold: when the hold was made, as in its data.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) since: Option<Timestamp>,
}

impl DecisionItem {
    pub(super) fn new(target: &Target, version: Option<i32>) -> Self {
        Self { on: target.to_string(), version, since: None }
    }

    /// The release of a hold.
    pub(super) fn hold(hold: &RuleHold) -> Self {
        let on = Target::Collection(hold.collection.as_str().into()).to_string();
        Self { on, version: None, since: Some(hold.since) }
    }

    /// The target; `None` if the text is not one.
    pub(super) fn target(&self) -> Option<Target> {
        self.on.parse().ok()
    }

    /// The mnemonic, if the target is a collection.
    pub(super) fn collection(&self) -> Option<String> {
        match self.target()? {
            Target::Collection(mnemonic) => Some(mnemonic.into()),
            Target::Job(_)
            | Target::Batch(_)
            | Target::Request(..)
            | Target::Queue(_)
            | Target::Store(_)
            | Target::Lock(_)
            | Target::Fault(..)
            | Target::Batches => None,
        }
    }

    /// The rule's action on it.
    pub(super) fn action(&self, action: RuleAction, target: Target) -> Result<Action, Refusal> {
        Ok(Action::new(action.kind(), target, ActionParameters::default())?.at_version(self.version))
    }

    /// The release of a hold, provided that `who` made it.
    pub(super) fn undoing(&self, who: &str, target: Target) -> Result<Action, Refusal> {
        let hold = self.since.filter(|_| matches!(target, Target::Collection(_)));
        let hold = hold.map(|since| (who.into(), since));
        let precondition = Precondition { version: self.version, hold, ..Precondition::default() };
        Ok(Action::new(ActionKind::Release, target, ActionParameters::default())?.only_if(Some(precondition)))
    }
}
