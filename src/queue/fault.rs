//! What goes wrong with a queue: the kinds of faults, and the pure rules that tell them.
//!
//! Each kind is a real failure of this queue that operators used to find by hand. The rules look at one item at a time
//! ([`judge_job`], [`judge_batch`], [`judge_request`], [`judge_lock`] and their like), given what its znodes say and a
//! few facts about its neighbours. What they tell is a [`Finding`]: a fault that is there, and from when on it counts.
//!
//! That instant is the heart of it. The daemons make five or more separate writes for one change, so a tree that they
//! work on shows nearly every fault for an instant; a fault by its shape counts only when it has lasted for
//! [`Limits::grace`]. A fault by time, such as a lock that nobody releases, counts from its limit on.

use std::fmt;

mod batch;
mod finding;
mod folder;
mod item;
mod job;
mod limits;
mod lock;
mod request;
mod stuck;
mod words;

pub use batch::{BatchFacts, judge_batch};
pub use finding::{Finding, NodeSet, Since};
pub use folder::judge_folder;
pub use item::LockFacts;
pub use job::{JobFacts, judge_job};
pub use limits::{Limits, StateLimits};
pub use lock::{CollectionFacts, UuidFacts, judge_collection, judge_lock, judge_pause, judge_storage_lock, judge_uuid};
pub use request::{RequestFacts, judge_request};
pub use stuck::{Provisioning, StateFacts, judge_state};

macro_rules! faults {
    ($( $(#[$doc:meta])* $fault:ident $label:literal, )+) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault { $( $(#[$doc])* $fault, )+ }

        impl Fault {
            /// Every kind, in the order in which they are listed.
            pub const ALL: [Self; [$(Self::$fault),+].len()] = [$(Self::$fault),+];

            /// The name, which is also the label value.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self { $(Self::$fault => $label),+ }
            }
        }
    };
}

faults! {
    /// A queue entry in a state that is not its job's.
    OrphanEntry "orphan_entry",
    /// A queue entry whose job is gone.
    StrayEntry "stray_entry",
    /// More than one queue entry of a job.
    DuplicateEntry "duplicate_entry",
    /// A job that is not final, without the queue entry of its state and priority.
    MissingEntry "missing_entry",
    /// More than one reference to a job.
    DuplicateReference "duplicate_reference",
    /// A job without its reference, a reference that its status contradicts, or one whose job is gone.
    MissingReference "missing_reference",
    /// A job that the Java daemons cannot load.
    UnloadableJob "unloadable_job",
    /// A batch that the Java daemons cannot load.
    UnloadableBatch "unloadable_batch",
    /// An access request that the Java daemons cannot load.
    UnloadableRequest "unloadable_request",
    /// A job, batch or request without any of its children.
    UnfinishedCreation "unfinished_creation",
    /// A priority that has no two digits.
    PriorityOutOfRange "priority_out_of_range",
    /// A lock that nobody will release.
    LeakedLock "leaked_lock",
    /// The lock of an object that nobody stores.
    LeakedStorageLock "leaked_storage_lock",
    /// A deleted batch that looks as if its report were due.
    DeletedBatchBlocksReporting "deleted_batch_blocks_reporting",
    /// A batch that will not come to its report or its clean-up.
    BatchWithoutEnd "batch_without_end",
    /// A state that nothing leaves.
    StuckState "stuck_state",
    /// Pending jobs of a held collection, or held jobs of one that is free.
    HeldCollectionBacklog "held_collection_backlog",
    /// A pause or hold of more than a day.
    ForgottenPause "forgotten_pause",
    /// A batch UUID that leads to no batch, or a batch that its UUID does not lead to.
    DanglingUuid "dangling_uuid",
    /// A folder of nearly as many children as a Java client can list.
    FolderNearLimit "folder_near_limit",
    /// A failed job that was resumed as often as makes sense.
    RetriesExhausted "retries_exhausted",
}

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
