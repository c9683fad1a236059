//! What goes wrong with a queue: the kinds of faults, and the pure rules that detect them.
//!
//! Each kind is a real failure of this queue that operators used to find by hand. The rules look at one item at a time
//! ([`detect_job`], [`detect_batch`], [`detect_request`], [`detect_lock`] and their like), given what its znodes say
//! and a few facts about its neighbours. What they detect is a [`FaultFinding`]: a fault that is there, and from when
//! on it counts.
//!
//! That instant is the heart of it. The daemons make five or more separate writes for one change, so a tree that they
//! work on shows nearly every fault for an instant; a fault by its shape counts only when it has lasted for
//! [`Limits::grace`]. A fault by time, such as a lock that is not released, counts from its limit on.

use std::fmt;

mod batch;
mod finding;
mod folder;
mod item;
mod job;
mod kind;
mod limits;
mod lock;
mod name;
mod repair;
mod request;
mod stuck;
mod table;

pub use batch::{BatchFacts, detect_batch};
pub use finding::{FaultFinding, NodeSet, Since};
pub use folder::detect_folder;
pub use item::LockFacts;
pub use job::{JobFacts, detect_job};
pub use kind::{Blocks, RepairKind, Severity};
pub use limits::{FaultLimit, Limits, StateLimits};
pub use lock::{
    CollectionFacts, UuidFacts, UuidLeads, detect_collection, detect_lock, detect_pause, detect_storage_lock,
    detect_uuid,
};
pub use name::{Misnamed, detect_name};
pub(super) use repair::PURGE_UNFINISHED;
pub use request::{RequestFacts, detect_request};
pub use stuck::{FREE_SPACE, Provisioning, StateFacts, Stop, detect_state};
pub use table::Fault;

impl Fault {
    /// The fault of that name.
    #[must_use]
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.label() == label)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

#[cfg(test)]
mod tests;
