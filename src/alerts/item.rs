//! One item of a decision, and the order that it becomes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::memory::Hold;
use super::rule::Remedy;
use crate::actions::{Action, Order, Seen, Subject};

/// One item that is to be done something to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Item {
    /// Which, as a [`Subject`] is written.
    pub(super) on: String,
    /// The version of its status when it was chosen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) version: Option<i32>,
    /// Of a hold that is taken back, when it was made, as it says itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) since: Option<Timestamp>,
}

impl Item {
    pub(super) fn new(subject: &Subject, version: Option<i32>) -> Self {
        Self { on: subject.to_string(), version, since: None }
    }

    /// A hold that is taken back.
    pub(super) fn hold(hold: &Hold) -> Self {
        let on = Subject::Collection(hold.collection.as_str().into()).to_string();
        Self { on, version: None, since: Some(hold.since) }
    }

    /// What it is about; `None` for what nobody of us wrote.
    pub(super) fn subject(&self) -> Option<Subject> {
        self.on.parse().ok()
    }

    /// The collection that it is.
    pub(super) fn collection(&self) -> Option<String> {
        match self.subject()? {
            Subject::Collection(mnemonic) => Some(mnemonic.into()),
            Subject::Job(_)
            | Subject::Batch(_)
            | Subject::Request(..)
            | Subject::Queue(_)
            | Subject::Lock(_)
            | Subject::Fault(..)
            | Subject::Batches => None,
        }
    }

    /// The order that does it.
    pub(super) fn order(&self, remedy: Remedy, subject: Subject) -> Order {
        let seen = self.version.map(|version| Seen { version: Some(version), ..Seen::default() });
        Order { seen, ..Order::new(remedy.action(), subject) }
    }

    /// The order that takes it back, exactly what `who` made.
    pub(super) fn undoing(&self, who: &str, subject: Subject) -> Order {
        let hold = self.since.filter(|_| matches!(subject, Subject::Collection(_)));
        let hold = hold.map(|since| (who.into(), since));
        let seen = Seen { version: self.version, hold, ..Seen::default() };
        Order { seen: Some(seen), ..Order::new(Action::Release, subject) }
    }
}
