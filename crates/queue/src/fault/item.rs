//! What the rules for jobs, batches and requests have in common.

use std::time::Duration;

use super::finding::{FaultFinding, Since, Sink};
use super::limits::ms;
use super::{Fault, Limits};
use crate::path::Path;

/// How an item cannot be loaded: a znode of it is missing.
pub(super) const LACKS_ZNODE: &str = "A znode is missing without which the daemons cannot load it.";

/// How an item cannot be loaded: a znode of it does not hold what it should.
pub(super) const HOLDS_OTHER: &str = "A znode holds something that the daemons cannot read.";

/// How an item cannot be loaded: by its status, which is JSON with a state.
pub(super) const UNKNOWN_STATUS: &str = "Its status is unknown to the daemons, or is spelled differently.";

/// The facts from a lock's stat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockFacts {
    /// When it was created, in milliseconds by the servers' clock.
    pub created_ms: i64,
    /// Whether it goes away with the session that made it.
    pub is_ephemeral: bool,
}

/// A finding by shape: it counts when it has lasted for a while.
pub(super) fn by_shape<'a>(
    fault: Fault,
    how: &'static str,
    lasting: Duration,
    hint_ms: Option<i64>,
    nodes: &'a dyn Fn() -> Vec<Path>,
) -> FaultFinding<'a> {
    let since = Since::Seen(hint_ms);
    FaultFinding { fault, how, fix: None, since, lasting_ms: ms(lasting), not_before_ms: i64::MIN, mark: 0, nodes }
}

/// A finding by time: it counts from `limit` after `from_ms` on.
pub(super) fn by_time<'a>(
    fault: Fault,
    how: &'static str,
    since_ms: i64,
    from_ms: i64,
    limit: Duration,
    nodes: &'a dyn Fn() -> Vec<Path>,
) -> FaultFinding<'a> {
    let not_before_ms = from_ms.saturating_add(ms(limit));
    FaultFinding { fault, how, fix: None, since: Since::Known(since_ms), lasting_ms: 0, not_before_ms, mark: 0, nodes }
}

/// An item that exists and has none of its children.
pub(super) fn detect_bare(own: &Path, created_ms: i64, limits: &Limits, sink: &mut Sink<'_>) {
    let how = "It exists without any of its children.";
    let nodes = || vec![own.clone()];
    sink(by_time(Fault::UnfinishedCreation, how, created_ms, created_ms, limits.creation, &nodes));
}

/// The lock of a job, batch or request. `entered_ms` is when the item entered its state, `at_rest` says that no daemon
/// works on items of that state.
pub(super) fn detect_item_lock(
    lock: LockFacts,
    path: &Path,
    entered_ms: i64,
    at_rest: bool,
    limit: Duration,
    limits: &Limits,
    sink: &mut Sink<'_>,
) {
    let nodes = || vec![path.clone()];
    let since_ms = lock.created_ms;
    // A daemon changes the state and releases the lock after it: the new state's limit begins with the state.
    let worked_on_ms = since_ms.max(entered_ms);
    if !lock.is_ephemeral {
        let how = "The lock is not ephemeral: it outlives the daemon that created it.";
        sink(by_time(Fault::LeakedLock, how, since_ms, since_ms, limits.grace, &nodes));
    }
    if at_rest {
        let how = "It is locked in a state in which no daemon works on it.";
        sink(by_time(Fault::LeakedLock, how, since_ms, worked_on_ms, limits.lock_at_rest, &nodes));
    } else {
        let how = "It has been locked for longer than the work of its state takes.";
        sink(by_time(Fault::LeakedLock, how, since_ms, worked_on_ms, limit, &nodes));
    }
}

/// An instant that was not known when the facts were taken.
pub(super) fn known(at_ms: i64) -> Option<i64> {
    (at_ms != i64::MAX).then_some(at_ms)
}
