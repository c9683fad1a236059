//! What a task is about, and the columns that have it.

use queuekeeper_store::{Key, SpaceName, StoreName};

use super::kind::TaskKind;
use crate::database::value::DatabaseRow;

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

impl TaskSubject {
    /// The store of a task that is about one.
    ///
    /// # Errors
    /// Where it names none, with the reason in words.
    pub fn require_destination(&self) -> Result<&StoreName, String> {
        self.destination.as_ref().ok_or_else(|| "the task names no store".to_owned())
    }
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
pub(super) use subject_columns;

/// Reads a subject from five columns, counted from `at`.
pub(super) fn subject(row: &DatabaseRow, at: usize) -> Result<TaskSubject, sqlx::Error> {
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
pub(crate) fn store(row: &DatabaseRow, at: usize) -> Result<Option<StoreName>, sqlx::Error> {
    let name: String = row.get(at)?;
    if name.is_empty() { Ok(None) } else { row.parse(at, |name: String| name.parse::<StoreName>()) }
}

/// A word that this program does not know: a newer one wrote it, or an operator.
#[derive(Debug, thiserror::Error)]
#[error("unknown word {0:?}")]
pub(super) struct Unknown(pub(super) String);
