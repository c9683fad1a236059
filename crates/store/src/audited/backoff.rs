//! How long to wait before something is tried again.

use std::time::Duration;

/// Waits that double, from 50 ms to a second.
pub(super) struct Backoff(Duration);

impl Backoff {
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(1);

    pub(super) fn new() -> Self {
        Self(Self::FIRST)
    }

    /// The next wait.
    pub(super) fn next(&mut self) -> Duration {
        let wait = self.0;
        self.0 = (2 * wait).min(Self::LONGEST);
        wait
    }
}
