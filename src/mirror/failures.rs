//! Failed jobs by what they have in common.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::summary::state_label;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::state::JobState;

mod cause;
mod pattern;

pub use cause::FailureCause;
pub(crate) use pattern::pattern;

/// How many batches, collections and jobs of a group are named at most.
pub(super) const EXAMPLES: usize = 5;

/// The name of a group of failures, sixteen hexadecimal digits: the same for the same failures on every day and every
/// queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FailureKey(u64);

impl FailureKey {
    /// The name of the failures behind a state with a message of that pattern.
    pub(super) fn of(last_successful: Option<JobState>, pattern: &str) -> Self {
        let state = last_successful.map_or("none", |state| state_label(Some(state)));
        // FNV-1a, which is the same on every platform. Keys are not secret, and a collision only merges two groups.
        let bytes = state.bytes().chain([0]).chain(pattern.bytes());
        Self(
            bytes
                .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)),
        )
    }
}

impl fmt::Display for FailureKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A text that names no group of failures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the sixteen hexadecimal digits of a group of failures")]
pub struct InvalidFailureKey;

impl FromStr for FailureKey {
    type Err = InvalidFailureKey;

    fn from_str(text: &str) -> Result<Self, InvalidFailureKey> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let number = Some(text).filter(|text| text.len() == 16 && text.bytes().all(is_digit));
        number.and_then(|text| u64::from_str_radix(text, 16).ok()).map(Self).ok_or(InvalidFailureKey)
    }
}

/// Failed jobs that did the same last and then failed with the same message, numbers and names in it aside.
///
/// Texts are those of znodes: anything at all, cut to 512 bytes each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    /// The name of the group.
    pub key: FailureKey,
    /// The last successful state of each of them; they failed in the one behind.
    pub last_successful: Option<JobState>,
    /// What their messages have in common, with `#` for numbers and ids.
    pub pattern: String,
    /// The message of the job that failed last.
    pub message: Arc<str>,
    /// How many there are.
    pub count: u64,
    /// Of these, resumed at least once before.
    pub resumed: u64,
    /// When the first of them failed.
    pub oldest: Option<Timestamp>,
    /// When the last of them failed.
    pub newest: Option<Timestamp>,
    /// The jobs that failed last, the very last first; at most five.
    pub jobs: Vec<JobId>,
    /// The batches with the most of them, and how many each has; at most five.
    pub batches: Vec<(BatchId, u64)>,
    /// How many batches have some of them.
    pub batch_count: u64,
    /// The collections with the most of them, and how many each has; at most five. Empty for jobs that name none.
    pub collections: Vec<(Arc<str>, u64)>,
    /// How many collections have some of them.
    pub collection_count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_on_every_day() {
        let key = FailureKey::of(Some(JobState::Provisioning), "404 for https://deposit.example.edu/…");
        assert_eq!(key.to_string(), "6c3ef937cddd415d");
        assert_eq!(key.to_string().parse(), Ok(key));
        assert_ne!(key, FailureKey::of(None, "404 for https://deposit.example.edu/…"));
        for text in ["", "6c3ef937cddd415", "6C3EF937CDDD415D", "+c3ef937cddd415d", "6c3ef937cddd415d0"] {
            assert_eq!(text.parse::<FailureKey>(), Err(InvalidFailureKey), "{text}");
        }
    }
}
