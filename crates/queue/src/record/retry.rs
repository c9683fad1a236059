//! Why a job waits for another attempt.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

/// How much of the reason is kept, in characters.
const MOST_CHARS: usize = 1_000;

/// `/queuekeeper/retry/JID`: a job that a daemon of ours gave back, and takes again later.
///
/// It counts only while the job's status has the version that it had then: whatever changes the job's state ends the
/// wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The version of the job's status.
    pub version: i32,
    /// Since when the job is tried in its state.
    pub since: Timestamp,
    /// How many attempts have failed.
    pub attempts: u32,
    /// Before when no daemon of ours takes it.
    pub not_before: Timestamp,
    /// Since when it has waited for more working storage, where that is why it was given back: no attempt has failed
    /// then.
    pub waits_since: Option<Timestamp>,
    /// What the last attempt failed by, one sentence.
    pub why: String,
}

#[derive(Deserialize)]
struct RetryForm<'a> {
    version: i32,
    since: i64,
    attempts: u32,
    not_before: i64,
    waits_since: Option<i64>,
    #[serde(borrow)]
    why: Cow<'a, str>,
}

impl Retry {
    /// Reads the znode's data; `None` for what is not in this form.
    #[must_use]
    pub fn decode(data: &[u8]) -> Option<Self> {
        let form: RetryForm<'_> = serde_json::from_slice(data).ok()?;
        Some(Self {
            version: form.version,
            since: Timestamp::from_millisecond(form.since).ok()?,
            attempts: form.attempts,
            not_before: Timestamp::from_millisecond(form.not_before).ok()?,
            waits_since: form.waits_since.map(Timestamp::from_millisecond).transpose().ok()?,
            why: form.why.chars().take(MOST_CHARS).collect(),
        })
    }

    /// The znode's data; times are in milliseconds since 1970.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { version, since, attempts, not_before, waits_since, why } = self;
        let why: String = why.chars().take(MOST_CHARS).collect();
        let [since, not_before] = [since, not_before].map(|time| time.as_millisecond());
        let mut form = json!({
            "version": version, "since": since, "attempts": attempts, "not_before": not_before, "why": why,
        });
        if let Some(waits_since) = waits_since {
            form["waits_since"] = waits_since.as_millisecond().into();
        }
        form.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let retry = Retry {
            version: 3,
            since: Timestamp::from_millisecond(1_000).unwrap(),
            attempts: 2,
            not_before: Timestamp::from_millisecond(61_000).unwrap(),
            waits_since: None,
            why: "503 from \"host\"".to_owned(),
        };
        assert_eq!(Retry::decode(&retry.encode()), Some(retry.clone()));
        let waiting = Retry { waits_since: Some(retry.since), ..retry.clone() };
        assert_eq!(Retry::decode(&waiting.encode()), Some(waiting));
        let long = Retry { why: "é".repeat(5_000), ..retry };
        assert_eq!(Retry::decode(&long.encode()).unwrap().why.chars().count(), MOST_CHARS);
        let form = |not_before: &str| {
            format!(r#"{{"version":1,"since":0,"attempts":1,"not_before":{not_before},"why":""}}"#).into_bytes()
        };
        assert!(Retry::decode(&form("0")).is_some());
        for wrong in [&b"{}"[..], b"", b"[]", b"\xff", &form("9223372036854775807"), &form("\"soon\"")] {
            assert_eq!(Retry::decode(wrong), None);
        }
    }
}
