//! Why an action was not done.

use super::actor::Role;
use super::audit::NotWritten;
use super::metrics::{CONFLICT, IN_PART, UNKNOWN};
use queuekeeper_queue::Error;
use queuekeeper_queue::path::Path;

/// Why an action was not done, or is not known to have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its actor may not request that.
    #[error("this takes the role {needs}, and yours is {has}")]
    Forbidden {
        /// The role that it takes.
        needs: Role,
        /// The role that its actor has.
        has: Role,
    },
    /// It cannot be done as it was requested, whatever the state of the queue.
    #[error("{0}")]
    Invalid(String),
    /// What it is about is not there.
    #[error("{0}")]
    Missing(String),
    /// The queue stands against it: it was changed since it was seen, is held by somebody, or its state forbids it.
    #[error("{why}")]
    Conflict {
        /// What stands against it.
        why: String,
        /// The state that the target is in now, where that is known.
        state: Option<&'static str>,
        /// The version of its status now, where that is known.
        version: Option<i32>,
    },
    /// Nothing can be done now: ZooKeeper is not connected, or the audit file cannot be written. Nothing was done.
    #[error("{0}")]
    Unavailable(String),
    /// ZooKeeper refused it. Nothing was done.
    #[error("{0}")]
    Failed(String),
    /// Whether all of it was done is not known: the connection was lost, and the outcome could not be learned.
    #[error("{0}")]
    Unknown(String),
    /// A part of it was done before something stood against the rest.
    #[error("{0}")]
    InPart(String),
}

impl Refusal {
    /// The outcome that it counts as.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Forbidden { .. } => "forbidden",
            Self::Invalid(_) => "invalid",
            Self::Missing(_) => "missing",
            Self::Conflict { .. } => CONFLICT,
            Self::Unavailable(_) => "unavailable",
            Self::Failed(_) => "failed",
            Self::Unknown(_) => UNKNOWN,
            Self::InPart(_) => IN_PART,
        }
    }

    /// What stood against the rest of an action of which some transactions were done.
    pub(super) fn in_part(error: &Error) -> Self {
        let why = format!("{error}; a part was done before, request it again for the rest");
        let is_known = !error.is_connection() && !matches!(error, Error::Unknown { .. });
        if is_known { Self::InPart(why) } else { Self::Unknown(why) }
    }

    /// What stood against a change of a job. Its entry or its reference can be gone though the job is there: then it was
    /// changed meanwhile, or is broken.
    pub(super) fn of_job(error: Error) -> Self {
        match error {
            Error::Missing(path @ (Path::Entry(..) | Path::Reference(..))) => Self::conflict(format!(
                "{path} does not exist: the job was changed meanwhile, or its faults tell more. Nothing was done"
            )),
            other => other.into(),
        }
    }

    /// One that its state stands against.
    pub(super) fn conflict(why: impl Into<String>) -> Self {
        Self::Conflict { why: why.into(), state: None, version: None }
    }
}

impl From<NotWritten> for Refusal {
    /// Nothing is done that cannot be written down.
    fn from(why: NotWritten) -> Self {
        Self::Unavailable(format!("{why}; nothing was done"))
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let why = error.to_string();
        match error {
            Error::Unknown { .. } => Self::Unknown(format!("{why}; look at it before requesting it again")),
            Error::Missing(_) | Error::NotShown { .. } => Self::Missing(why),
            Error::Conflict(_) | Error::Transition { .. } | Error::Decode { .. } | Error::Invalid { .. } => {
                Self::conflict(why)
            }
            Error::Read { cause, .. } | Error::Commit { cause, .. } if cause.is_connection() => {
                Self::Unavailable(format!("{why}; nothing was done"))
            }
            Error::Read { .. } | Error::Commit { .. } => Self::Failed(format!("{why}; nothing was done")),
        }
    }
}
