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
        "Whether the mirror is complete and follows the ZooKeeper tree.",
        u64::from(freshness.is_synced()),
    )?;
    families.gauge(
        "queuekeeper_mirror_last_event_timestamp_seconds",
        "Unix time of the last watch event.",
        freshness.last_event.map(seconds),
    )?;
    families.gauge(
        "queuekeeper_mirror_last_walk_timestamp_seconds",
        "Unix time at which the last walk of the tree finished.",
        freshness.last_walk.map(seconds),
    )?;
    families.gauge(
        "queuekeeper_mirror_walk_duration_seconds",
        "Duration of the last walk of the tree in seconds.",
        freshness.last_walk_duration.map(|duration| duration.as_secs_f64()),
    )?;
    families.gauge(
        "queuekeeper_zookeeper_clock_offset_seconds",
        "Offset of the ZooKeeper servers' clock from the clock of this host in seconds; positive when the servers are ahead.",
        freshness.clock.ahead_ms.map(|ahead_ms| ahead_ms as f64 / 1_000.0),
    )?;
    families.count(
        "queuekeeper_mirror_znodes",
        "Number of znodes in the mirror.",
        summary.map_or(0, |summary| summary.znodes),
    )?;
    families.count(
        "queuekeeper_mirror_unreadable_znodes",
        "Number of znodes that cannot be decoded, are not readable with these credentials, or have an unexpected name.",
        summary.map_or(0, |summary| summary.unreadable),
    )
}
