//! The `status` nodes of jobs, batches and access requests.

use std::borrow::Cow;

use serde::Deserialize;

use super::field::{Field, object};
use super::{Decoded, Malformed, StatusText};
use crate::queue::state::{JobState, State};

/// `/jobs/JID/status`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobStatus<'a> {
    /// The job's state.
    pub status: StatusText<'a, JobState>,
    /// The state that it was in before, if that went well.
    pub last_successful: Option<JobState>,
    /// How often an operator resumed it; `None` where the key is missing, which the daemons cannot load.
    pub retry_count: Option<u32>,
    /// What the daemons said of the last step, such as an error's text.
    pub message: Cow<'a, str>,
}

/// `/batches/BID/status` and `/access/*/QID/status`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemStatus<'a, S> {
    /// The item's state.
    pub status: StatusText<'a, S>,
    /// What the daemons said of the last step.
    pub message: Cow<'a, str>,
}

impl<S> Default for ItemStatus<'_, S> {
    fn default() -> Self {
        Self { status: StatusText::default(), message: Cow::Borrowed("") }
    }
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, default)]
    status: Field<'a>,
    #[serde(borrow, default)]
    last_successful_status: Field<'a>,
    #[serde(borrow, default)]
    retry_count: Field<'a>,
    #[serde(borrow, default)]
    message: Field<'a>,
}

impl<'a> JobStatus<'a> {
    /// Reads the node's data.
    #[must_use]
    pub fn decode(data: &'a [u8]) -> Decoded<Self> {
        let raw: Raw<'a> = match object(data) {
            Ok(raw) => raw,
            Err(malformed) => return Decoded::bad(Self::default(), malformed),
        };
        let (status, bad_status) = status_text(raw.status);
        let (last_successful, bad_last) = raw.last_successful_status.text("last_successful_status");
        let (retries, bad_retries) = raw.retry_count.integer("retry_count");
        let (message, bad_message) = raw.message.text("message");
        let retry_count = retries.and_then(|count| u32::try_from(count).ok());
        let out_of_range = (retries.is_some() && retry_count.is_none())
            .then_some(Malformed::Wrong { what: "retry_count", expected: "a whole number from 0 to 4294967295" });
        Decoded {
            value: Self {
                status,
                last_successful: last_successful.and_then(|text| JobState::from_any(&text)),
                retry_count,
                message: message.unwrap_or_default(),
            },
            malformed: bad_status.or(bad_retries).or(out_of_range).or(bad_last).or(bad_message),
        }
    }
}

impl<'a, S: State> ItemStatus<'a, S> {
    /// Reads the node's data.
    #[must_use]
    pub fn decode(data: &'a [u8]) -> Decoded<Self> {
        let raw: Raw<'a> = match object(data) {
            Ok(raw) => raw,
            Err(malformed) => return Decoded::bad(Self::default(), malformed),
        };
        let (status, bad_status) = status_text(raw.status);
        let (message, bad_message) = raw.message.text("message");
        Decoded { value: Self { status, message: message.unwrap_or_default() }, malformed: bad_status.or(bad_message) }
    }
}

fn status_text<S: State>(field: Field<'_>) -> (StatusText<'_, S>, Option<Malformed>) {
    match field.text("status") {
        (Some(text), malformed) => (StatusText { state: S::from_any(&text), text }, malformed),
        (None, malformed) => (StatusText::default(), malformed.or(Some(Malformed::Missing("status")))),
    }
}
