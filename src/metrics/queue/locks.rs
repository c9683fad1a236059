//! Locks, pauses and holds.

use std::fmt;

use crate::metrics::encode::{Families, seconds};
use crate::mirror::{AGE_LABELS, LockKind, Summary};
use queuekeeper_queue::path::QueueName;

pub(super) fn write(families: &mut Families<'_>, summary: &Summary) -> fmt::Result {
    let kinds = || LockKind::ALL.into_iter().map(|kind| (kind.label(), summary.locks(kind)));
    let held = kinds().map(|(kind, locks)| ([("kind", kind)], locks.count));
    families.gauges("merritt_locks", "Number of locks by kind.", held)?;
    families.count(
        "merritt_lock_sessions",
        "Number of ZooKeeper sessions that hold at least one lock.",
        summary.lock_sessions,
    )?;
    let oldest = kinds().filter_map(|(kind, locks)| Some(([("kind", kind)], seconds(locks.oldest?))));
    families.gauges(
        "merritt_lock_oldest_created_timestamp_seconds",
        "Unix time at which the oldest lock of each kind was created.",
        oldest,
    )?;
    let bands = kinds().flat_map(|(kind, locks)| {
        AGE_LABELS.into_iter().zip(locks.by_age).map(move |(age, count)| ([("kind", kind), ("age", age)], count))
    });
    families.gauges("merritt_locks_by_age", "Number of locks by kind and age, in bands that do not overlap.", bands)?;

    let queues = || QueueName::ALL.iter().map(|&queue| (queue.label(), summary.paused(queue)));
    let paused = queues().map(|(queue, since)| ([("queue", queue)], u64::from(since.is_some())));
    families.gauges("merritt_queue_paused", "Whether the queue is paused.", paused)?;
    let since = queues().filter_map(|(queue, since)| Some(([("queue", queue)], seconds(since?))));
    families.gauges("merritt_queue_paused_timestamp_seconds", "Unix time at which the queue was paused.", since)?;
    families.count("merritt_collections_held", "Number of held collections.", summary.collections_held)?;
    families.count("merritt_stores_held", "Number of held stores.", summary.stores_held)
}
