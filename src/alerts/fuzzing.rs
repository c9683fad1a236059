//! The znodes of our own, for the fuzzing and for the tests that repeat what it found: outside the crate nobody else sees
//! what is read out of them without a server.

use jiff::Timestamp;

use super::decision::Decision;
use super::memory::{Memory, Together};
use super::server::Alerts;
use queuekeeper_zookeeper::coordination::Snapshot;

/// What a decision's znode says, written again; `None` where it cannot be read.
#[must_use]
pub fn decision(data: &[u8]) -> Option<Vec<u8>> {
    Decision::read(data).ok().map(|decision| decision.data())
}

/// The same of what a rule remembers.
#[must_use]
pub fn memory(data: &[u8]) -> Option<Vec<u8>> {
    Memory::read(data).ok().map(|memory| memory.data())
}

/// The same of what all rules do together.
#[must_use]
pub fn together(data: &[u8]) -> Option<Vec<u8>> {
    Together::read(data).ok().map(|together| together.data())
}

/// Has alerts see these znodes, as if they had just been read.
pub fn see(alerts: &Alerts, snapshot: Snapshot, now: Timestamp) {
    *alerts.shared.seen.write() = Some((snapshot, now));
}
