//! The mill's tasks: seven queues in one table.
//!
//! There is one open task for each kind, subject and destination, across queues. A request for what is open already
//! raises the task's *generation*: a worker that ends an older generation puts the task back instead of deleting it, so
//! that what was requested while it worked is done once more.
//!
//! A worker *takes* tasks for the time of a lease. Whatever it does with them afterwards names the *holder* that it got
//! with them: of a task that another worker has taken since, nothing is written. An attempt counts when it begins, so
//! that a task which ends its workers goes to the dead letters as well as one that fails.

mod end;
mod errors;
mod figures;
mod inspect;
mod kind;
mod list;
mod paused;
mod put;
mod retry;
mod state;
mod subject;
mod take;
mod taken;

pub use end::{EndedTask, TaskOutcome};
pub use errors::TaskError;
pub(crate) use errors::errors;
use errors::{MOST_ERROR_CHARS, with_error};
#[cfg(test)]
pub(crate) use inspect::{DECISIONS, DECISIONS_OF_ITEM, HEAD, OF_ITEM_TASKS};
pub use inspect::{DecisionRecord, MillProcess, OpenTask, SeenProcess};
pub use kind::{TaskKind, TaskQueue};
#[cfg(test)]
pub(crate) use list::{DEAD, HELD};
pub use list::{Decided, Decision, KnownTask, QueueFigures};
#[cfg(test)]
pub(crate) use paused::RELEASE;
pub use put::NewTask;
pub(crate) use put::put;
pub use retry::MOST_ATTEMPTS;
pub use state::TaskState;
pub use subject::TaskSubject;
use subject::{Unknown, subject, subject_columns};
pub(crate) use subject::{key_column, store, store_column};
pub use take::Tasks;
#[cfg(test)]
pub(crate) use take::{NEXT, TAKE};
pub use taken::TakenTask;
