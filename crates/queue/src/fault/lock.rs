//! The faults of what lies below `/locks` and `/batch-uuids`.

use super::finding::{FaultFinding, Sink};
use super::item::{LockFacts, by_shape, by_time};
use super::limits::ms;
use super::{Fault, Limits, Since};
use crate::path::Path;

/// Detects the faults of the lock of an object being recorded, or of a local id being minted.
pub fn detect_lock(path: &Path, lock: LockFacts, limits: &Limits, sink: &mut Sink<'_>) {
    let nodes = || vec![path.clone()];
    let at_ms = lock.created_ms;
    if !lock.is_ephemeral {
        let how = "The lock is not ephemeral: it outlives the daemon that created it.";
        sink(by_time(Fault::LeakedLock, how, at_ms, at_ms, limits.grace, &nodes));
    }
    let how = "It has been held for longer than such work takes.";
    sink(by_time(Fault::LeakedLock, how, at_ms, at_ms, limits.object_lock, &nodes));
}

/// Detects the faults of the lock of an object being stored. `is_stored` says whether a job in Storing has that object.
pub fn detect_storage_lock(path: &Path, lock: LockFacts, is_stored: bool, limits: &Limits, sink: &mut Sink<'_>) {
    if is_stored {
        return;
    }
    sink(FaultFinding {
        fault: Fault::LeakedStorageLock,
        how: "No job in Storing has the object.",
        fix: None,
        since: Since::Known(lock.created_ms),
        // The job may be just on its way to the next state, and the lock be the next to go.
        lasting_ms: ms(limits.grace),
        not_before_ms: lock.created_ms.saturating_add(ms(limits.storage_lock)),
        mark: lock.created_ms.cast_unsigned(),
        nodes: &|| vec![path.clone()],
    });
}

/// Detects the faults of a paused queue, or of a held collection or store, by the lock that makes it one.
pub fn detect_pause(path: &Path, lock: LockFacts, limits: &Limits, sink: &mut Sink<'_>) {
    let at_ms = lock.created_ms;
    let how = "It has been in force for a long time.";
    sink(by_time(Fault::ForgottenPause, how, at_ms, at_ms, limits.pause, &|| vec![path.clone()]));
}

/// What is known of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectionFacts {
    /// Whether it is held.
    pub is_held: bool,
    /// How many of its jobs are Pending.
    pub pending: u64,
    /// How many of its jobs are Held, but for those that an operator held by themselves.
    pub held: u64,
}

/// Detects the faults of a collection. `nodes` gives its lock and some of the jobs that show it.
pub fn detect_collection(
    collection: CollectionFacts,
    limits: &Limits,
    nodes: &dyn Fn() -> Vec<Path>,
    sink: &mut Sink<'_>,
) {
    let how = match collection {
        CollectionFacts { is_held: true, pending: 1.., .. } => "The collection is held and has pending jobs.",
        CollectionFacts { is_held: false, held: 1.., .. } => {
            "The collection is not held, and some of its jobs still are."
        }
        CollectionFacts { .. } => return,
    };
    let mark = collection.is_held.into();
    let finding = by_shape(Fault::HeldCollectionBacklog, how, limits.held_backlog, None, nodes);
    sink(FaultFinding { mark, ..finding });
}

/// What is known of an entry below `/batch-uuids`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UuidFacts {
    /// When it was last written, in milliseconds by the servers' clock.
    pub written_ms: i64,
    /// Where its text leads.
    pub leads: UuidLeads,
}

/// Where an entry below `/batch-uuids` leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UuidLeads {
    /// To a batch that is there.
    ToBatch,
    /// To one, if white space around its id is ignored; the daemons do not ignore it.
    InSpaces,
    /// To none.
    Nowhere,
}

/// Detects the faults of an entry below `/batch-uuids`.
pub fn detect_uuid(path: &Path, uuid: UuidFacts, limits: &Limits, sink: &mut Sink<'_>) {
    let how = match uuid.leads {
        UuidLeads::ToBatch => return,
        UuidLeads::InSpaces => "There is white space around the batch's id, and the daemons find no such batch.",
        UuidLeads::Nowhere => "The UUID leads to no batch.",
    };
    sink(by_shape(Fault::DanglingUuid, how, limits.grace, Some(uuid.written_ms), &|| vec![path.clone()]));
}
