//! How far the image can be trusted: connection, first walk, age.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

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
    /// Whether the mirror was ever complete.
    pub was_synced: bool,
    /// When the last watch event came.
    pub last_event: Option<Timestamp>,
    /// When the last walk ended; `None` before the first one, when there is no image at all.
    pub last_walk: Option<Timestamp>,
    /// How long the last walk took.
    pub last_walk_duration: Option<Duration>,
    /// How the servers' clock, by which everything in the tree is dated, stands to ours.
    pub clock: ServerClock,
}

/// What is known of the clock of the ZooKeeper servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerClock {
    /// By how many milliseconds it is ahead of ours; `None` while it is unknown. Ages are counted as if they agreed
    /// then.
    pub ahead_ms: Option<i64>,
    /// Whether that was measured by a write. If not, it was learnt from changes and may be more.
    pub is_measured: bool,
    /// Why it cannot be measured, as long as that is so and it is being tried.
    pub problem: Option<String>,
}

impl ServerClock {
    /// The difference, where it is worth a word: clocks that are kept by NTP agree within a fraction of a second.
    #[must_use]
    pub fn difference(&self) -> Option<SignedDuration> {
        const WORTH: SignedDuration = SignedDuration::from_secs(5);
        self.ahead_ms.map(SignedDuration::from_millis).filter(|ahead| ahead.abs() > WORTH)
    }
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
