//! What can be selected from the lists of batches, access requests, locks and faults, and what they are made of.

use std::sync::Arc;

use jiff::Timestamp;

pub use super::page::{Cursor, InvalidCursor, ListError, Page, PageRequest};

use super::image::{Batch, LockStat};
use super::situation::PauseSituation;
use super::summary::{ByState, LockKind};
use queuekeeper_queue::path::{AccessQueue, Path};
use queuekeeper_queue::state::{AccessState, BatchState, JobState};

macro_rules! orders {
    ($(#[$doc:meta])* $type:ident { $( $(#[$action_doc:meta])* $order:ident $label:literal, )+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $type { $( $(#[$action_doc])* $order, )+ }

        impl $type {
            /// Every order.
            pub const ALL: &'static [Self] = &[$(Self::$order),+];

            /// Its name.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self { $(Self::$order => $label),+ }
            }

            /// The order of that name.
            #[must_use]
            pub fn from_label(label: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|order| order.label() == label)
            }
        }
    };
}

orders! {
    /// In what order batches are listed.
    BatchOrder {
        /// Last created first.
        #[default]
        Newest "newest",
        /// First created first.
        Oldest "oldest",
        /// Unfinished ones first, the longest in their state on top.
        Waiting "waiting",
        /// Last changed first.
        Changed "changed",
        /// Those with the most jobs first.
        Jobs "jobs",
        /// Those with the most failed jobs first.
        Failed "failed",
        /// By the mnemonic of their collection; those of none last.
        Collection "collection",
    }
}

orders! {
    /// In what order access requests are listed.
    RequestOrder {
        /// Unfinished ones first, the longest in their state on top.
        #[default]
        Waiting "waiting",
        /// Last changed first.
        Changed "changed",
        /// Last created first.
        Newest "newest",
        /// First created first.
        Oldest "oldest",
        /// Those that ask for the most bytes first.
        Largest "largest",
        /// Those that ask for the fewest bytes first.
        Smallest "smallest",
    }
}

orders! {
    /// In what order locks are listed. One that is not readable comes last.
    LockOrder {
        /// Held longest first.
        #[default]
        Oldest "oldest",
        /// Last acquired first.
        Newest "newest",
        /// By what they protect: by kind, and then by path.
        Guards "guards",
        /// By the session that holds them; persistent locks come behind those of sessions.
        Session "session",
    }
}

orders! {
    /// In what order groups of failed jobs are listed.
    FailureOrder {
        /// Those of the most jobs first.
        #[default]
        Largest "largest",
        /// Those of the job that failed last first.
        Newest "newest",
        /// Those of the job that failed first, first.
        Oldest "oldest",
    }
}

orders! {
    /// In what order faults are listed.
    FaultOrder {
        /// Kind by kind; of each kind, those first that are there for the longest time.
        #[default]
        Kind "kind",
        /// Those first that are there for the longest time.
        Oldest "oldest",
        /// Those first that came last.
        Newest "newest",
    }
}

/// Which batches are listed: those that fit everything that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchQuery {
    /// In this state; `Some(None)` for those in none that we know.
    pub state: Option<Option<BatchState>>,
    /// Of the collection with this mnemonic.
    pub collection: Option<String>,
    /// With this text, in any case, in id, UUID, file name, title or submitter.
    pub text: Option<String>,
}

/// A batch with what is known of its jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchDetail {
    /// The batch itself.
    pub batch: Batch,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Its jobs by state: those whose own `bid` names it, whatever the references say.
    pub jobs: ByState<JobState, u32>,
}

/// Which access requests are listed: those that fit everything that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestQuery {
    /// Of this queue.
    pub queue: Option<AccessQueue>,
    /// In this state; `Some(None)` for those in none that we know.
    pub state: Option<Option<AccessState>>,
    /// So long in their state, as an index of [`AGE_LABELS`](super::AGE_LABELS).
    pub age: Option<usize>,
    /// With this text, in any case, in id or token.
    pub text: Option<String>,
}

/// Which locks are listed: those that fit everything that is given; and in what order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockQuery {
    /// Of this kind.
    pub kind: Option<LockKind>,
    /// So old, as an index of [`AGE_LABELS`](super::AGE_LABELS).
    pub age: Option<usize>,
    /// Held by this session; 0 for persistent locks, which are held by none.
    pub session: Option<i64>,
    /// The order.
    pub order: LockOrder,
}

/// A lock in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedLock {
    /// Its kind.
    pub kind: LockKind,
    /// Its path.
    pub path: Path,
    /// Who holds it; `None` where it is not readable.
    pub stat: Option<LockStat>,
    /// When it was created, by our own clock.
    pub created: Option<Timestamp>,
    /// Who paused the queue or holds the collection, and why; `None` for a lock on anything else.
    pub pause: Option<PauseSituation>,
}

/// A session, and how many locks it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLocks {
    /// Its id; 0 for that of persistent locks.
    pub session: i64,
    /// All that it holds.
    pub locks: u64,
    /// Of these, those on jobs.
    pub jobs: u64,
}

/// A collection, and how many batches it has.
pub type CollectionBatches = (Arc<str>, u32);
