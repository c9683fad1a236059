//! What an operator sets for cleanup.

use std::time::Duration;

/// What an operator sets for cleanup.
#[derive(Clone, Copy, Debug)]
pub struct CleanupSettings {
    /// How long a batch is kept that is completed or deleted, and the working files of what has ended.
    pub after: Duration,
    /// The largest share of the directories of the working storage that one run removes.
    pub share: f64,
    /// How often it looks.
    pub every: Duration,
    /// How long the queue entry of a completed job is kept.
    pub entries_after: Duration,
    /// How often the working storage is looked through, by all processes together.
    pub directories_every: Duration,
    /// How long a message is kept that was delivered or given up.
    pub messages_after: Duration,
    /// How long a job may write nothing more of a version before its object is repaired.
    pub objects_after: Duration,
}

impl Default for CleanupSettings {
    fn default() -> Self {
        let (hour, month) = (Duration::from_hours(1), Duration::from_hours(30 * 24));
        Self {
            after: month,
            share: 0.1,
            every: Duration::from_mins(5),
            entries_after: hour,
            directories_every: Duration::from_hours(24),
            messages_after: month,
            objects_after: Duration::from_hours(24),
        }
    }
}
