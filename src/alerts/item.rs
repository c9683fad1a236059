//! One item of a decision, and the action that it becomes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::memory::Hold;
use super::rule::Remedy;
use crate::actions::{Action, ActionKind, ActionParameters, Precondition, Refusal, Target};

/// One item that is to be done something to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Item {
    /// Which, as a [`Target`] is written.
    pub(super) on: String,
    /// The version of its status when it was chosen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) version: Option<i32>,
    /// Of a hold that is taken back, when it was made, as it says itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) since: Option<Timestamp>,
}

impl Item {
    pub(super) fn new(target: &Target, version: Option<i32>) -> Self {
        Self { on: target.to_string(), version, since: None }
    }

    /// A hold that is taken back.
    pub(super) fn hold(hold: &Hold) -> Self {
        let on = Target::Collection(hold.collection.as_str().into()).to_string();
        Self { on, version: None, since: Some(hold.since) }
    }

    /// What it is about; `None` for what nobody of us wrote.
    pub(super) fn target(&self) -> Option<Target> {
        self.on.parse().ok()
    }

    /// The collection that it is.
    pub(super) fn collection(&self) -> Option<String> {
        match self.target()? {
            Target::Collection(mnemonic) => Some(mnemonic.into()),
            Target::Job(_)
            | Target::Batch(_)
            | Target::Request(..)
            | Target::Queue(_)
            | Target::Lock(_)
            | Target::Fault(..)
            | Target::Batches => None,
        }
    }

    /// The action that does it.
    pub(super) fn action(&self, remedy: Remedy, target: Target) -> Result<Action, Refusal> {
        Ok(Action::new(remedy.action(), target, ActionParameters::default())?.at_version(self.version))
    }

    /// The action that takes it back, exactly what `who` made.
    pub(super) fn undoing(&self, who: &str, target: Target) -> Result<Action, Refusal> {
        let hold = self.since.filter(|_| matches!(target, Target::Collection(_)));
        let hold = hold.map(|since| (who.into(), since));
        let precondition = Precondition { version: self.version, hold, ..Precondition::default() };
        Ok(Action::new(ActionKind::Release, target, ActionParameters::default())?.only_if(Some(precondition)))
    }
}
