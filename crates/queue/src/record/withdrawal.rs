//! What the withdrawal of a deposit leaves: the note of one that is under way, and the message of what it deleted.

use std::fmt;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ExpansionNote, OperatorNote};
use crate::state::{BatchState, JobState};

const OPENING: &str = "Withdrawn by ";
const PROGRAM: &str = " with queuekeeper";

/// How much of a name is kept, in characters.
const MOST_NAME: usize = 200;

/// How much of a reason is kept, in characters.
const MOST_WHY: usize = 1_000;

/// Who withdrew a deposit, and why. As a text it is the message of the batch and of each of its jobs, such as
/// `Withdrawn by alice with queuekeeper: the wrong files`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithdrawnNote<'a> {
    /// The actor's name.
    pub who: &'a str,
    /// The reason given; empty for none.
    pub why: &'a str,
}

impl<'a> WithdrawnNote<'a> {
    /// Reads a message; `None` where it is not such a note. The data of a znode may claim anything.
    #[must_use]
    pub fn read(message: &'a str) -> Option<Self> {
        let (who, rest) = message.strip_prefix(OPENING)?.split_once(PROGRAM)?;
        let why = if rest.is_empty() { rest } else { rest.strip_prefix(": ")? };
        (!who.is_empty()).then_some(Self { who, why })
    }

    /// The note of a job that was withdrawn, by its state and the message of its status; `None` for any other job.
    #[must_use]
    pub fn of_job(state: Option<JobState>, message: &'a str) -> Option<Self> {
        if state == Some(JobState::Deleted) { Self::read(message) } else { None }
    }

    /// The note of a batch that was withdrawn, by its state and the message of its status; `None` for any other batch.
    #[must_use]
    pub fn of_batch(state: Option<BatchState>, message: &'a str) -> Option<Self> {
        if state == Some(BatchState::Deleted) { Self::read(message) } else { None }
    }
}

impl fmt::Display for WithdrawnNote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { who, why } = self;
        if why.is_empty() { write!(f, "{OPENING}{who}{PROGRAM}") } else { write!(f, "{OPENING}{who}{PROGRAM}: {why}") }
    }
}

/// How far a withdrawal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WithdrawalPhase {
    /// Its Pending jobs are being set Held: nothing is lost yet.
    Holding,
    /// It was not possible, and the jobs that it set Held are going back to Pending.
    Returning,
    /// All are Held, and are being set Deleted.
    Deleting,
}

impl WithdrawalPhase {
    const ALL: [Self; 3] = [Self::Holding, Self::Returning, Self::Deleting];

    /// The word for it in the znode.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Holding => "holding",
            Self::Returning => "returning",
            Self::Deleting => "deleting",
        }
    }
}

/// `/queuekeeper/withdrawals/BID`: a batch that is being withdrawn in several transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithdrawalNote {
    /// Who requested it.
    pub who: String,
    /// The reason given; empty for none.
    pub why: String,
    /// Since when, in milliseconds.
    pub since: Timestamp,
    /// How far it is.
    pub phase: WithdrawalPhase,
    /// Why it is not possible, one sentence, once that is known.
    pub hindrance: Option<String>,
    /// How far the creation of the batch's jobs was, which it ended.
    pub expansion: Option<ExpansionNote>,
}

#[derive(Deserialize)]
struct WithdrawalForm {
    who: String,
    why: String,
    since: i64,
    phase: String,
    hindrance: Option<String>,
    expansion: Option<Value>,
}

impl WithdrawalNote {
    /// That of a withdrawal that begins.
    #[must_use]
    pub fn new(by: WithdrawnNote<'_>, since: Timestamp, expansion: Option<ExpansionNote>) -> Self {
        // What is written is what is read again: the messages are made of it.
        let since = Timestamp::from_millisecond(since.as_millisecond()).unwrap_or(since);
        let (who, why) = (cut(by.who, MOST_NAME), cut(by.why, MOST_WHY));
        Self { who, why, since, phase: WithdrawalPhase::Holding, hindrance: None, expansion }
    }

    /// Reads the znode's data; `None` for what is not in this form.
    #[must_use]
    pub fn decode(data: &[u8]) -> Option<Self> {
        let form: WithdrawalForm = serde_json::from_slice(data).ok()?;
        let expansion = |value: Value| ExpansionNote::decode(value.to_string().as_bytes()).ok_or(());
        Some(Self {
            who: cut(&form.who, MOST_NAME),
            why: cut(&form.why, MOST_WHY),
            since: Timestamp::from_millisecond(form.since).ok()?,
            phase: WithdrawalPhase::ALL.into_iter().find(|phase| phase.label() == form.phase)?,
            hindrance: form.hindrance.map(|why| cut(&why, MOST_WHY)),
            expansion: form.expansion.map(expansion).transpose().ok()?,
        })
    }

    /// The znode's data.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { who, why, since, phase, hindrance, expansion } = self;
        let expansion = expansion.as_ref().and_then(|note| serde_json::from_slice::<Value>(&note.encode()).ok());
        let form = json!({
            "who": who, "why": why, "since": since.as_millisecond(), "phase": phase.label(),
            "hindrance": hindrance, "expansion": expansion,
        });
        form.to_string().into_bytes()
    }

    /// The message of a job that this withdrawal holds, by which the hold recognizes it (`withdraw/hold.rs`): its form
    /// stays, that of the time too.
    #[must_use]
    pub fn held_message(&self) -> String {
        let why = format!("the withdrawal of its deposit, since {}", self.since);
        OperatorNote { who: &self.who, why: &why }.to_string()
    }

    /// What is left as the message of the batch and its jobs.
    #[must_use]
    pub fn withdrawn(&self) -> WithdrawnNote<'_> {
        WithdrawnNote { who: &self.who, why: &self.why }
    }
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::JobId;
    use crate::record::is_by_operator;
    use crate::state::JobState;

    #[test]
    fn a_message_is_read_as_it_was_written_and_nothing_else_is_one() {
        for (who, why) in [("alice", "the wrong files"), ("a token", ""), ("bob", "x with queuekeeper: y")] {
            let note = WithdrawnNote { who, why };
            assert_eq!(WithdrawnNote::read(&note.to_string()), Some(note));
        }
        for other in ["", "Withdrawn by alice", "Withdrawn by  with queuekeeper", "Withdrawn by a with queuekeeper x"] {
            assert_eq!(WithdrawnNote::read(other), None, "{other}");
        }
        let message = "Withdrawn by alice with queuekeeper";
        let of = |state| WithdrawnNote::of_batch(Some(state), message).map(|note| note.who);
        assert_eq!((of(BatchState::Deleted), of(BatchState::Failed)), (Some("alice"), None));
    }

    #[test]
    fn a_note_is_read_as_it_was_written_and_nothing_else_is_one() {
        let since: Timestamp = "2026-03-02T18:17:05.123456Z".parse().unwrap();
        let expansion =
            ExpansionNote { next: 900, rows: Some(1_000), digest: "ab".to_owned(), last: Some(JobId::new(7)) };
        let by = WithdrawnNote { who: "alice", why: "the wrong files" };
        for expansion in [None, Some(expansion)] {
            let note = WithdrawalNote::new(by, since, expansion);
            let later = WithdrawalNote {
                phase: WithdrawalPhase::Returning,
                hindrance: Some("a job has left Pending".to_owned()),
                ..note.clone()
            };
            for note in [note, later] {
                let read = WithdrawalNote::decode(&note.encode()).unwrap();
                assert_eq!((read.held_message(), &read), (note.held_message(), &note));
                assert!(is_by_operator(Some(JobState::Held), &note.held_message()));
            }
        }
        let long = WithdrawalNote::new(WithdrawnNote { who: &"é".repeat(5_000), why: &"é".repeat(5_000) }, since, None);
        assert!(long.encode().len() < 4_000);
        let form = |phase: &str, expansion: &str| {
            let text = r#"{"who":"a","why":"","since":0,"phase":"PHASE","hindrance":null,"expansion":EXPANSION}"#;
            text.replace("PHASE", phase).replace("EXPANSION", expansion).into_bytes()
        };
        assert!(WithdrawalNote::decode(&form("holding", "null")).is_some());
        for wrong in [&b"{}"[..], b"", b"\xff", &form("odd", "null"), &form("holding", "{}")] {
            assert_eq!(WithdrawalNote::decode(wrong), None);
        }
    }
}
