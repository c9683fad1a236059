//! How far the image can be trusted: connection, first walk, age.

use std::time::Duration;

use jiff::Timestamp;

/// How the mirror stands to ZooKeeper at one moment. Instants are by our own clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// The session in use, as ZooKeeper prints it; `None` while there is no connection.
    pub session: Option<String>,
    /// Why there is no connection or no image, in one line; `None` where all is well.
    pub problem: Option<String>,
    /// Since when the image may be behind: since the connection was lost, or since it came back until the tree is
    /// walked again. `None` while the image follows the tree.
    pub stale_since: Option<Timestamp>,
    /// When the last watch event came.
    pub last_event: Option<Timestamp>,
    /// When the last walk ended; `None` before the first one, when there is no image at all.
    pub last_walk: Option<Timestamp>,
    /// How long the last walk took.
    pub last_walk_duration: Option<Duration>,
}

impl Freshness {
    /// Whether there is a connection.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.session.is_some()
    }

    /// Whether there is an image and it follows the tree.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.last_walk.is_some() && self.stale_since.is_none()
    }

    /// For how long the image may have been behind; zero while it follows the tree.
    #[must_use]
    pub fn stale_for(&self, now: Timestamp) -> Duration {
        self.stale_since
            .map_or(Duration::ZERO, |since| Duration::try_from(now.duration_since(since)).unwrap_or(Duration::ZERO))
    }
}
