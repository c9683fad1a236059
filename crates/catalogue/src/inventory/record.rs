//! Recording a version.

use uuid::Uuid;

use super::{File, NewVersion, Recorded};
use crate::catalogue::Catalogue;
use crate::counters::{self, Counter};
use crate::database::Session;
use crate::database::session::ROWS_AT_ONCE;
use crate::database::value::{Value, values};
use crate::error::{Error, ErrorKind};
use crate::object_intents;

impl Catalogue {
    /// Records a version with all its files, and the object where it is new. Repeated for the same job, it changes
    /// nothing. The files are read once, and not held all at once.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when another job has recorded this version, or a local id belongs to another object;
    /// nothing was recorded then. Others when the database cannot be written.
    pub async fn record_version<F>(&self, new: &NewVersion, files: F) -> Result<Recorded, Error>
    where
        F: IntoIterator<Item = File> + Send,
        F::IntoIter: Send,
    {
        let mut session = self.database.begin().await?;
        let outcome = record(&mut session, new, files.into_iter()).await;
        session.end(outcome).await
    }
}

async fn record(
    session: &mut Session,
    new: &NewVersion,
    files: impl Iterator<Item = File> + Send,
) -> Result<Recorded, Error> {
    object_intents::end(session, new.job).await?;
    if is_recorded(session, new.job).await? {
        return Ok(Recorded::Before);
    }
    let (object, is_new) = object(session, new).await?;
    let Some(version) = version(session, object, new).await? else {
        // Another process may have recorded the same job while this one waited for the object.
        if is_recorded(session, new.job).await? {
            return Ok(Recorded::Before);
        }
        return Err(session.error(ErrorKind::Refused(format!(
            "version {} of {} was recorded for another job; see its versions",
            new.number, new.ark
        ))));
    };
    let (count, bytes) = insert_files(session, version, files).await?;
    let sql = "UPDATE versions SET file_count = $1, byte_count = $2 WHERE id = $3";
    session.run(sql, values![count, bytes, version]).await?;
    local_ids(session, new).await?;
    let [count, bytes] = [count, bytes].map(|figure| i64::try_from(figure).unwrap_or(i64::MAX));
    let deltas = [
        (Counter::Objects, i64::from(is_new)),
        (Counter::Versions, 1),
        (Counter::Files, count),
        (Counter::FileBytes, bytes),
    ];
    counters::add(session, &new.collection, &deltas).await?;
    Ok(Recorded::Now)
}

async fn is_recorded(session: &mut Session, job: Uuid) -> Result<bool, Error> {
    Ok(session.row("SELECT 1 FROM versions WHERE job = $1", values![job]).await?.is_some())
}

/// The object's number, and whether it is new. It is locked until the end of the transaction.
async fn object(session: &mut Session, new: &NewVersion) -> Result<(i64, bool), Error> {
    let NewVersion { ark, owner, collection, title, creator, date, number, .. } = new;
    let sql = "INSERT INTO objects (ark, owner, collection, created, modified, current_version)
        VALUES ($1, $2, $3, {now}, {now}, 0) ON CONFLICT (ark) DO NOTHING";
    let is_new = session.run(sql, values![ark, owner, collection]).await? > 0;
    // Versions may be recorded in another order than they were stored; the newest describes the object.
    let sql = "UPDATE objects SET modified = {now},
            title = CASE WHEN $2 > current_version THEN $3 ELSE title END,
            creator = CASE WHEN $2 > current_version THEN $4 ELSE creator END,
            date_said = CASE WHEN $2 > current_version THEN $5 ELSE date_said END,
            current_version = CASE WHEN $2 > current_version THEN $2 ELSE current_version END
        WHERE ark = $1 RETURNING id, owner, collection";
    let row = session.row(sql, values![ark, *number, title, creator, date]).await?;
    let row = row.ok_or_else(|| session.error(ErrorKind::Conflict(format!("{ark} was removed meanwhile"))))?;
    let known: (String, String) = (session.decode(row.get(1))?, session.decode(row.get(2))?);
    if (&known.0, &known.1) != (owner, collection) {
        return Err(session.error(ErrorKind::Refused(format!(
            "{ark} belongs to owner {:?} and collection {:?}, not to {owner:?} and {collection:?}",
            known.0, known.1
        ))));
    }
    Ok((session.decode(row.get(0))?, is_new))
}

/// The version's number in the database; `None` where this version, or one of this job, is there.
async fn version(session: &mut Session, object: i64, new: &NewVersion) -> Result<Option<i64>, Error> {
    let sql = "INSERT INTO versions (object, number, job, batch, submitter, message, file_count, byte_count, ingested)
        VALUES ($1, $2, $3, $4, $5, $6, 0, 0, {now}) ON CONFLICT DO NOTHING RETURNING id";
    let NewVersion { number, job, batch, submitter, message, .. } = new;
    let row = session.row(sql, values![object, *number, *job, *batch, submitter, message]).await?;
    row.map(|row| session.decode(row.get(0))).transpose()
}

/// How many there are, and their bytes.
pub(super) async fn insert_files(
    session: &mut Session,
    version: i64,
    mut files: impl Iterator<Item = File> + Send,
) -> Result<(u64, u64), Error> {
    const INTO: &str = "INSERT INTO files (version, path, content_path, size, digests, media_type, is_billable)";
    const COLUMNS: usize = 7;
    let (mut count, mut bytes) = (0, 0u64);
    loop {
        let mut values: Vec<Value> = Vec::with_capacity(ROWS_AT_ONCE * COLUMNS);
        for file in files.by_ref().take(ROWS_AT_ONCE) {
            (count, bytes) = (count + 1, bytes.saturating_add(file.size));
            let File { path, content_path, size, digests, media_type, is_billable } = &file;
            values.extend(values![version, path, content_path, *size, digests, media_type, *is_billable]);
        }
        if values.is_empty() {
            return Ok((count, bytes));
        }
        session.insert_many(INTO, COLUMNS, values).await?;
    }
}

/// Records the local ids; the answer is how many were new. In their order, so that two transactions with the same ids
/// wait for each other and do not block each other.
pub(super) async fn local_ids(session: &mut Session, new: &NewVersion) -> Result<u64, Error> {
    let mut ids = new.local_ids.clone();
    ids.sort();
    let mut added = 0;
    for id in &ids {
        let sql = "INSERT INTO local_ids (owner, local_id, ark, job) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        if session.run(sql, values![&new.owner, id, &new.ark, new.job]).await? > 0 {
            added += 1;
            continue;
        }
        let sql = "SELECT ark FROM local_ids WHERE owner = $1 AND local_id = $2";
        let row = session.row(sql, values![&new.owner, id]).await?;
        let ark: Option<String> = row.map(|row| session.decode(row.get(0))).transpose()?;
        if ark.as_ref() != Some(&new.ark) {
            let other = ark.unwrap_or_default();
            return Err(session.error(ErrorKind::Refused(format!("local id {id:?} belongs to {other}"))));
        }
    }
    Ok(added)
}
