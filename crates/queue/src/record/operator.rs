//! What an operator's action leaves as the message of a status.

use std::fmt;

use crate::state::JobState;

const OPENING: &str = "By ";
const PROGRAM: &str = " with queuekeeper: ";

/// Who changed a state, and why. As a text it is a status's message, such as `By alice with queuekeeper: a court
/// order`: daemons and other tools show that as it is, and it outlives the process and the audit trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorNote<'a> {
    /// The actor's name.
    pub who: &'a str,
    /// The reason given.
    pub why: &'a str,
}

impl<'a> OperatorNote<'a> {
    /// Reads a message; `None` where it is not such a note. The data of a znode may claim anything.
    #[must_use]
    pub fn read(message: &'a str) -> Option<Self> {
        let (who, why) = message.strip_prefix(OPENING)?.split_once(PROGRAM)?;
        (!who.is_empty()).then_some(Self { who, why })
    }
}

impl fmt::Display for OperatorNote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{OPENING}{}{PROGRAM}{}", self.who, self.why)
    }
}

/// Whether an operator put a job into its state, by the message of its status, where the daemons may do so too.
///
/// Only a note of ours shows it: daemons fail and hold jobs with words of their own, and so may other tools.
#[must_use]
pub fn is_by_operator(state: Option<JobState>, message: &str) -> bool {
    matches!(state, Some(JobState::Failed | JobState::Held)) && OperatorNote::read(message).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written_and_nothing_else_is_one() {
        for (who, why) in [("alice", "a court order"), ("root@host", "x: with queuekeeper: y"), ("a b", "")] {
            let note = OperatorNote { who, why };
            assert_eq!(OperatorNote::read(&note.to_string()), Some(note));
        }
        for other in
            ["", "Success", "By ", "By  with queuekeeper: why", "By alice: why", "404 By a with queuekeeper: b"]
        {
            assert_eq!(OperatorNote::read(other), None, "{other}");
        }
    }

    #[test]
    fn who_put_a_job_there_is_known_from_its_state_and_message() {
        let note = OperatorNote { who: "alice", why: "a court order" }.to_string();
        assert!(is_by_operator(Some(JobState::Failed), &note) && is_by_operator(Some(JobState::Held), &note));
        assert!(!is_by_operator(Some(JobState::Failed), "a court order"));
        assert!(!is_by_operator(Some(JobState::Held), "a court order") && !is_by_operator(Some(JobState::Held), ""));
        assert!(!is_by_operator(Some(JobState::Pending), &note) && !is_by_operator(None, &note));
    }
}
