//! The queue core: what a queue in ZooKeeper is, and how to change it.

mod access;
mod acquire;
mod batch;
mod create;
mod error;
mod handle;
pub mod id;
mod job;
mod list;
mod lock;
pub mod path;
mod purge;
pub mod record;
pub mod state;
pub mod time;
mod transaction;

pub use access::{LockedRequest, Request, RequestTarget};
pub use acquire::{BatchPoll, Due, JobPoll, PassedOver, Reason, RequestPoll};
pub use batch::{Batch, BatchReport, BatchTarget, ItemChange, ItemChanged, LockedBatch};
pub use create::NewJob;
pub use error::{Cause, Conflict, ConflictKind, Error};
pub use handle::Queue;
pub use job::{Job, JobChange, JobChanged, JobPlan, JobTarget, JobValue, LockedJob};
pub use list::Entries;
pub use lock::{Lock, Pause, Unlocked};
pub use purge::{BulkPlan, Chunk, CleanUp, Progress};
pub use transaction::{CommitError, Committed, Operation, REQUEST_LIMIT_BYTES, Transaction};
