//! Making rows of the inventory again, from what lies in the stores.

use std::collections::HashMap;

use jiff::Timestamp;
use queuekeeper_store::Algorithm;
use uuid::Uuid;

use super::list::file;
use super::record::{insert_files, local_ids};
use super::{File, NewVersion};
use crate::catalogue::Catalogue;
use crate::check::counted;
use crate::counters::{self, Counter, read_figures};
use crate::database::Session;
use crate::database::dialect::Dialect;
use crate::database::value::values;
use crate::error::{Error, ErrorKind};

/// What became of the rows of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuilt {
    /// They say what the store says.
    Same,
    /// They were missing.
    Added,
    /// They said something else.
    Corrected,
}

/// How many files are read at once.
const PAGE: u32 = 1_000;

const FILES_OF: &str = "SELECT path, content_path, size, digests, media_type, is_billable
    FROM files WHERE version = $1 AND path > $2 ORDER BY path LIMIT $3";

const INVENTORY: [Counter; 4] = [Counter::Objects, Counter::Versions, Counter::Files, Counter::FileBytes];

impl Catalogue {
    /// Makes the rows of a version say what its store says: those of the object, the version, its files, its local ids
    /// and its identifier. Versions are to come in the order of their numbers. `stored` is when the version was stored,
    /// which stands for the times that only a row has. Rows that are there keep their times, and the media types and
    /// further digests of files that the store does not know. Files are sorted by path, in byte order.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when rows that are there say that the object, the version, the job or a local id is
    /// another's: which of both is right is for an operator to decide, and nothing was changed then. Others when the
    /// database cannot be written.
    pub async fn rebuild_version(
        &self,
        new: &NewVersion,
        stored: Timestamp,
        files: Vec<File>,
    ) -> Result<Rebuilt, Error> {
        let mut session = self.database.begin().await?;
        let outcome = rebuild(&mut session, new, stored.as_millisecond(), files).await;
        session.end(outcome).await
    }

    /// Makes the counters of the inventory those of its rows; the answer is how many were others.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn recount_inventory(&self) -> Result<u64, Error> {
        let mut session = self.database.begin().await?.without_limit();
        let outcome = recount(&mut session).await;
        session.end(outcome).await
    }
}

async fn rebuild(session: &mut Session, new: &NewVersion, stored: i64, files: Vec<File>) -> Result<Rebuilt, Error> {
    let (object, is_new) = object(session, new, stored).await?;
    let row = version(session, object, new).await?;
    let (rebuilt, [added_files, added_bytes]) = match row {
        None => {
            let counts = insert(session, object, new, stored, files).await?;
            (Rebuilt::Added, counts)
        }
        Some(row) => correct(session, row, new, files).await?,
    };
    let sql = "INSERT INTO identifiers (ark, job, owner, reserved, registered) VALUES ($1, $2, $3, $4, $4)
        ON CONFLICT DO NOTHING";
    // The job of the first version got the identifier; it was registered before anything was stored.
    let identifiers =
        if new.number == 1 { session.run(sql, values![&new.ark, new.job, &new.owner, stored]).await? } else { 0 };
    let ids = local_ids(session, new).await?;
    let is_described = describe(session, object, new).await?;
    let is_added = rebuilt == Rebuilt::Added;
    let deltas = [
        (Counter::Objects, i64::from(is_new)),
        (Counter::Versions, i64::from(is_added)),
        (Counter::Files, added_files),
        (Counter::FileBytes, added_bytes),
    ];
    counters::add(session, &new.collection, &deltas).await?;
    Ok(if rebuilt == Rebuilt::Same && (identifiers > 0 || ids > 0 || is_described) {
        Rebuilt::Corrected
    } else {
        rebuilt
    })
}

/// The object's number in the database, and whether it is new.
async fn object(session: &mut Session, new: &NewVersion, stored: i64) -> Result<(i64, bool), Error> {
    let NewVersion { ark, owner, collection, .. } = new;
    let sql = "INSERT INTO objects (ark, owner, collection, created, modified, current_version)
        VALUES ($1, $2, $3, $4, $4, 0) ON CONFLICT (ark) DO NOTHING";
    let is_new = session.run(sql, values![ark, owner, collection, stored]).await? > 0;
    // A change that changes nothing locks the row until the end of the transaction.
    let sql = "UPDATE objects SET ark = ark WHERE ark = $1 RETURNING id, owner, collection";
    let row = session.row(sql, values![ark]).await?;
    let row = row.ok_or_else(|| session.error(ErrorKind::Conflict(format!("{ark} was removed meanwhile"))))?;
    let known: (String, String) = (session.decode(row.get(1))?, session.decode(row.get(2))?);
    if (&known.0, &known.1) != (owner, collection) {
        return Err(session.error(ErrorKind::Refused(format!(
            "the catalogue has it with owner {:?} and collection {:?}, but its files have {owner:?} and {collection:?}",
            known.0, known.1
        ))));
    }
    Ok((session.decode(row.get(0))?, is_new))
}

/// The version's number in the database, if it is there.
async fn version(session: &mut Session, object: i64, new: &NewVersion) -> Result<Option<i64>, Error> {
    let sql = "SELECT id, object, number, job FROM versions WHERE job = $1
        UNION SELECT id, object, number, job FROM versions WHERE object = $2 AND number = $3";
    let mut found = None;
    for row in session.rows(sql, values![new.job, object, new.number]).await? {
        let (of, number, job): (i64, i64, Uuid) =
            (session.decode(row.get(1))?, session.decode(row.get(2))?, session.decode(row.get(3))?);
        if (of, number, job) != (object, new.number.into(), new.job) {
            let which = if of == object { "this object" } else { "another object" };
            return Err(session.error(ErrorKind::Refused(format!(
                "the catalogue has version {number} of {which} for job {job}, the store has version {} for job {}",
                new.number, new.job
            ))));
        }
        found = Some(session.decode(row.get(0))?);
    }
    Ok(found)
}

/// Adds a version; the answer is how many files it has, and their bytes.
async fn insert(
    session: &mut Session,
    object: i64,
    new: &NewVersion,
    stored: i64,
    files: Vec<File>,
) -> Result<[i64; 2], Error> {
    let (count, bytes) = totals(&files);
    let sql = "INSERT INTO versions (object, number, job, batch, submitter, message, file_count, byte_count, ingested)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id";
    let NewVersion { number, job, batch, submitter, message, .. } = new;
    let values = values![object, *number, *job, *batch, submitter, message, count, bytes, stored];
    let row = session.row(sql, values).await?;
    let none = || session.error(ErrorKind::Database("an insertion answered no row".to_owned()));
    let row = row.ok_or_else(none)?;
    let version: i64 = session.decode(row.get(0))?;
    insert_files(session, version, files.into_iter()).await?;
    let sql = "UPDATE objects SET modified = $1 WHERE id = $2 AND modified < $1";
    session.run(sql, values![stored, object]).await?;
    Ok([count, bytes])
}

/// Compares a version with its rows, and writes those that differ; the answer has how many files and bytes were added.
async fn correct(
    session: &mut Session,
    version: i64,
    new: &NewVersion,
    mut files: Vec<File>,
) -> Result<(Rebuilt, [i64; 2]), Error> {
    let mut known = Vec::new();
    let mut after = String::new();
    loop {
        let rows = session.rows(FILES_OF, values![version, &after, PAGE]).await?;
        for row in &rows {
            known.push(session.decode(file(row))?);
        }
        match known.last() {
            Some(last) if !rows.is_empty() => after.clone_from(&last.path),
            _ => break,
        }
    }
    let by_path: HashMap<&str, &File> = known.iter().map(|file| (file.path.as_str(), file)).collect();
    for file in &mut files {
        let Some(old) = by_path.get(file.path.as_str()) else { continue };
        if old.digests.get(Algorithm::Sha512) == file.digests.get(Algorithm::Sha512) {
            file.media_type = file.media_type.take().or_else(|| old.media_type.clone());
            file.digests = old.digests.clone();
        }
    }
    let (count, bytes) = totals(&files);
    let (old_count, old_bytes) = totals(&known);
    let are_same = known == files;
    if !are_same {
        session.run("DELETE FROM files WHERE version = $1", values![version]).await?;
        insert_files(session, version, files.into_iter()).await?;
    }
    let sql = "UPDATE versions SET batch = $1, submitter = $2, message = $3, file_count = $4, byte_count = $5
        WHERE id = $6 AND (batch IS DISTINCT FROM $1 OR submitter <> $2 OR message <> $3 OR file_count <> $4
            OR byte_count <> $5)";
    let values = values![new.batch, &new.submitter, &new.message, count, bytes, version];
    let is_other = session.run(sql, values).await? > 0;
    let rebuilt = if are_same && !is_other { Rebuilt::Same } else { Rebuilt::Corrected };
    Ok((rebuilt, [count - old_count, bytes - old_bytes]))
}

/// Has the newest version describe the object; the answer is whether it did not.
async fn describe(session: &mut Session, object: i64, new: &NewVersion) -> Result<bool, Error> {
    let sql = "UPDATE objects SET title = $2, creator = $3, date_said = $4, current_version = $5
        WHERE id = $1 AND $5 = (SELECT MAX(number) FROM versions WHERE object = $1)
            AND (title IS DISTINCT FROM $2 OR creator IS DISTINCT FROM $3 OR date_said IS DISTINCT FROM $4
                OR current_version <> $5)";
    let NewVersion { number, title, creator, date, .. } = new;
    Ok(session.run(sql, values![object, title, creator, date, *number]).await? > 0)
}

fn totals(files: &[File]) -> (i64, i64) {
    let whole = |figure: u64| i64::try_from(figure).unwrap_or(i64::MAX);
    (whole(files.len() as u64), whole(files.iter().fold(0, |sum, file| file.size.saturating_add(sum))))
}

async fn recount(session: &mut Session) -> Result<u64, Error> {
    // A process that records appends deltas before the end of its transaction: none is between the two readings.
    if session.dialect() == Dialect::Postgres {
        session.script("LOCK TABLE counter_deltas IN EXCLUSIVE MODE").await?;
    }
    let mut kept = read_figures(session).await?;
    let mut corrected = 0;
    for (counter, sql) in INVENTORY.into_iter().filter_map(|counter| Some((counter, counted(counter)?))) {
        for row in session.rows(sql, values![]).await? {
            let (scope, figure): (String, i64) = (session.decode(row.get(0))?, session.decode(row.get(1))?);
            let delta = figure - kept.remove(&(counter, scope.clone())).unwrap_or(0);
            corrected += u64::from(delta != 0);
            counters::add(session, &scope, &[(counter, delta)]).await?;
        }
    }
    for ((counter, scope), figure) in kept.into_iter().filter(|((counter, _), _)| INVENTORY.contains(counter)) {
        corrected += u64::from(figure != 0);
        counters::add(session, &scope, &[(counter, -figure)]).await?;
    }
    Ok(corrected)
}
