//! The values of the znodes, decoded tolerantly.
//!
//! A value may be anything: written by three generations of programs, by hand, or by a client with bad intent. Decoding
//! therefore never fails as a whole. It gives a [`Decoded`]: all that could be read, and beside it the first thing that
//! was wrong, if anything was.

use std::borrow::Cow;

mod daemon;
mod expansion;
mod field;
mod grants;
mod job;
mod operator;
mod pause;
mod progress;
mod retry;
mod status;
mod submission;
mod unfit;
mod withdrawal;
mod write;

pub use daemon::{BatchWait, DaemonNote, MailNote};
pub use expansion::ExpansionNote;
pub use grants::{GrantNote, GrantsNote};
pub use job::{
    Configuration, Identifiers, bid, check_job_node, is_priority_out_of_range, misnamed_bid, object_form, priority,
    refused, space_needed,
};
pub use operator::{OperatorNote, is_by_operator};
pub use pause::PauseNote;
pub use progress::{FileProgress, JobProgress, ProgressNote};
pub use retry::Retry;
pub use status::{ItemStatus, JobStatus};
pub use submission::{Submission, Token};
pub use unfit::{EMBARGO, ENTRY, NOTHING_TO_STORE, fails_again};
pub use withdrawal::{WithdrawalNote, WithdrawalPhase, WithdrawnNote};
pub use write::{
    StatusChange, consumed, identifiers, item_status, job_status, loadable_item_status, loadable_job_status, merged,
    new_status, reported, status_report,
};

/// A value as far as it could be read, and what was wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<T> {
    /// All that could be read; defaults where nothing could.
    pub value: T,
    /// The first thing that was wrong; `None` for a value as the daemons write it.
    pub malformed: Option<Malformed>,
}

/// Why a znode's value cannot be read, wholly or in part.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Malformed {
    /// There is no data at all.
    #[error("is empty")]
    Empty,
    /// The bytes are no UTF-8 text.
    #[error("is not UTF-8")]
    NotUtf8,
    /// The text is no JSON.
    #[error("is not JSON (line {line}, column {column})")]
    NotJson {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// JSON, but no object.
    #[error("is JSON, but not an object")]
    NotObject,
    /// A key is duplicated, which the daemons' JSON library refuses.
    #[error("has a duplicate key")]
    RepeatedKey,
    /// A key that the daemons need is missing.
    #[error("has no {0}")]
    Missing(&'static str),
    /// A key or the text itself holds something of another kind, or out of range.
    #[error("{what} is not {expected}")]
    Wrong {
        /// The key, or what the whole text should be.
        what: &'static str,
        /// What would be right.
        expected: &'static str,
    },
}

impl Malformed {
    fn of_json(error: &serde_json::Error) -> Self {
        match error.classify() {
            // Every field takes any value, so this is all that can be wrong with JSON that opens as an object.
            serde_json::error::Category::Data => Self::RepeatedKey,
            serde_json::error::Category::Io
            | serde_json::error::Category::Syntax
            | serde_json::error::Category::Eof => Self::NotJson { line: error.line(), column: error.column() },
        }
    }
}

/// A status text: the state that it names, if we know it, and whether the daemons would take the spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusText<'a, S> {
    /// The state; `None` for a status that this version does not know, counted as `other`.
    pub state: Option<S>,
    /// The text as it is; empty where there is none.
    pub text: Cow<'a, str>,
}

impl<S> Default for StatusText<'_, S> {
    fn default() -> Self {
        Self { state: None, text: Cow::Borrowed("") }
    }
}

impl<S: super::state::State> StatusText<'_, S> {
    /// Whether the daemons read this text; they reject every spelling but their own.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        self.state.is_some_and(|state| state.name() == self.text)
    }
}

/// Data as text in UTF-8; other bytes are decoded as Latin-1, which older programs wrote.
#[must_use]
pub fn as_utf8(data: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(data) {
        Ok(_) => Cow::Borrowed(data),
        Err(_) => Cow::Owned(data.iter().map(|byte| char::from(*byte)).collect::<String>().into_bytes()),
    }
}

/// Reads a value that is plain text, without the white space around it.
pub(super) fn text(data: &[u8]) -> Result<&str, Malformed> {
    match std::str::from_utf8(data).map(str::trim) {
        Err(_) => Err(Malformed::NotUtf8),
        Ok("") => Err(Malformed::Empty),
        Ok(text) => Ok(text),
    }
}

#[cfg(test)]
mod tests;
