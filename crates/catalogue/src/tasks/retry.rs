//! How often a task is begun, and how long it waits between its attempts.

use std::time::Duration;

/// How often a task is begun before it goes to the dead letters.
pub const MOST_ATTEMPTS: u32 = 3;

/// How long a task waits after the failure of its first attempt.
const FIRST_PAUSE: Duration = Duration::from_mins(1);

/// How long a task waits that has failed in so many attempts: twice as long after each.
pub(super) fn pause(attempts: u32) -> Duration {
    FIRST_PAUSE * 2u32.saturating_pow(attempts.saturating_sub(1))
}
