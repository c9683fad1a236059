//! How the image stands to the tree.

use std::fmt;

use crate::metrics::encode::{Families, seconds};
use crate::mirror::{Freshness, Summary};

pub(super) fn write(families: &mut Families<'_>, freshness: &Freshness, summary: Option<&Summary>) -> fmt::Result {
    families.count(
        "queuekeeper_zookeeper_connected",
        "Whether there is a session with ZooKeeper.",
        u64::from(freshness.is_connected()),
    )?;
    families.count(
        "queuekeeper_mirror_synced",
        "Whether there is an image of the queue and it follows the tree.",
        u64::from(freshness.is_synced()),
    )?;
    families.gauge(
        "queuekeeper_mirror_last_event_timestamp_seconds",
        "When the last watch event came.",
        freshness.last_event.map(seconds),
    )?;
    families.gauge(
        "queuekeeper_mirror_last_walk_timestamp_seconds",
        "When the last walk through the tree ended.",
        freshness.last_walk.map(seconds),
    )?;
    families.gauge(
        "queuekeeper_mirror_walk_duration_seconds",
        "How long the last walk through the tree took.",
        freshness.last_walk_duration.map(|duration| duration.as_secs_f64()),
    )?;
    families.gauge(
        "queuekeeper_zookeeper_clock_offset_seconds",
        "By how much the clock of the ZooKeeper servers is ahead of the clock of this host; negative where it is behind.",
        freshness.clock.ahead_ms.map(|ahead_ms| ahead_ms as f64 / 1_000.0),
    )?;
    families.count("queuekeeper_mirror_znodes", "Znodes in the image.", summary.map_or(0, |summary| summary.znodes))?;
    families.count(
        "queuekeeper_mirror_unreadable_znodes",
        "Znodes that hold garbage, are not ours to read, or have a name that nobody expects.",
        summary.map_or(0, |summary| summary.unreadable),
    )
}
