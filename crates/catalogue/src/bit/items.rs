//! The items of a run that are checked one by one: what is left of them when the run has ended was not checked in it.

use queuekeeper_store::Key;

use super::checked::{CheckedPart, PageEnd};
use super::counts::Deltas;
use super::{LISTED, NOTHING};
use crate::catalogue::{Catalogue, page};
use crate::database::Session;
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;
use crate::tasks::{TaskError, TaskState, TaskSubject, key_column};

/// An item of a run whose own check has come to no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftItem {
    /// Its key.
    pub key: Key,
    /// Its size in bytes.
    pub bytes: u64,
    /// What its check waits for; `None` where there is no such check any more.
    pub state: Option<TaskState>,
    /// The failures of that.
    pub errors: Vec<TaskError>,
}

/// Those of a run, behind a key: without those that were not listed, and were checked and missing.
pub(crate) const LEFT_ITEMS: &str = "SELECT bit_items.key, bit_items.bytes, tasks.state, tasks.errors
    FROM bit_items JOIN bit_runs ON bit_runs.id = bit_items.run
        LEFT JOIN tasks ON tasks.account = bit_runs.account AND tasks.space = bit_runs.space
            AND tasks.key = bit_items.key AND tasks.kind = 'BIT' AND tasks.destination = bit_runs.store
    WHERE bit_items.run = $1 AND bit_items.key > $2 AND NOT bit_items.is_missing
    ORDER BY bit_items.key LIMIT $3";

impl Catalogue {
    /// The items of a run whose own checks have come to no result, those with keys above `behind` in the byte order of
    /// their keys; at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_items_left(&self, run: u64, behind: Option<&Key>, limit: u32) -> Result<Vec<LeftItem>, Error> {
        self.list(LEFT_ITEMS, values![run, key_column(behind), page(limit)], read).await
    }
}

/// Writes down which items of a page are checked one by one: until that is done, or the run is forgotten.
pub(super) async fn begin(session: &mut Session, page: &PageEnd) -> Result<(), Error> {
    let values = page.alone.iter().flat_map(|item| values![page.run, &item.key, item.bytes, item.is_listed]).collect();
    let then = " ON CONFLICT DO NOTHING RETURNING run";
    let into = "INSERT INTO bit_items (run, key, bytes, is_listed)";
    session.insert_returning(into, "?, ?, ?, ?", then, values).await.map(|_rows| ())
}

/// Takes the item of a task for checked in its run. One that the store listed there and does not have any more counts
/// as gone; one that it has, and did not have yet when it listed the others, counts as listed. One that is recorded, and
/// neither listed nor there, may be there at a later check of the run.
pub(crate) async fn end_item(session: &mut Session, subject: &TaskSubject, part: &CheckedPart) -> Result<(), Error> {
    let (Some(run), Some(key), None) = (part.run, &subject.key, &part.page) else { return Ok(()) };
    let checked = part.items.first();
    let is_missing = checked.is_some_and(|checked| checked.is_missing);
    let of_missing = "UPDATE bit_items SET is_missing = TRUE WHERE run = $1 AND key = $2 AND NOT is_listed";
    if is_missing && session.run(of_missing, values![run, key]).await? > 0 {
        return Ok(());
    }
    let sql = "DELETE FROM bit_items WHERE run = $1 AND key = $2 RETURNING bytes, is_listed";
    let Some(row) = session.row(sql, values![run, key]).await? else { return Ok(()) };
    let (bytes, is_listed) = session.decode(row.count(0).and_then(|bytes| Ok((bytes, row.get::<bool>(1)?))))?;
    let mut of_run = Deltas::default();
    match checked {
        Some(checked) if is_listed && checked.result == NOTHING => of_run.add(NOTHING, 1, bytes),
        Some(checked) if !is_listed && checked.result != NOTHING => of_run.add(LISTED, 1, checked.bytes),
        None if !is_listed && part.is_being_stored => of_run.add(LISTED, 1, bytes),
        _ => {}
    }
    if part.is_being_stored {
        of_run.add("being_stored", 1, bytes);
    }
    of_run.write(session, run).await
}

fn read(row: &DatabaseRow) -> Result<LeftItem, sqlx::Error> {
    let errors: Option<String> = row.get(3)?;
    Ok(LeftItem {
        key: row.need(0, |bytes: Vec<u8>| Key::new(bytes))?,
        bytes: row.count(1)?,
        state: row.get::<Option<String>>(2)?.map(|_name| TaskState::read(row, 2)).transpose()?,
        errors: errors.map(|errors| crate::tasks::errors(&errors)).unwrap_or_default(),
    })
}
