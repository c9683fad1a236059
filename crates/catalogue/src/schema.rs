//! The schema: its versions, and how a database comes to the newest one.
//!
//! A version is a script that is applied once, in order, and never changed afterwards. All that are missing are applied
//! in one transaction under a lock, with the check whose database it is: a process that starts meanwhile waits, and one
//! that is killed leaves what was there before. (sqlx's own migrations lock nothing in SQLite, as of 0.9.0, and know
//! nothing of other programs' tables.)

use uuid::Uuid;

use crate::database::dialect::Dialect;
use crate::database::foreign::{APPLICATION_ID, whose};
use crate::database::value::values;
use crate::database::{Database, Session};
use crate::error::{Error, ErrorKind};

/// The scripts, the first one being version 1.
const SCRIPTS: &[&str] = &[
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
    include_str!("schema/0004.sql"),
    include_str!("schema/0005.sql"),
    include_str!("schema/0006.sql"),
    include_str!("schema/0007.sql"),
    include_str!("schema/0008.sql"),
    include_str!("schema/0009.sql"),
    include_str!("schema/0010.sql"),
    include_str!("schema/0011.sql"),
    include_str!("schema/0012.sql"),
    include_str!("schema/0013.sql"),
    include_str!("schema/0014.sql"),
    include_str!("schema/0015.sql"),
    include_str!("schema/0016.sql"),
    include_str!("schema/0017.sql"),
    include_str!("schema/0018.sql"),
    include_str!("schema/0019.sql"),
    include_str!("schema/0020.sql"),
    include_str!("schema/0021.sql"),
];

/// The version that this program writes.
#[expect(clippy::cast_possible_wrap, reason = "there are few scripts")]
pub(crate) const NEWEST: i64 = SCRIPTS.len() as i64;

/// Which scripts were applied. The name says whose database it is.
const VERSIONS: &str = "CREATE TABLE queuekeeper_schema (version {int} PRIMARY KEY, applied {int} NOT NULL){table};";

/// The key of PostgreSQL's advisory locks is of a database; any number that other programs do not happen to use.
const LOCK: i64 = 0x716b_6361_7461;

/// Brings the schema up to date; the answer is the catalogue's identifier, and from which version it came.
pub(crate) async fn migrate(database: &Database) -> Result<(Uuid, i64), Error> {
    // Scripts of large tables take their time.
    let mut session = database.begin().await?.without_limit();
    let outcome = bring_to(&mut session, NEWEST).await;
    session.end(outcome).await
}

/// The catalogue's identifier and the version of its schema, as it is; `None` where the database is empty.
pub(crate) async fn look(database: &Database) -> Result<Option<(Uuid, i64)>, Error> {
    let mut session = database.snapshot().await?;
    let outcome = look_in(&mut session).await;
    session.end(outcome).await
}

async fn look_in(session: &mut Session) -> Result<Option<(Uuid, i64)>, Error> {
    let Some(found) = version(session).await? else { return Ok(None) };
    Ok(Some((identifier(session).await?, found)))
}

/// Makes the first table in an empty database, in a transaction that is to be taken back: whether that is allowed.
pub(crate) async fn try_to_begin(session: &mut Session) -> Result<(), Error> {
    lock(session).await?;
    // Meanwhile another process may have made it.
    if version(session).await?.is_none() {
        session.script(session.dialect().schema(VERSIONS)).await?;
    }
    Ok(())
}

async fn bring_to(session: &mut Session, wanted: i64) -> Result<(Uuid, i64), Error> {
    lock(session).await?;
    let found = version(session).await?;
    let dialect = session.dialect();
    if found.is_none() {
        if dialect == Dialect::Sqlite {
            session.script(format!("PRAGMA application_id = {APPLICATION_ID}")).await?;
        }
        session.script(dialect.schema(VERSIONS)).await?;
    }
    let found = found.unwrap_or(0);
    for (script, version) in SCRIPTS.iter().zip(1i64..).filter(|&(_, version)| version > found && version <= wanted) {
        session.script(dialect.schema(script)).await?;
        session.run("INSERT INTO queuekeeper_schema (version, applied) VALUES ($1, {now})", values![version]).await?;
    }
    if found == 0 {
        let new = Uuid::now_v7();
        session.run("INSERT INTO catalogue (only_row, id, created) VALUES (1, $1, {now})", values![new]).await?;
        let first_hash: &[u8] = &[0; 32];
        let chain = "INSERT INTO audit_chain (only_row, seq, time, hash) VALUES (1, 0, 0, $1)";
        session.run(chain, values![first_hash]).await?;
    }
    Ok((identifier(session).await?, found))
}

/// Keeps other processes from migrating until the transaction ends. That of SQLite has the only lock there is.
async fn lock(session: &mut Session) -> Result<(), Error> {
    if session.dialect() == Dialect::Postgres {
        session.rows("SELECT pg_advisory_xact_lock($1)", values![LOCK]).await?;
    }
    Ok(())
}

async fn identifier(session: &mut Session) -> Result<Uuid, Error> {
    let row = session.row("SELECT id FROM catalogue", values![]).await?;
    let row = row.ok_or_else(|| session.error(ErrorKind::Corrupt("its identifier is missing".to_owned())))?;
    session.decode(row.get(0))
}

/// The version of the schema; `None` where there are no tables. What is of another program, or newer, is refused.
async fn version(session: &mut Session) -> Result<Option<i64>, Error> {
    let found = match session.dialect() {
        Dialect::Sqlite => version_of_file(session).await?,
        Dialect::Postgres => version_of_server(session).await?,
    };
    match found {
        Some(found) if found > NEWEST => Err(session.error(ErrorKind::Newer { found, known: NEWEST })),
        found => Ok(found),
    }
}

/// Here the check is made again, in the transaction.
async fn version_of_file(session: &mut Session) -> Result<Option<i64>, Error> {
    let sql = "SELECT (SELECT application_id FROM pragma_application_id), (SELECT COUNT(*) FROM sqlite_schema)";
    let row = session.row(sql, values![]).await?;
    let row = row.ok_or_else(|| session.error(ErrorKind::Corrupt("no schema".to_owned())))?;
    let (id, tables) = (session.decode(row.get(0))?, session.decode(row.get::<i64>(1))?);
    whose(id, tables).map_err(|kind| session.error(kind))?;
    if tables == 0 { Ok(None) } else { newest_applied(session).await.map(Some) }
}

async fn version_of_server(session: &mut Session) -> Result<Option<i64>, Error> {
    let sql = "SELECT COUNT(*), COUNT(*) FILTER (WHERE tablename = 'queuekeeper_schema'), MIN(tablename)
        FROM pg_catalog.pg_tables WHERE schemaname = CURRENT_SCHEMA()";
    let row = session.row(sql, values![]).await?;
    let row = row.ok_or_else(|| session.error(ErrorKind::Corrupt("no schema".to_owned())))?;
    match (session.decode(row.get::<i64>(0))?, session.decode(row.get::<i64>(1))?) {
        (0, _) => Ok(None),
        (_, 0) => {
            let name: Option<String> = session.decode(row.get(2))?;
            let name = crate::error::one_line(&name.unwrap_or_default());
            Err(session.error(ErrorKind::Foreign(format!("it has a table {name:?}, but no tables of a catalogue"))))
        }
        _ => newest_applied(session).await.map(Some),
    }
}

async fn newest_applied(session: &mut Session) -> Result<i64, Error> {
    let row = session.row("SELECT COALESCE(MAX(version), 0) FROM queuekeeper_schema", values![]).await?;
    let row = row.ok_or_else(|| session.error(ErrorKind::Corrupt("no schema".to_owned())))?;
    session.decode(row.get(0))
}

#[cfg(test)]
mod tests;
