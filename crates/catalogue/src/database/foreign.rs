//! Refusing the files and databases of other programs.

use std::sync::Arc;

use sqlx::{Row as _, SqliteConnection};

use crate::error::{Error, ErrorKind};

/// What the bytes 68 to 71 of the file are: "qkca".
pub(crate) const APPLICATION_ID: i64 = 0x716b_6361;

/// Refuses a file of another program, or of a newer one of ours, before it is changed in any way.
pub(super) async fn refuse_foreign_file(connection: &mut SqliteConnection, place: &Arc<str>) -> Result<(), Error> {
    let sql = "SELECT (SELECT application_id FROM pragma_application_id), (SELECT COUNT(*) FROM sqlite_schema)";
    let row = sqlx::query(sql).fetch_one(connection).await;
    let ids = row.and_then(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    let (application_id, tables) = ids.map_err(|error| Error::from_sqlx(place, &error))?;
    whose(application_id, tables).map_err(|kind| Error::new(place, kind))
}

/// Whether a database is ours or empty, by its `application_id` and how many tables it has.
pub(crate) fn whose(application_id: i64, tables: i64) -> Result<(), ErrorKind> {
    match (application_id, tables) {
        (APPLICATION_ID, _) | (0, 0) => Ok(()),
        (0, _) => Err(ErrorKind::Foreign("it has tables that do not belong to a catalogue".to_owned())),
        (other, _) => Err(ErrorKind::Foreign(format!("its application_id is {other:#x}"))),
    }
}
