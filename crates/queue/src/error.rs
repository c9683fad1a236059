//! Why an operation on the queue was not done.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use zookeeper_client::SessionId;

use super::fault::Fault;
use super::path::Path;
use super::record::Malformed;
use super::time::moment;

/// Why an operation on the queue was not done, or is not known to have been done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Something could not be read: the connection failed, or the server refused.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// What was being read; the first of several.
        path: Path,
        /// Why it failed.
        cause: RequestFailure,
    },
    /// A transaction was refused for a reason that lies in no other's work, such as missing rights. Nothing was done.
    #[error("cannot {operation}: {cause}")]
    Commit {
        /// The operation of the transaction that was refused, in words.
        operation: String,
        /// Why.
        cause: RequestFailure,
    },
    /// The connection was lost during a commit, and whether it was done could not be learned afterwards.
    #[error("it is unknown whether {operation} was done: {cause}")]
    Unknown {
        /// The transaction's main operation, in words.
        operation: String,
        /// Why it is not known.
        cause: RequestFailure,
    },
    /// Another client holds, changed or made the thing. Nothing was done.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// A znode that must be there is not. Nothing was done.
    #[error("{0} does not exist")]
    Missing(Path),
    /// A value that is needed cannot be read. Nothing was done.
    #[error("{path} {malformed}")]
    Decode {
        /// Whose value.
        path: Path,
        /// What is wrong with it.
        malformed: Malformed,
    },
    /// The states forbid it. Nothing was done.
    #[error("{item} may not go from {from} to {to}{}", if *.operator_may { " unless an operator requests it" } else { "" })]
    Transition {
        /// The job, batch or request.
        item: Path,
        /// Its current state, by its status.
        from: String,
        /// The requested state, or `the next state` where there is none.
        to: String,
        /// Whether an operator may request it.
        operator_may: bool,
    },
    /// A fault that was to be repaired is not there, or no longer. Nothing was done.
    #[error("{item} does not have the fault {fault} now, so there is nothing to repair")]
    NotShown {
        /// What was thought to be broken.
        item: Path,
        /// The fault.
        fault: Fault,
    },
    /// A folder has as many children as other programs can list. Nothing was done.
    #[error("{folder} has {children} children, the most that other clients can list")]
    Full {
        /// The folder.
        folder: Path,
        /// How many children it has.
        children: i32,
    },
    /// The request is not valid as it is. Nothing was done.
    #[error("{path}: {reason}")]
    Invalid {
        /// What it is about.
        path: Path,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// Whether the same call may succeed later without a repair.
    ///
    /// After [`Error::Unknown`] it may be repeated too: each operation checks the state it finds, so what was done is
    /// refused rather than done twice.
    #[must_use]
    pub fn may_be_retried(&self) -> bool {
        match self {
            Self::Read { cause, .. } | Self::Commit { cause, .. } => cause.is_connection(),
            Self::Unknown { .. } | Self::Full { .. } => true,
            Self::Conflict(conflict) => match conflict.kind {
                ConflictKind::Locked { .. } | ConflictKind::Changed { .. } | ConflictKind::Moved => true,
                ConflictKind::LockLost { .. } | ConflictKind::Exists { .. } | ConflictKind::NotEmpty => false,
            },
            Self::Missing(_)
            | Self::Decode { .. }
            | Self::Transition { .. }
            | Self::NotShown { .. }
            | Self::Invalid { .. } => false,
        }
    }

    /// Whether it is the connection or session that failed and not the request.
    #[must_use]
    pub fn is_connection(&self) -> bool {
        match self {
            Self::Read { cause, .. } | Self::Commit { cause, .. } | Self::Unknown { cause, .. } => {
                cause.is_connection()
            }
            Self::Conflict(_)
            | Self::Missing(_)
            | Self::Decode { .. }
            | Self::Transition { .. }
            | Self::NotShown { .. }
            | Self::Full { .. }
            | Self::Invalid { .. } => false,
        }
    }

    pub(super) fn conflict(path: Path, kind: ConflictKind) -> Self {
        Self::Conflict(Conflict { path, kind })
    }
}

/// What a request failed of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFailure {
    /// No answer came in time.
    #[error("ZooKeeper did not answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The server or the client library answered with an error.
    #[error(transparent)]
    Client(#[from] zookeeper_client::Error),
    /// What is found in the tree fits neither the time before nor the time after.
    #[error("the tree was changed again meanwhile")]
    ChangedSince,
    /// The request would be larger than a server takes; sent, it would cut the connection for everyone who shares it.
    #[error("a request of about {bytes} bytes exceeds the safe limit of {limit} bytes")]
    TooLarge {
        /// The estimated size.
        bytes: usize,
        /// The limit kept to.
        limit: usize,
    },
}

impl RequestFailure {
    /// Whether it is the connection or session that failed and not the request.
    #[must_use]
    pub fn is_connection(&self) -> bool {
        use zookeeper_client::Error as E;
        match self {
            Self::TimedOut(_) => true,
            Self::Client(error) => matches!(
                error,
                E::ConnectionLoss
                    | E::SessionExpired
                    | E::SessionMoved
                    | E::ClientClosed
                    | E::NoHosts
                    | E::Timeout
                    | E::Throttled
                    // The library's own words, such as for a connection without an answer.
                    | E::Custom(_)
            ),
            Self::ChangedSince | Self::TooLarge { .. } => false,
        }
    }
}

/// Who or what stands against an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} {kind}")]
pub struct Conflict {
    /// The znode that shows it.
    pub path: Path,
    /// How.
    pub kind: ConflictKind,
}

/// How an operation is stood against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    /// It is held by this lock.
    Locked {
        /// The session that holds it; `None` for a lock that is not ephemeral.
        session: Option<SessionId>,
        /// Since when, by the server's clock.
        since: Timestamp,
    },
    /// It has changed since it was read.
    Changed {
        /// The version that was seen.
        seen: i32,
        /// The version that it has.
        found: i32,
        /// When it was changed, by the server's clock.
        since: Timestamp,
    },
    /// It was made, changed or removed in the moment between reading and writing.
    Moved,
    /// A lock that its holder relies on is gone, or another's by now.
    LockLost {
        /// Who holds it now and since when, if it is held.
        now: Option<(Option<SessionId>, Timestamp)>,
    },
    /// It exists already.
    Exists {
        /// Since when, by the server's clock.
        since: Timestamp,
    },
    /// It has unexpected children.
    NotEmpty,
}

impl fmt::Display for ConflictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holder = |session: &Option<SessionId>| {
            session.map_or_else(|| "no session (persistent)".to_owned(), |session| format!("session {session}"))
        };
        match self {
            Self::Locked { session, since } => write!(f, "is held by {} since {}", holder(session), moment(*since)),
            Self::Changed { seen, found, since } => {
                write!(f, "has changed since it was seen: version {found} since {}, not {seen}", moment(*since))
            }
            Self::Moved => f.write_str("was changed concurrently"),
            Self::LockLost { now: None } => f.write_str("is no longer held"),
            Self::LockLost { now: Some((session, since)) } => {
                write!(f, "has another holder: held by {} since {}", holder(session), moment(*since))
            }
            Self::Exists { since } => write!(f, "exists since {}", moment(*since)),
            Self::NotEmpty => f.write_str("has children that should not be there"),
        }
    }
}

#[cfg(test)]
mod tests {
    use zookeeper_client::Error as Client;

    use super::*;

    const SINCE: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn a_lost_connection_is_no_fault_of_the_request() {
        for (cause, is_connection) in [
            (RequestFailure::TimedOut(Duration::from_secs(1)), true),
            (RequestFailure::Client(Client::ConnectionLoss), true),
            (RequestFailure::Client(Client::SessionExpired), true),
            (RequestFailure::Client(Client::NoAuth), false),
            (RequestFailure::ChangedSince, false),
            (RequestFailure::TooLarge { bytes: 2, limit: 1 }, false),
        ] {
            let (path, operation) = (Path::Jobs, "create /jobs".to_owned());
            let read = Error::Read { path, cause: cause.clone() };
            let commit = Error::Commit { operation: operation.clone(), cause: cause.clone() };
            assert_eq!([&read, &commit].map(Error::is_connection), [is_connection; 2], "{cause}");
            assert_eq!([&read, &commit].map(Error::may_be_retried), [is_connection; 2], "{cause}");
            let unknown = Error::Unknown { operation, cause };
            assert_eq!((unknown.is_connection(), unknown.may_be_retried()), (is_connection, true));
        }
    }

    #[test]
    fn what_others_did_may_be_tried_again_unless_it_lasts() {
        let session = Some(SessionId(0x2a));
        for (kind, may_be_retried, words) in [
            (
                ConflictKind::Locked { session, since: SINCE },
                true,
                "is held by session 0x2a since 1970-01-01 00:00:00 UTC",
            ),
            (
                ConflictKind::Locked { session: None, since: SINCE },
                true,
                "is held by no session (persistent) since 1970-01-01 00:00:00 UTC",
            ),
            (
                ConflictKind::Changed { seen: 2, found: 3, since: SINCE },
                true,
                "has changed since it was seen: version 3 since 1970-01-01 00:00:00 UTC, not 2",
            ),
            (ConflictKind::Moved, true, "was changed concurrently"),
            (ConflictKind::LockLost { now: None }, false, "is no longer held"),
            (
                ConflictKind::LockLost { now: Some((session, SINCE)) },
                false,
                "has another holder: held by session 0x2a since 1970-01-01 00:00:00 UTC",
            ),
            (ConflictKind::Exists { since: SINCE }, false, "exists since 1970-01-01 00:00:00 UTC"),
            (ConflictKind::NotEmpty, false, "has children that should not be there"),
        ] {
            let error = Error::conflict(Path::Jobs, kind);
            assert_eq!((error.to_string(), error.may_be_retried()), (format!("/jobs {words}"), may_be_retried));
            assert!(!error.is_connection());
        }
        let invalid = Error::Invalid { path: Path::Jobs, reason: "odd".to_owned() };
        for error in [Error::Missing(Path::Jobs), invalid] {
            assert!(!error.may_be_retried() && !error.is_connection(), "{error}");
        }
    }
}
