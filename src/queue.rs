//! The queue core: what a queue in ZooKeeper is, and how to change it.
//!
//! It is to Rust programs what `mrt-zk` is to the Java and Ruby ones, and works beside them on the same tree. Anyone can
//! write a daemon or a tool with it.
//!
//! - What things are: [`state`] (the state machines), [`id`], [`path`] (the grammar of znodes), [`record`] (the values,
//!   decoded tolerantly), [`time`].
//! - [`Queue`] is the handle on a queue. Everything is written through it, each change as one [`Transaction`].
//! - Making things: [`Queue::create_batch`], [`Queue::create_job`], [`Queue::create_request`].
//! - Taking work: [`Queue::acquire_batch`], [`Queue::acquire_job`], [`Queue::acquire_request`], and their polls.
//! - Doing it: [`Queue::step_job`] and [`Queue::finish_job`] under a lock, [`Queue::change_job`] without one;
//!   [`Queue::update_job`] for values; the same for batches and requests.
//! - Looking first: each `plan_..` gives the transaction that would be done, and writes nothing.
//! - Large things: [`Queue::plan_delete`], [`Queue::plan_purge`] and [`Queue::execute`]; [`Queue::clean_up`].
//! - Removing one thing: [`Queue::plan_purge_job`], [`Queue::plan_purge_request`].
//! - Locks: [`Queue::pause`], [`Queue::hold_collection`], [`Queue::lock_object`], [`Queue::unlock`],
//!   [`Queue::plan_break_lock`].
//! - What goes wrong: [`fault`], the rules that tell each kind of fault from the facts about an item, and
//!   [`Queue::plan_mend`], which says what would mend it.
//!
//! Nothing here spawns a task or reads a clock: the present time comes in as an argument, and ages are told by the
//! server's clock, in its stats. Every request has a time limit.
//!
//! # A daemon's loop
//!
//! ```no_run
//! use queuekeeper::queue::state::JobState;
//! use queuekeeper::queue::{Error, JobChange, JobValue, Queue};
//!
//! # async fn estimate(_: &queuekeeper::queue::LockedJob) -> Result<u64, String> { Ok(0) }
//! # async fn example(now: impl Fn() -> jiff::Timestamp) -> Result<(), Box<dyn std::error::Error>> {
//! let queue = Queue::new(zookeeper_client::Client::connect("127.0.0.1:2181/merritt").await?);
//! let mut poll = queue.poll_jobs(JobState::Estimating).await?;
//! while let Some(job) = poll.next(now()).await? {
//!     let change = match estimate(&job).await {
//!         Ok(bytes) => {
//!             queue.update_job(&job, &[JobValue::SpaceNeeded(Some(bytes))]).await?;
//!             JobChange::success()
//!         }
//!         Err(why) => JobChange::failure(why),
//!     };
//!     match queue.finish_job(&job, &change, now()).await {
//!         Ok(changed) => println!("{} is in {} now", changed.id, changed.to),
//!         // Such as: somebody broke our lock meanwhile, and works on the job.
//!         Err(Error::Conflict(conflict)) => eprintln!("{conflict}"),
//!         Err(error) => return Err(error.into()),
//!     }
//! }
//! for passed in &poll.passed_over {
//!     eprintln!("{} was passed over: {:?}", passed.path, passed.reason);
//! }
//! # Ok(())
//! # }
//! ```

mod access;
mod acquire;
mod batch;
mod create;
pub mod dump;
mod error;
pub mod fault;
mod handle;
pub mod id;
mod job;
mod list;
pub mod load;
mod lock;
mod mend;
pub mod path;
mod purge;
pub mod record;
pub mod state;
pub mod time;
mod transaction;

pub use access::{LockedRequest, Request, RequestTarget};
pub use acquire::{BatchPoll, Due, JobPoll, PassedOver, Reason, RequestPoll};
pub use batch::{Batch, BatchPlan, BatchReport, BatchTarget, ItemChange, ItemChanged, LockedBatch};
pub use create::NewJob;
pub use error::{Cause, Conflict, ConflictKind, Error};
pub use handle::Queue;
pub use job::{Job, JobChange, JobChanged, JobPlan, JobTarget, JobValue, LockedJob};
pub use list::Entries;
pub use lock::{Lock, Pause, Unlocked};
pub use mend::{Mend, MendKind, MendOrder, Survey};
pub use purge::{BulkPlan, Chunk, CleanUp, CleaningUp, Progress, Purge};
pub use transaction::{CommitError, Committed, Operation, REQUEST_LIMIT_BYTES, Transaction};
