//! Why an action was not executed.

use std::time::Duration;

use super::actor::Role;
use super::audit::NotWritten;
use super::outcome;
use queuekeeper_ingest::resubmit::ResubmissionError;
use queuekeeper_queue::Error;
use queuekeeper_queue::path::{BatchNode, Path};

/// Why an action was not executed, or is not known to have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The actor's role does not suffice.
    #[error("this requires the role {needs}; yours is {has}")]
    Forbidden {
        /// The role that it requires.
        needs: Role,
        /// The actor's role.
        has: Role,
    },
    /// The request is invalid, whatever the state of the queue.
    #[error("{0}")]
    Invalid(String),
    /// The target does not exist.
    #[error("{0}")]
    Missing(String),
    /// It conflicts with the state of the queue: the target has changed, is locked, or its state forbids it.
    #[error("{why}")]
    Conflict {
        /// The conflict.
        why: String,
        /// The state that the target is in now, if known.
        state: Option<&'static str>,
        /// The version of its status now, if known.
        version: Option<i32>,
    },
    /// The key of the request was used for another one.
    #[error("{0}")]
    OtherRequest(String),
    /// It would be more than the caller may do.
    #[error("{why}")]
    TooMuch {
        /// What is too much, and of how much.
        why: String,
        /// For how long at least it would be refused again, where that is known.
        retry_after: Option<Duration>,
    },
    /// It is more than the caller may ever do at once.
    #[error("{0}")]
    TooLarge(String),
    /// There is no room for it on the working storage.
    #[error("{0}")]
    NoRoom(String),
    /// ZooKeeper is not connected, or the audit file cannot be written. Nothing was done.
    #[error("{0}")]
    Unavailable(String),
    /// ZooKeeper refused it. Nothing was done.
    #[error("{0}")]
    Failed(String),
    /// Whether it was done is unknown: the connection was lost, and the outcome could not be determined.
    #[error("{0}")]
    Unknown(String),
    /// A part of it was done before the rest failed.
    #[error("{0}")]
    InPart(String),
}

impl Refusal {
    /// The label of the outcome.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Forbidden { .. } => outcome::FORBIDDEN,
            Self::Invalid(_) => outcome::INVALID,
            Self::Missing(_) => outcome::MISSING,
            Self::Conflict { .. } => outcome::CONFLICT,
            Self::OtherRequest(_) => outcome::OTHER_REQUEST,
            Self::TooMuch { .. } => outcome::TOO_MUCH,
            Self::TooLarge(_) => outcome::TOO_LARGE,
            Self::NoRoom(_) => outcome::NO_ROOM,
            Self::Unavailable(_) => outcome::UNAVAILABLE,
            Self::Failed(_) => outcome::FAILED,
            Self::Unknown(_) => outcome::UNKNOWN,
            Self::InPart(_) => outcome::IN_PART,
        }
    }

    /// The failure of an action after some of its transactions were committed.
    pub(super) fn in_part(error: &Error) -> Self {
        let why = format!("{error}; a part was done, request the action again for the rest");
        let is_known = !error.is_connection() && !matches!(error, Error::Unknown { .. });
        if is_known { Self::InPart(why) } else { Self::Unknown(why) }
    }

    /// The failure of a change of a job. If its queue entry or its reference is missing although the job exists, it was
    /// changed in the meantime, or is broken.
    pub(super) fn of_job(error: Error) -> Self {
        match error {
            Error::Missing(path @ (Path::Entry(..) | Path::Reference(..))) => Self::conflict(format!(
                "{path} does not exist: the job was changed in the meantime, or is broken (see its faults). Nothing was done"
            )),
            other => other.into(),
        }
    }

    /// A conflict with the target's state.
    pub(super) fn conflict(why: impl Into<String>) -> Self {
        Self::Conflict { why: why.into(), state: None, version: None }
    }
}

impl Refusal {
    /// Why a batch cannot be withdrawn.
    pub(super) fn of_withdrawal(error: Error) -> Self {
        match error {
            Error::Conflict(conflict) if matches!(conflict.path, Path::BatchNode(_, BatchNode::Lock)) => {
                Self::conflict(
                    "it is locked: its jobs are being created, its report is being made, or it is already being withdrawn; try again in a moment",
                )
            }
            error => error.into(),
        }
    }
}

impl Refusal {
    /// Why nothing was done that needs the catalogue.
    pub(super) fn of_catalogue(error: &queuekeeper_catalogue::Error) -> Self {
        if error.is_temporary() {
            Self::Unavailable(format!("the catalogue: {error}; nothing was done, try again"))
        } else {
            Self::conflict(error.to_string())
        }
    }
}

impl From<ResubmissionError> for Refusal {
    fn from(error: ResubmissionError) -> Self {
        match error {
            ResubmissionError::Refused(why) => Self::conflict(why),
            ResubmissionError::Queue(error) => error.into(),
            ResubmissionError::Catalogue(error) => Self::of_catalogue(&error),
        }
    }
}

impl From<NotWritten> for Refusal {
    /// An action that cannot be recorded is not executed.
    fn from(why: NotWritten) -> Self {
        Self::Unavailable(format!("{why}; nothing was done"))
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let why = error.to_string();
        match error {
            Error::Unknown { .. } => Self::Unknown(format!("{why}; check the target before requesting it again")),
            Error::Missing(_) | Error::NotShown { .. } => Self::Missing(why),
            Error::Conflict(_)
            | Error::Transition { .. }
            | Error::Decode { .. }
            | Error::Full { .. }
            | Error::Invalid { .. } => Self::conflict(why),
            Error::Read { cause, .. } | Error::Commit { cause, .. } if cause.is_connection() => {
                Self::Unavailable(format!("{why}; nothing was done"))
            }
            Error::Read { .. } | Error::Commit { .. } => Self::Failed(format!("{why}; nothing was done")),
        }
    }
}
