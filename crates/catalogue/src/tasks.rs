//! The mill's tasks: seven queues in one table.
//!
//! There is one open task for each kind, subject and destination, across queues. A request for what is open already raises the
//! task's *generation*: a worker that ends an older generation puts the task back instead of deleting it, so that what was
//! requested while it worked is done once more.
//!
//! A worker *takes* tasks for the time of a lease. Whatever it does with them afterwards names the *holder* that it got with them:
//! of a task that another worker has taken since, nothing is written. An attempt counts when it begins, so that a task which ends
//! its workers goes to the dead letters as well as one that fails.

mod end;
mod figures;
mod inspect;
mod kind;
mod list;
mod paused;
mod put;
mod take;

use jiff::Timestamp;
use queuekeeper_store::{Key, SpaceName, StoreName};
use serde_json::{Value as Json, json};

use crate::database::value::Row;

pub use end::{EndedTask, Outcome};
#[cfg(test)]
pub(crate) use inspect::{DECISIONS, DECISIONS_OF_ITEM, HEAD, OF_ITEM_TASKS};
pub use inspect::{DecisionRecord, MillProcess, OpenTask, SeenProcess};
pub use kind::{Queue, TaskKind};
#[cfg(test)]
pub(crate) use list::{DEAD, HELD};
pub use list::{Decided, Decision, KnownTask, QueueFigures, TaskState};
#[cfg(test)]
pub(crate) use paused::RELEASE;
pub use put::NewTask;
pub(crate) use put::put;
#[cfg(test)]
pub(crate) use take::{NEXT, TAKE};
pub use take::{TakenTask, Tasks};

/// How often a task is begun before it goes to the dead letters.
pub const MOST_ATTEMPTS: u32 = 3;

/// How many of its failures a task keeps.
const MOST_ERRORS: usize = 20;

/// How much of the reason for a failure is kept.
const MOST_ERROR_CHARS: usize = 500;

/// What a task is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskSubject {
    /// What it does.
    pub kind: TaskKind,
    /// The account.
    pub account: String,
    /// The space, as the account names it.
    pub space: SpaceName,
    /// The item, or the first one of a page; `None` for the space itself.
    pub key: Option<Key>,
    /// The store that is looked at or written to; `None` where it is all of them.
    pub destination: Option<StoreName>,
}

/// A failed attempt at a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskError {
    /// When, by the database's clock.
    pub time: Timestamp,
    /// Which worker.
    pub worker: String,
    /// Why: one sentence.
    pub error: String,
}

/// The column of a subject's key: a space has an empty one.
pub(crate) fn key_column(key: Option<&Key>) -> &[u8] {
    key.map_or(&b""[..], Key::as_bytes)
}

/// The column of a store: where there is none, an empty name.
pub(crate) fn store_column(store: Option<&StoreName>) -> &str {
    store.map_or("", StoreName::as_str)
}

/// The columns that [`subject`] reads.
macro_rules! subject_columns {
    () => {
        "kind, account, space, key, destination"
    };
}
use subject_columns;

/// Reads a subject from five columns, counted from `at`.
fn subject(row: &Row, at: usize) -> Result<TaskSubject, sqlx::Error> {
    let key: Vec<u8> = row.get(at + 3)?;
    Ok(TaskSubject {
        kind: row.need(at, |name: String| TaskKind::named(&name).ok_or(Unknown(name)))?,
        account: row.get(at + 1)?,
        space: row.need(at + 2, |name: String| name.parse::<SpaceName>())?,
        key: if key.is_empty() { None } else { row.key(at + 3)? },
        destination: store(row, at + 4)?,
    })
}

/// The name of a store; an empty one is none.
pub(crate) fn store(row: &Row, at: usize) -> Result<Option<StoreName>, sqlx::Error> {
    let name: String = row.get(at)?;
    if name.is_empty() { Ok(None) } else { row.parse(at, |name: String| name.parse::<StoreName>()) }
}

/// A word that this program does not know: a newer one wrote it, or a person.
#[derive(Debug, thiserror::Error)]
#[error("unknown word {0:?}")]
struct Unknown(String);

/// Failures as they are kept: JSON, the oldest first.
pub(crate) fn errors(text: &str) -> Vec<TaskError> {
    let list = serde_json::from_str::<Vec<Json>>(text).unwrap_or_default();
    let error = |one: &Json| {
        Some(TaskError {
            time: Timestamp::from_millisecond(one.get("time")?.as_i64()?).ok()?,
            worker: one.get("worker")?.as_str()?.to_owned(),
            error: one.get("error")?.as_str()?.to_owned(),
        })
    };
    list.iter().filter_map(error).collect()
}

/// Those failures and one more, as they are kept: the newest ones.
fn with_error(errors: &[TaskError], time: Timestamp, worker: &str, error: &str) -> String {
    let new = TaskError {
        time,
        worker: worker.to_owned(),
        error: crate::error::one_line(error).chars().take(MOST_ERROR_CHARS).collect(),
    };
    let kept = errors.iter().skip((errors.len() + 1).saturating_sub(MOST_ERRORS)).chain([&new]);
    let json =
        kept.map(|error| json!({"time": error.time.as_millisecond(), "worker": error.worker, "error": error.error}));
    Json::Array(json.collect()).to_string()
}
