//! An action: what is to be done, to what, and what its caller saw of it.

use std::fmt;

use jiff::Timestamp;

use super::kind::{ActionKind, Target};
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::state::JobState;

/// How long a reason may be, in characters.
const LONGEST_REASON: usize = 500;

/// What is to be done, to what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What is to be done.
    pub kind: ActionKind,
    /// To what.
    pub target: Target,
    /// What its operator saw; the action is refused where that has changed. `None` for whatever there is.
    pub precondition: Option<Precondition>,
    /// Where a job is to be resumed; `None` for the state after its last successful one.
    pub to: Option<JobState>,
    /// The priority to set.
    pub priority: Option<Priority>,
    /// Does it also where it is refused as a rule: breaks a lock that is no fault, releases a batch of a held
    /// collection.
    pub force: bool,
    /// Releases the held jobs of a collection with it.
    pub with_jobs: bool,
}

impl Action {
    /// An action on whatever state its target is in.
    #[must_use]
    pub fn new(kind: ActionKind, target: Target) -> Self {
        Self { kind, target, precondition: None, to: None, priority: None, force: false, with_jobs: false }
    }
}

/// What an operator saw of a target. What is not given is not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// The label of its state.
    pub state: Option<Box<str>>,
    /// The version of its `status`.
    pub version: Option<i32>,
    /// The transaction that made it, where it is a lock: locks have no versions.
    pub czxid: Option<i64>,
    /// What was planned, as a number, where its target is more than one znode: a fault to be repaired, all batches that are
    /// done with. It is another where something else would be written or lost.
    pub plan: Option<u64>,
    /// By whom and when it was made as its own note says, where it is the hold of a collection.
    pub hold: Option<(Box<str>, Timestamp)>,
}

/// Why somebody requests something: never empty, without control characters, 500 characters at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(Box<str>);

/// A text that is no reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoReason {
    /// There is none.
    #[error("an action needs a reason: say in a few words why")]
    Empty,
    /// It is too long.
    #[error("a reason has {LONGEST_REASON} characters at most")]
    TooLong,
}

impl Reason {
    /// A reason, its control characters and line ends as spaces.
    ///
    /// # Errors
    /// When it is empty or too long.
    pub fn new(text: &str) -> Result<Self, NoReason> {
        let clean: String = text.chars().map(|found| if found.is_control() { ' ' } else { found }).collect();
        let clean = clean.trim();
        if clean.is_empty() {
            return Err(NoReason::Empty);
        }
        if clean.chars().count() > LONGEST_REASON {
            return Err(NoReason::TooLong);
        }
        Ok(Self(clean.into()))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_says_something_on_one_line() {
        assert_eq!(Reason::new(" disk\r\nreplaced\u{7}\t").unwrap().as_str(), "disk  replaced");
        assert_eq!(Reason::new(" \n\u{0}"), Err(NoReason::Empty));
        assert!(Reason::new(&"ä".repeat(LONGEST_REASON)).is_ok());
        assert_eq!(Reason::new(&"x".repeat(LONGEST_REASON + 1)), Err(NoReason::TooLong));
    }
}
