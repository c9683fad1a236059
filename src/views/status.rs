//! How far the mirror can be trusted.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::mirror::Freshness;

/// The connection to ZooKeeper, and how far the mirror of the queue can be trusted.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Status {
    /// When this was answered, by the clock of this host.
    pub(crate) now: Timestamp,
    /// Where ZooKeeper is: hosts, ports and chroot.
    pub(crate) servers: String,
    /// Whether there is a connection to ZooKeeper.
    pub(crate) connected: bool,
    /// Whether the mirror follows the tree: if not, everything else is as it was at `stale_since`.
    pub(crate) synced: bool,
    /// Since when the mirror does not follow the tree.
    pub(crate) stale_since: Option<Timestamp>,
    /// Why not, in a sentence.
    pub(crate) problem: Option<String>,
    /// The session's id, in the notation of ZooKeeper's log.
    pub(crate) session: Option<String>,
    /// When the last watch event came.
    pub(crate) last_event: Option<Timestamp>,
    /// When the whole tree was last read.
    pub(crate) last_walk: Option<Timestamp>,
    /// How long that took.
    pub(crate) last_walk_seconds: Option<f64>,
    /// By how many seconds the clock of the ZooKeeper servers is ahead of the clock of this host; negative where it is
    /// behind, null while unknown. Ages are computed from the servers' clock.
    pub(crate) clock_offset_seconds: Option<f64>,
    /// Whether that was measured. If not, it was inferred from what the servers dated and may be more: ages may be off
    /// by the difference.
    pub(crate) clock_measured: bool,
    /// Why the clock of the servers cannot be measured; null if it can, and where that is switched off.
    pub(crate) clock_problem: Option<String>,
    /// The difference, where it is worth a word.
    #[serde(skip)]
    pub(crate) clock_difference: Option<SignedDuration>,
}

impl Status {
    pub(crate) fn new(freshness: &Freshness, servers: String, now: Timestamp) -> Self {
        Self {
            now,
            servers,
            connected: freshness.is_connected(),
            synced: freshness.is_synced(),
            stale_since: freshness.stale_since,
            problem: freshness.problem.clone(),
            session: freshness.session.clone(),
            last_event: freshness.last_event,
            last_walk: freshness.last_walk,
            last_walk_seconds: freshness.last_walk_duration.map(|took| took.as_secs_f64()),
            clock_offset_seconds: freshness.clock.ahead_ms.map(|ahead_ms| ahead_ms as f64 / 1_000.0),
            clock_measured: freshness.clock.is_measured,
            clock_problem: freshness.clock.problem.clone(),
            clock_difference: freshness.clock.difference(),
        }
    }
}
