//! The queue core: what a queue in ZooKeeper is, and how to change it.
//!
//! It is to Rust programs what `mrt-zk` is to the Java and Ruby ones, and works beside them on the same tree. Anyone
//! can write a daemon or a tool with it.
//!
//! - What things are: [`state`] (the state machines), [`id`], [`path`] (the grammar of znodes), [`record`] (the values,
//!   decoded tolerantly), [`time`].
//! - [`Queue`] is the handle on a queue. Everything is written through it, each change as one [`Transaction`].
//! - Making things: [`Queue::create_batch`], [`Queue::create_job`], [`Queue::create_request`].
//! - Taking work: [`Queue::poll_batches`], [`Queue::poll_jobs`], [`Queue::poll_requests`]; for one item now and then,
//!   [`Queue::acquire_batch`], [`Queue::acquire_job`], [`Queue::acquire_request`].
//! - Doing it: [`Queue::step_job`] and [`Queue::finish_job`] under a lock, [`Queue::change_job`] without one;
//!   [`Queue::update_job`] for values; the same for batches and requests.
//! - Looking first: each `plan_..` gives the transaction that would be done, and writes nothing.
//! - Large things: [`Queue::plan_delete`], [`Queue::plan_purge`] and [`Queue::execute`]; [`Queue::clean_up`].
//! - Taking a deposit back: [`Queue::plan_withdrawal`] and [`Queue::withdraw`], all of its jobs or none.
//! - Removing one thing: [`Queue::plan_purge_job`], [`Queue::plan_purge_request`].
//! - Locks: [`Queue::pause`], [`Queue::hold_collection`], [`Queue::lock_object`], [`Queue::unlock`],
//!   [`Queue::plan_break_lock`].
//! - Faults: [`fault`], the rules that detect each kind of fault from the facts about an item, and
//!   [`Queue::plan_repair`], which plans its repair.
//!
//! Nothing here spawns a task or reads a clock: the present time is an argument, and ages are measured by the server's
//! clock, in its stats. Every request has a time limit.
//!
//! # A daemon's loop
//!
//! `examples/daemon.rs` is the short form, and runs on a server of its own.
//!
//! A poll lists a state once and hands out one locked job after the other; asking [`Queue::acquire_job`] each time
//! would list and read the whole state again for each. What is locked has one of three ends, and the loop below has
//! all:
//!
//! - It is finished: the change and the end of the lock are one transaction.
//! - It cannot be: another changed the job, or our lock was broken, and another program may be at work on it. Then
//!   [`Queue::unlock_job`] gives up what is still ours, which is right in any case.
//! - The connection was lost, and it is unknown. The same call again, once there is a connection, returns what
//!   happened, whatever others have done with the item since. When the session is over its locks are gone, and a new
//!   session begins with new polls.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use queuekeeper_queue::state::JobState;
//! use queuekeeper_queue::{Error, JobChange, JobValue, LockedJob, Queue};
//!
//! # async fn measure(_: &LockedJob) -> Result<u64, String> { Ok(0) }
//! /// Does the work, and writes the next state of the job. An error means that it could not be written.
//! async fn estimate(queue: &Queue, job: &LockedJob) -> Result<JobChange, Error> {
//!     match measure(job).await {
//!         Ok(bytes) => {
//!             queue.update_job(job, &[JobValue::SpaceNeeded(Some(bytes))]).await?;
//!             Ok(JobChange::success())
//!         }
//!         Err(why) => Ok(JobChange::failure(why)),
//!     }
//! }
//!
//! /// Retries while only the connection fails and the session, with our locks, may survive.
//! async fn through<T>(queue: &Queue, mut call: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
//!     loop {
//!         match call().await {
//!             Err(error) if error.is_connection() && !queue.client().state().is_terminated() => {
//!                 tokio::time::sleep(Duration::from_secs(1)).await;
//!             }
//!             outcome => return outcome,
//!         }
//!     }
//! }
//!
//! # async fn example(now: impl Fn() -> jiff::Timestamp) -> Result<(), Error> {
//! # let connected = zookeeper_client::Client::connect("127.0.0.1:2181/merritt").await;
//! # let client = connected.expect("a server");
//! let queue = Queue::new(client);
//! let mut poll = queue.poll_jobs(JobState::Estimating).await?;
//! while let Some(job) = through(&queue, async || poll.next(now()).await).await? {
//!     let outcome = match through(&queue, async || estimate(&queue, &job).await).await {
//!         Ok(change) => through(&queue, async || queue.finish_job(&job, &change, now()).await).await,
//!         Err(error) => Err(error),
//!     };
//!     match outcome {
//!         Ok(changed) => println!("{} is in {} now", changed.id, changed.to),
//!         // The session is over, and with it each of its locks.
//!         Err(error) if error.is_connection() => return Err(error),
//!         // Another changed the job or broke our lock, or its znodes cannot be read: it is not ours to go on with.
//!         Err(error) => {
//!             eprintln!("{} is given up: {error}", job.id());
//!             through(&queue, async || queue.unlock_job(&job).await).await?;
//!         }
//!     }
//! }
//! // What could not be worked on, or was locked by us and broken before we knew, does not end the poll.
//! for passed in &poll.skipped {
//!     eprintln!("{} was passed over: {:?}", passed.path, passed.reason);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What proves a lock
//!
//! A lock of ours is created and set once, in one `multi`: version 1 distinguishes it from the locks of other programs,
//! which stay at version 0, and each change under it checks that version. With the lock of a job, batch or request goes
//! an ephemeral znode `/queuekeeper/held/ID`: as long as the session lasts that made it, no other session of ours takes
//! the item, even when an operator has broken the lock. A client of this crate needs the right to create and delete
//! below `/queuekeeper`.

mod access;
mod acquire;
mod batch;
mod create;
pub mod dump;
mod error;
mod expand;
pub mod fault;
mod handle;
pub mod id;
mod item;
mod job;
mod list;
pub mod load;
mod lock;
pub mod pace;
pub mod path;
mod pending_claims;
mod purge;
pub mod record;
mod repair;
pub mod state;
mod status;
#[cfg(test)]
mod testing;
pub mod time;
mod transaction;
mod withdraw;

pub use access::{LockedRequest, Request, RequestTarget};
pub use acquire::{BatchPoll, Due, JobPoll, RequestPoll, SkipReason, SkippedItem};
pub use batch::{Batch, BatchPlan, BatchReport, BatchTarget, LastReport, LockedBatch};
pub use create::NewJob;
pub use error::{Conflict, ConflictKind, Error, RequestFailure};
pub use expand::{Expansion, NextRows};
pub use fault::RepairKind;
pub use handle::Queue;
pub use item::{ItemChange, ItemChanged};
pub use job::{Job, JobChange, JobChanged, JobPlan, JobTarget, JobValue, LockedJob};
pub use list::Entries;
pub use lock::{Lock, Pause, Unlocked};
pub use purge::{BulkPlan, Chunk, CleanUpProgress, CleanUpResult, PlannedJob, Progress, Purge, Removal};
pub use repair::{Repair, RepairOptions, Survey};
pub use transaction::{CommitError, Committed, Operation, REQUEST_LIMIT_BYTES, Transaction};
pub use withdraw::{WithdrawalOutcome, WithdrawalPlan, WithdrawalProgress};
