//! The `status` nodes of jobs, batches and access requests.

use std::borrow::Cow;

use serde::Deserialize;

use super::field::{Checked, Field, decode};
use super::{Decoded, Malformed, StatusText};
use crate::state::{JobState, State};

/// `/jobs/JID/status`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobStatus<'a> {
    /// The job's state.
    pub status: StatusText<'a, JobState>,
    /// The state that it was in before, if that went well.
    pub last_successful: Option<JobState>,
    /// How often an operator resumed it; `None` where the key is missing, which the daemons cannot load.
    pub retry_count: Option<u32>,
    /// The daemons' message about the last step, such as an error text.
    pub message: Cow<'a, str>,
}

/// `/batches/BID/status` and `/access/*/QID/status`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemStatus<'a, S> {
    /// The item's state.
    pub status: StatusText<'a, S>,
    /// The daemons' message about the last step.
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
        decode(data, |raw: Raw<'a>, checked| {
            let status = status_text(raw.status, checked);
            let retries = checked.integer("retry_count", raw.retry_count);
            let retry_count = retries.and_then(|count| u32::try_from(count).ok());
            if retries.is_some() && retry_count.is_none() {
                checked.wrong("retry_count", "a whole number from 0 to 4294967295");
            }
            let last_successful = checked.text("last_successful_status", raw.last_successful_status);
            Self {
                status,
                last_successful: last_successful.and_then(|text| JobState::from_any(&text)),
                retry_count,
                message: checked.text("message", raw.message).unwrap_or_default(),
            }
        })
    }
}

impl<'a, S: State> ItemStatus<'a, S> {
    /// Reads the node's data.
    #[must_use]
    pub fn decode(data: &'a [u8]) -> Decoded<Self> {
        decode(data, |raw: Raw<'a>, checked| Self {
            status: status_text(raw.status, checked),
            message: checked.text("message", raw.message).unwrap_or_default(),
        })
    }
}

fn status_text<'a, S: State>(field: Field<'a>, checked: &mut Checked) -> StatusText<'a, S> {
    let Some(text) = checked.text("status", field) else {
        checked.note(Malformed::Missing("status"));
        return StatusText::default();
    };
    StatusText { state: S::from_any(&text), text }
}
