//! Access to the znode formats for the fuzz targets and their regression tests; other code outside this crate has no
//! use for it.

use jiff::Timestamp;

use super::decision::Decision;
use super::memory::{Memory, SharedBudget};
use super::server::Alerts;
use queuekeeper_zookeeper::coordination::Snapshot;

/// A decision, parsed and serialized again; `None` if it is not valid.
#[must_use]
pub fn decision(data: &[u8]) -> Option<Vec<u8>> {
    Decision::read(data).ok().map(|decision| decision.data())
}

/// The same for the state of a rule.
#[must_use]
pub fn memory(data: &[u8]) -> Option<Vec<u8>> {
    Memory::read(data).ok().map(|memory| memory.data())
}

/// The same for the shared budget.
#[must_use]
pub fn together(data: &[u8]) -> Option<Vec<u8>> {
    SharedBudget::read(data).ok().map(|together| together.data())
}

/// Replaces the znodes that the alerts have read.
pub fn see(alerts: &Alerts, snapshot: Snapshot, now: Timestamp) {
    *alerts.shared.seen.write() = Some((snapshot, now));
}
