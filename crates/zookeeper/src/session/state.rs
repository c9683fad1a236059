//! The state of a connection, and how sessions end.

use std::sync::Arc;

use tokio::time::Instant;
use zookeeper_client::SessionId;

use crate::connect::ConnectError;

/// The state of our connection to ZooKeeper.
#[derive(Clone, Debug)]
pub enum Connection {
    /// No session; one is being established.
    Connecting {
        /// When the search began.
        since: Instant,
        /// How many attempts of this search have failed.
        failed_attempts: u64,
        /// Why the last of them failed; `None` before the first has. While the chroot is missing, it is
        /// [`ConnectError::NoChroot`], and there is a session that waits for it.
        last_error: Option<Arc<ConnectError>>,
    },
    /// A session with a connection.
    Connected {
        /// When the connection was made.
        since: Instant,
        /// The session, as in the `ephemeralOwner` of its nodes.
        session: SessionId,
        /// Which session of this process it is, from 1.
        sessions: u64,
        /// Which connection of this process it is, from 1. Persistent watches do not survive the change to another.
        connections: u64,
    },
    /// A session without a connection: the client library tries all servers in turn until the session is over or, by
    /// [`Sessions::without_ephemerals`](super::Sessions::without_ephemerals), replaced.
    Disconnected {
        /// When the connection was lost.
        since: Instant,
        /// The session, which may still be saved.
        session: SessionId,
    },
    /// The session is over, and no other is being established yet.
    Ended {
        /// When it was seen to be over.
        since: Instant,
        /// How it ended.
        end: SessionEnd,
    },
}

impl Connection {
    /// Whether requests are answered now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        match self {
            Self::Connected { .. } => true,
            Self::Connecting { .. } | Self::Disconnected { .. } | Self::Ended { .. } => false,
        }
    }

    /// Why there is no connection to work with, in one line; `None` while there is.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Connected { .. } => None,
            Self::Connecting { last_error: Some(error), .. } => Some(error.to_string()),
            Self::Connecting { last_error: None, .. } => Some("connecting to ZooKeeper".to_owned()),
            Self::Disconnected { .. } => Some("the connection to ZooKeeper is lost".to_owned()),
            Self::Ended { .. } => Some("the session with ZooKeeper has ended".to_owned()),
        }
    }

    /// Since when it is so.
    #[must_use]
    pub fn since(&self) -> Instant {
        match self {
            Self::Connecting { since, .. }
            | Self::Connected { since, .. }
            | Self::Disconnected { since, .. }
            | Self::Ended { since, .. } => *since,
        }
    }
}

/// How a session ended. Its ephemeral znodes are gone or soon will be, and its client will answer nothing more; one
/// that was replaced may be answered once more, and then closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// Without contact for too long, by the server's word or, after 7/5 of the session timeout, by the library's.
    Expired,
    /// A server refused our credentials when the session moved to it.
    AuthFailed,
    /// Closed from our side: the last clone of its client was dropped.
    Closed,
    /// Given up without a connection, since there is another session already:
    /// [`Sessions::establish`](super::Sessions::establish) returns it. The client library closes it when it finds a
    /// server again, or forgets it after 7/5 of the session timeout.
    Replaced,
}
