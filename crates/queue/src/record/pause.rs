//! The note that is kept in the lock of a paused queue.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::Decoded;
use super::field::{Field, decode};
use crate::time;

/// `/locks/queue/ingest` and its like: who paused the queue, why, and since when. The daemons only check whether the
/// lock exists, and other tools leave it empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PauseNote<'a> {
    /// Who requested it.
    pub who: Cow<'a, str>,
    /// Why.
    pub why: Cow<'a, str>,
    /// Since when; `None` where it is missing; the lock's `ctime` shows it then.
    pub since: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, default)]
    who: Field<'a>,
    #[serde(borrow, default)]
    why: Field<'a>,
    #[serde(borrow, default)]
    since: Field<'a>,
}

impl<'a> PauseNote<'a> {
    /// Reads the lock's data; an empty lock has no note, and that is not a fault.
    #[must_use]
    pub fn decode(data: &'a [u8]) -> Decoded<Self> {
        if data.iter().all(u8::is_ascii_whitespace) {
            return Decoded { value: Self::default(), malformed: None };
        }
        decode(data, |raw: Raw<'a>, checked| Self {
            who: checked.text("who", raw.who).unwrap_or_default(),
            why: checked.text("why", raw.why).unwrap_or_default(),
            since: checked.text("since", raw.since).and_then(|since| time::read(&since)),
        })
    }

    /// The data for a lock.
    #[must_use]
    pub fn encode(who: &str, why: &str, since: Timestamp) -> Vec<u8> {
        json!({ "who": who, "why": why, "since": time::write(since) }).to_string().into_bytes()
    }
}
