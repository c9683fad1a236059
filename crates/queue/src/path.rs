//! The path grammar: the only place that builds a znode's path or takes one apart.
//!
//! [`Path`] names every znode of the queue by what it is. Reading is total: a path that the grammar does not know
//! becomes [`Path::Unexpected`] with its first unexpected part, so that whatever a client leaves in the tree is one
//! thing to count, and nothing below it needs to be read.

use std::fmt;

use super::id::{BatchId, JobId, RequestId};
use super::state::{JobOutcome, JobState, State};

mod any;
mod own;
mod parse;
mod relation;

pub use any::{InvalidPath, NodePath};
pub use own::OwnNode;

/// A child of a job's znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobNode {
    /// The batch id, as text.
    Bid,
    /// The job's parameters, JSON, never changed.
    Configuration,
    /// State, last success, retries and message, JSON.
    Status,
    /// The priority, text.
    Priority,
    /// Bytes of working storage it needs, text; 0 or -1 where unknown.
    SpaceNeeded,
    /// ARK and local ids, JSON; optional.
    Identifiers,
    /// The same under the name that an older form used; optional.
    Identifier,
    /// Kernel metadata, JSON; optional.
    Metadata,
    /// What the storage service is to do, JSON; optional.
    Store,
    /// What the inventory is to do, JSON; optional.
    Inventory,
    /// Ephemeral: a daemon is working on the job.
    Lock,
}

/// A child of a batch's znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BatchNode {
    /// The submission, JSON, never changed.
    Submission,
    /// State and message, JSON.
    Status,
    /// Failed and successful jobs, JSON; optional.
    StatusReport,
    /// Ephemeral: a daemon is working on the batch.
    Lock,
    /// Holds a folder per [`JobOutcome`]; absent until the batch is acquired.
    States,
}

/// A child of an access request's znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestNode {
    /// What is to be assembled, JSON.
    Token,
    /// State and message, JSON.
    Status,
    /// Ephemeral: a daemon is working on the request.
    Lock,
}

macro_rules! node_names {
    ($type:ident { $($node:ident $name:literal),+ $(,)? }) => {
        impl $type {
            /// Every such child.
            pub const ALL: &'static [Self] = &[$(Self::$node),+];

            /// The znode's name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$node => $name),+ }
            }

            /// Reads a znode's name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$node),)+ _ => None }
            }
        }
    };
}

node_names!(JobNode {
    Bid "bid",
    Configuration "configuration",
    Status "status",
    Priority "priority",
    SpaceNeeded "space_needed",
    Identifiers "identifiers",
    Identifier "identifier",
    Metadata "metadata",
    Store "store",
    Inventory "inventory",
    Lock "lock",
});
node_names!(BatchNode {
    Submission "submission",
    Status "status",
    StatusReport "status-report",
    Lock "lock",
    States "states",
});
node_names!(RequestNode { Token "token", Status "status", Lock "lock" });

/// The two queues of access requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessQueue {
    /// `/access/small`
    Small,
    /// `/access/large`
    Large,
}

node_names!(AccessQueue { Small "small", Large "large" });

/// The queues that an admin can pause, by their lock below `/locks/queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueName {
    /// Stops the daemons of ingest, also those whose work frees space; not those of states that continue
    /// ([`State::continues_when_paused`]).
    Ingest,
    /// Small access requests.
    AccessSmall,
    /// Large access requests.
    AccessLarge,
}

node_names!(QueueName { Ingest "ingest", AccessSmall "accessSmall", AccessLarge "accessLarge" });

impl From<AccessQueue> for QueueName {
    fn from(queue: AccessQueue) -> Self {
        match queue {
            AccessQueue::Small => Self::AccessSmall,
            AccessQueue::Large => Self::AccessLarge,
        }
    }
}

impl QueueName {
    /// The name within a sentence, before the word `queue`.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::AccessSmall => "small access",
            Self::AccessLarge => "large access",
        }
    }

    /// The name in metrics and in JSON.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::AccessSmall => "access_small",
            Self::AccessLarge => "access_large",
        }
    }
}

/// The folders below `/locks`, but for `queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockFolder {
    /// Held collections, by mnemonic.
    Collections,
    /// Objects being stored, by ARK.
    Storage,
    /// Objects being recorded, by ARK.
    Inventory,
    /// Local ids being minted, by id and owner.
    LocalId,
}

node_names!(LockFolder {
    Collections "collections",
    Storage "storage",
    Inventory "inventory",
    LocalId "localid",
});

/// A folder below `/jobs/states`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateFolder {
    /// The folder of a state.
    Known(JobState),
    /// A folder of a state that this version does not know.
    Other(Box<str>),
}

impl StateFolder {
    /// The state whose folder it is, if it is known.
    #[must_use]
    pub fn state(&self) -> Option<JobState> {
        match self {
            Self::Known(state) => Some(*state),
            Self::Other(_) => None,
        }
    }

    /// The longest name of a state, in bytes. ZooKeeper takes names of nearly 1 MiB, of which two fill a request.
    pub const LONGEST: usize = 255;

    /// Reads a folder's name; `None` for one that is longer than any state's may be.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let known = JobState::ALL.iter().copied().find(|state| state.label() == name);
        known.map(Self::Known).or_else(|| (name.len() <= Self::LONGEST).then(|| Self::Other(name.into())))
    }
}

impl fmt::Display for StateFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Known(state) => state.label(),
            Self::Other(name) => name,
        })
    }
}

impl From<JobState> for StateFolder {
    fn from(state: JobState) -> Self {
        Self::Known(state)
    }
}

/// The name of a queue entry, `PP-jidNNNNNNNNNN`. Sorted by name, the entries of a state are the order of work.
///
/// The priority is any number here, since entries such as `100-jid0000000042` are a fault of production that has to be
/// shown and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryName {
    /// The priority in the name, within 0..=99 unless the entry is at fault.
    pub priority: i32,
    /// The job that it queues.
    pub job: JobId,
}

impl EntryName {
    /// The entry of a job of that priority.
    #[must_use]
    pub fn of(priority: super::id::Priority, job: JobId) -> Self {
        Self { priority: i32::from(priority.number()), job }
    }

    /// Reads an entry's name; only a text that [`fmt::Display`] would write is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let at = name.rfind('-')?;
        let entry = Self { priority: name[..at].parse().ok()?, job: name[at + 1..].parse().ok()? };
        (entry.to_string() == name).then_some(entry)
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}-{}", self.priority, self.job)
    }
}

/// A znode of the queue, named by what it is; [`fmt::Display`] writes its path relative to the chroot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Path {
    /// `/`
    Root,
    /// `/batch-uuids`
    BatchUuids,
    /// `/batch-uuids/UUID`
    BatchUuid(Box<str>),
    /// `/batches`
    Batches,
    /// `/batches/BID`
    Batch(BatchId),
    /// `/batches/BID/submission` and so on
    BatchNode(BatchId, BatchNode),
    /// `/batches/BID/states/batch-processing` and so on
    BatchOutcome(BatchId, JobOutcome),
    /// `/batches/BID/states/batch-processing/JID` and so on
    Reference(BatchId, JobOutcome, JobId),
    /// `/jobs`
    Jobs,
    /// `/jobs/JID`
    Job(JobId),
    /// `/jobs/JID/status` and so on
    JobNode(JobId, JobNode),
    /// `/jobs/states`
    JobStates,
    /// `/jobs/states/STATE`
    StateFolder(StateFolder),
    /// `/jobs/states/STATE/PP-JID`
    Entry(StateFolder, EntryName),
    /// `/access`
    Access,
    /// `/access/small` or `/access/large`
    AccessQueue(AccessQueue),
    /// `/access/small/QID`
    Request(AccessQueue, RequestId),
    /// `/access/small/QID/token` and so on
    RequestNode(AccessQueue, RequestId, RequestNode),
    /// `/locks`
    Locks,
    /// `/locks/queue`
    QueueLocks,
    /// `/locks/queue/ingest` and so on
    QueueLock(QueueName),
    /// `/locks/storage` and so on
    LockFolder(LockFolder),
    /// `/locks/storage/NAME` and so on
    NamedLock(LockFolder, Box<str>),
    /// `/locks/queue/localid`, where the published design has the folder of local id locks
    PublishedLocalIds,
    /// `/locks/queue/localid/NAME`
    PublishedLocalId(Box<str>),
    /// A znode at or below `/zookeeper` or `/queuekeeper`: there by right, but no part of the queue
    Foreign,
    /// The first part of a path that nothing of the above explains
    Unexpected(Box<str>),
    /// A znode below `/queuekeeper`, by its whole path: it is written and shown together with the queue's, and never
    /// counted as one of them
    Own(Box<str>),
}

impl Path {
    /// The queue entry of a job in a state.
    #[must_use]
    pub fn entry(state: JobState, priority: super::id::Priority, job: JobId) -> Self {
        Self::Entry(state.into(), EntryName::of(priority, job))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("/"),
            Self::BatchUuids => f.write_str("/batch-uuids"),
            Self::BatchUuid(uuid) => write!(f, "/batch-uuids/{uuid}"),
            Self::Batches => f.write_str("/batches"),
            Self::Batch(bid) => write!(f, "/batches/{bid}"),
            Self::BatchNode(bid, node) => write!(f, "/batches/{bid}/{}", node.name()),
            Self::BatchOutcome(bid, outcome) => write!(f, "/batches/{bid}/states/{}", outcome.folder()),
            Self::Reference(bid, outcome, jid) => write!(f, "/batches/{bid}/states/{}/{jid}", outcome.folder()),
            Self::Jobs => f.write_str("/jobs"),
            Self::Job(jid) => write!(f, "/jobs/{jid}"),
            Self::JobNode(jid, node) => write!(f, "/jobs/{jid}/{}", node.name()),
            Self::JobStates => f.write_str("/jobs/states"),
            Self::StateFolder(folder) => write!(f, "/jobs/states/{folder}"),
            Self::Entry(folder, entry) => write!(f, "/jobs/states/{folder}/{entry}"),
            Self::Access => f.write_str("/access"),
            Self::AccessQueue(queue) => write!(f, "/access/{}", queue.name()),
            Self::Request(queue, qid) => write!(f, "/access/{}/{qid}", queue.name()),
            Self::RequestNode(queue, qid, node) => write!(f, "/access/{}/{qid}/{}", queue.name(), node.name()),
            Self::Locks => f.write_str("/locks"),
            Self::QueueLocks => f.write_str("/locks/queue"),
            Self::QueueLock(queue) => write!(f, "/locks/queue/{}", queue.name()),
            Self::LockFolder(folder) => write!(f, "/locks/{}", folder.name()),
            Self::NamedLock(folder, name) => write!(f, "/locks/{}/{name}", folder.name()),
            Self::PublishedLocalIds => f.write_str("/locks/queue/localid"),
            Self::PublishedLocalId(name) => write!(f, "/locks/queue/localid/{name}"),
            Self::Foreign => f.write_str("/zookeeper"),
            Self::Unexpected(path) | Self::Own(path) => f.write_str(path),
        }
    }
}

/// The name under which an ARK or local id is locked: every `:/` and `/` of it becomes `_`.
#[must_use]
pub fn lock_name(identifier: &str) -> String {
    identifier.replace(":/", "_").replace('/', "_")
}
