//! A task that a worker has.

use jiff::Timestamp;
use queuekeeper_store::StoreName;
use uuid::Uuid;

use super::kind::TaskQueue;
use super::{TaskError, TaskSubject};

/// A task that is leased to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenTask {
    /// Its number.
    pub id: u64,
    /// Who has it: made anew each time that it is taken.
    pub holder: Uuid,
    /// The worker, as it calls itself.
    pub worker: String,
    /// The queue that it was taken from.
    pub queue: TaskQueue,
    /// What it is about.
    pub subject: TaskSubject,
    /// The store to copy from, where it copies.
    pub source: Option<StoreName>,
    /// The generation that was taken.
    pub generation: u64,
    /// How often it was begun, with this time.
    pub attempts: u32,
    /// How often it was put off because it could not be decided yet.
    pub rounds: u32,
    /// The failures before.
    pub errors: Vec<TaskError>,
    /// When it was requested first.
    pub created: Timestamp,
    /// Whether an operator has allowed what it was held for.
    pub is_released: bool,
}
