//! The failed attempts at a task.

use jiff::Timestamp;
use serde_json::{Value as Json, json};

/// How many of its failures a task keeps.
const MOST_ERRORS: usize = 20;

/// How much of the reason for a failure is kept.
pub(super) const MOST_ERROR_CHARS: usize = 500;

/// A failed attempt at a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskError {
    /// When, by the database's clock.
    pub time: Timestamp,
    /// Which worker.
    pub worker: String,
    /// Why: one sentence.
    pub error: String,
}

/// Failures as they are kept: JSON, the oldest first.
pub(crate) fn errors(text: &str) -> Vec<TaskError> {
    let list = serde_json::from_str::<Vec<Json>>(text).unwrap_or_default();
    let error = |one: &Json| {
        Some(TaskError {
            time: Timestamp::from_millisecond(one.get("time")?.as_i64()?).ok()?,
            worker: one.get("worker")?.as_str()?.to_owned(),
            error: one.get("error")?.as_str()?.to_owned(),
        })
    };
    list.iter().filter_map(error).collect()
}

/// Those failures and one more, as they are kept: the newest ones.
pub(super) fn with_error(errors: &[TaskError], time: Timestamp, worker: &str, error: &str) -> String {
    let new = TaskError {
        time,
        worker: worker.to_owned(),
        error: crate::error::one_line(error).chars().take(MOST_ERROR_CHARS).collect(),
    };
    let kept = errors.iter().skip((errors.len() + 1).saturating_sub(MOST_ERRORS)).chain([&new]);
    let json =
        kept.map(|error| json!({"time": error.time.as_millisecond(), "worker": error.worker, "error": error.error}));
    Json::Array(json.collect()).to_string()
}
