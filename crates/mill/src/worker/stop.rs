//! How a step of a task ends that does not come to its goal.

use std::time::Duration;

use queuekeeper_catalogue::tasks::TaskOutcome;
use queuekeeper_store::ErrorKind;
use queuekeeper_store::archive::NotYet;

use super::Processed;

/// How long to wait for the record of an item that is just being changed.
pub(crate) const CHANGING: Duration = Duration::from_secs(10);

/// How a step ended that did not come to its goal.
#[expect(clippy::large_enum_variant, reason = "a task has one of them, and then it ends")]
pub(crate) enum Stop {
    /// The task is to end so.
    Ended(Processed),
    /// It failed, and is tried again.
    Failed(String),
}

impl From<String> for Stop {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<queuekeeper_store::Error> for Stop {
    fn from(error: queuekeeper_store::Error) -> Self {
        match error.kind {
            ErrorKind::NotYet(NotYet { why, after, .. }) => TaskOutcome::Restore(after, why).into(),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<queuekeeper_catalogue::Error> for Stop {
    fn from(error: queuekeeper_catalogue::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<TaskOutcome> for Stop {
    fn from(outcome: TaskOutcome) -> Self {
        Self::Ended(outcome.into())
    }
}

impl From<Stop> for Processed {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Ended(processed) => processed,
            Stop::Failed(why) => TaskOutcome::Failed(why).into(),
        }
    }
}
