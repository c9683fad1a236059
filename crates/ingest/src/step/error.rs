//! Why a step was not done.

use std::fmt;
use std::time::Duration;

use queuekeeper_queue as queue;
use queuekeeper_store::ErrorKind;
use queuekeeper_store::ocfl::OcflError;

use crate::fetch::{FetchCause, FetchError};

/// Why a step was not done.
#[derive(Debug)]
pub enum StepError {
    /// It may succeed later: the job waits, without lock and worker.
    Temporary {
        /// What it failed by: one sentence.
        why: String,
        /// For how long it is of no use to try again, where that is known.
        after: Option<Duration>,
    },
    /// The same where a host is away: nothing was requested of it.
    Away {
        /// Which host, and what it failed by: one sentence.
        why: String,
        /// For how long it gets no request.
        after: Option<Duration>,
    },
    /// It may succeed later, and nothing was tried: all connections to a host are in use. The job waits, without lock
    /// and worker, and for as long as it takes.
    Busy(String),
    /// It never will: the job fails with this sentence.
    Permanent(String),
    /// There is no room for it: the job goes back to where it waits for some.
    NoRoom,
    /// There is no room for what it needs beyond its grant: it waits for as long as that takes. What it needs: one
    /// sentence.
    NoExtension(String),
    /// The queue could not be read or written, or the job is not ours any more.
    Queue(queue::Error),
}

impl StepError {
    /// A failure that may pass.
    pub fn temporary(why: impl fmt::Display) -> Self {
        Self::Temporary { why: why.to_string(), after: None }
    }

    /// A failure for good.
    pub fn permanent(why: impl fmt::Display) -> Self {
        Self::Permanent(why.to_string())
    }

    /// It in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Temporary { why, .. }
            | Self::Away { why, .. }
            | Self::Busy(why)
            | Self::Permanent(why)
            | Self::NoExtension(why) => why.clone(),
            Self::NoRoom => "there is no room".to_owned(),
            Self::Queue(error) => error.to_string(),
        }
    }

    /// A failure of the working storage, which is no fault of the deposit.
    #[must_use]
    pub fn working(what: &str, error: &std::io::Error) -> Self {
        Self::Temporary { why: format!("working storage: cannot {what}: {error}"), after: None }
    }
}

/// It in one sentence.
impl fmt::Display for StepError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.sentence())
    }
}

impl From<queue::Error> for StepError {
    fn from(error: queue::Error) -> Self {
        Self::Queue(error)
    }
}

impl From<FetchError> for StepError {
    fn from(error: FetchError) -> Self {
        let (why, after) = (error.to_string(), error.retry_after());
        match error.cause() {
            FetchCause::Away { .. } => Self::Away { why, after },
            FetchCause::Busy { .. } => Self::Busy(why),
            FetchCause::Disk(_) => Self::Temporary { why, after },
            _ if error.is_temporary() => Self::Temporary { why, after },
            _ => Self::Permanent(why),
        }
    }
}

impl From<OcflError> for StepError {
    fn from(error: OcflError) -> Self {
        // As with the working storage: what its file system fails by is no fault of the deposit.
        let is_of_system = matches!(&error, OcflError::Store(error) if matches!(error.kind, ErrorKind::Io(_)));
        if is_of_system || error.is_temporary() { Self::temporary(error) } else { Self::permanent(error) }
    }
}

impl From<queuekeeper_catalogue::Error> for StepError {
    fn from(error: queuekeeper_catalogue::Error) -> Self {
        if error.is_temporary() { Self::temporary(error) } else { Self::permanent(error) }
    }
}
