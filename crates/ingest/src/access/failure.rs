//! Why a request was not completed.

use queuekeeper_queue as queue;
use queuekeeper_store::ErrorKind;
use queuekeeper_store::ocfl::OcflError;

use super::archive::Stopped;
use super::request::FindError;
use crate::contents::ContentError;
use crate::step::StepError;

/// Why a request was not completed.
#[derive(Debug)]
pub(super) enum AccessFailure {
    /// It may succeed later.
    Temporary(String),
    /// It waits, for however long that takes.
    Waits(String),
    /// Likewise, until the store is not held any more.
    Held(String),
    /// It never will: the status of HTTP, and one sentence.
    Permanent(u16, String),
    /// The queue could not be read or written, or the request is not ours any more.
    Queue(queue::Error),
}

/// Why an archive was not filled.
pub(super) enum Unfilled {
    /// A file could not be read.
    Failed(AccessFailure),
    /// It could not be written, which its writer says.
    Stopped,
}

impl From<AccessFailure> for Unfilled {
    fn from(failure: AccessFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Stopped> for Unfilled {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<queue::Error> for AccessFailure {
    fn from(error: queue::Error) -> Self {
        Self::Queue(error)
    }
}

impl From<queuekeeper_store::Error> for AccessFailure {
    fn from(error: queuekeeper_store::Error) -> Self {
        if error.is_temporary() { Self::Temporary(error.to_string()) } else { permanent(&error) }
    }
}

impl From<queuekeeper_catalogue::Error> for AccessFailure {
    fn from(error: queuekeeper_catalogue::Error) -> Self {
        match StepError::from(error) {
            StepError::Permanent(why) => Self::Permanent(500, why),
            other => Self::Temporary(other.sentence()),
        }
    }
}

impl From<FindError> for AccessFailure {
    fn from(error: FindError) -> Self {
        let why = error.to_string();
        match error {
            FindError::NoObject(_) | FindError::NoVersion { .. } | FindError::NoFiles { .. } => {
                Self::Permanent(404, why)
            }
            FindError::Catalogue(error) => error.into(),
        }
    }
}

/// It fails for good, for no reason of the requester's.
pub(super) fn permanent(why: &impl std::fmt::Display) -> AccessFailure {
    AccessFailure::Permanent(500, why.to_string())
}

/// What it means that a file cannot be opened.
pub(super) fn unreadable(file: &str, error: ContentError) -> AccessFailure {
    let why = format!("{file}: {error}");
    let is_missing = |kind: &ErrorKind| matches!(kind, ErrorKind::NotFound | ErrorKind::NoSpace);
    match error {
        ContentError::Size { .. } | ContentError::NoDigest | ContentError::Empty(..) => {
            AccessFailure::Permanent(500, why)
        }
        ContentError::Read(OcflError::Store(error)) if is_missing(&error.kind) => AccessFailure::Permanent(500, why),
        ContentError::Read(error) if !error.is_temporary() => AccessFailure::Permanent(500, why),
        // A profile or a store may be configured again.
        ContentError::Read(_) | ContentError::Open(_) | ContentError::NoProfile(_) | ContentError::NoStore(_) => {
            AccessFailure::Temporary(why)
        }
    }
}
