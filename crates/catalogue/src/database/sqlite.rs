//! Connections to a SQLite file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Pool, Sqlite};

use super::without_maintenance;
use crate::error::{Error, ErrorKind};
use crate::schema;

/// How long a writer waits for another process.
const BUSY_LIMIT: Duration = Duration::from_secs(10);

/// How long a writer waits for those of this process.
const QUEUE_LIMIT: Duration = Duration::from_mins(1);

/// Lists of pages and workers; more would only contend for two cores.
const READERS: u32 = 4;

/// What the bytes 68 to 71 of the file are: "qkca".
pub(crate) const APPLICATION_ID: i64 = 0x716b_6361;

/// File systems whose locks or shared memory are not seen by all hosts, by `f_type` of statfs(2).
const NETWORK_FILE_SYSTEMS: [(u64, &str); 10] = [
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x517b, "SMB"),
    (0x5346_414f, "AFS"),
    (0x7375_7245, "Coda"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
];

/// Opens the file, makes sure that it is ours or empty, and returns the writer's and the readers' connections.
pub(super) async fn connect(path: &Path, place: &Arc<str>) -> Result<(Pool<Sqlite>, Pool<Sqlite>), Error> {
    refuse_network(path, place)?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .busy_timeout(BUSY_LIMIT)
        .foreign_keys(true)
        .synchronous(SqliteSynchronous::Full)
        .disable_statement_logging();
    let failed = |error: sqlx::Error| Error::from_sqlx(place, &error);
    let mut first = options.connect().await.map_err(failed)?;
    // Before anything is changed: another program's file stays as it is.
    let outcome = schema::refuse_foreign_file(&mut first, place).await;
    sqlx::Connection::close(first).await.map_err(failed)?;
    outcome?;

    let pool = |most, limit| {
        // A connection that is opened anew is as good as one that is kept.
        let pool = SqlitePoolOptions::new().max_connections(most).acquire_timeout(limit).test_before_acquire(false);
        without_maintenance(pool)
    };
    let writing = options.clone().journal_mode(SqliteJournalMode::Wal);
    let writer = pool(1, QUEUE_LIMIT).connect_lazy_with(writing);
    switch_to_wal(&writer, place).await?;
    let readers = pool(READERS, QUEUE_LIMIT).connect_lazy_with(options.pragma("query_only", "ON"));
    Ok((writer, readers))
}

/// The switch needs the file alone, and does not wait for it: while another process switches too, it is tried again.
async fn switch_to_wal(writer: &Pool<Sqlite>, place: &Arc<str>) -> Result<(), Error> {
    let limit = tokio::time::Instant::now() + BUSY_LIMIT;
    loop {
        match writer.acquire().await.map_err(|error| Error::from_sqlx(place, &error)) {
            Ok(_connection) => return Ok(()),
            Err(error) if matches!(error.kind, ErrorKind::Locked) && tokio::time::Instant::now() < limit => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

fn refuse_network(path: &Path, place: &Arc<str>) -> Result<(), Error> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let at = if path.exists() { path } else { directory };
    let found = rustix::fs::statfs(at);
    let found = found.map_err(|error| Error::new(place, ErrorKind::Open(format!("{}: {error}", at.display()))))?;
    // The field is signed on some machines.
    #[expect(clippy::cast_sign_loss, reason = "the numbers are bit patterns of 32 bits")]
    match network_name(found.f_type as u64) {
        Some(name) => Err(Error::new(place, ErrorKind::NetworkFileSystem(name))),
        None => Ok(()),
    }
}

fn network_name(kind: u64) -> Option<&'static str> {
    let found = NETWORK_FILE_SYSTEMS.iter().find(|(magic, _)| *magic == kind & 0xffff_ffff);
    found.map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use queuekeeper_store::audit::{AuditSink as _, SinkError};

    use crate::catalogue::Catalogue;
    use crate::database::value::values;
    use crate::error::ErrorKind;

    #[test]
    fn network_file_systems_are_known_by_their_numbers_and_local_ones_are_not_among_them() {
        // Some machines extend the sign of the 32 bits.
        for (kind, name) in [(0x6969, Some("NFS")), (0xffff_ffff_ff53_4d42, Some("CIFS")), (0xef53, None)] {
            assert_eq!(super::network_name(kind), name, "{kind:#x}");
        }
    }

    async fn new_catalogue(directory: &tempfile::TempDir) -> Catalogue {
        let url = format!("sqlite:{}", directory.path().join("catalogue.db").display());
        Catalogue::open(&url).await.unwrap()
    }

    /// The limit is of a connection, and the writer's is the only one that writes.
    async fn limit_pages(catalogue: &Catalogue, pages: i64) {
        let mut session = catalogue.database.begin().await.unwrap();
        session.script(format!("PRAGMA max_page_count = {pages}")).await.unwrap();
        session.end(Ok(())).await.unwrap();
    }

    #[tokio::test]
    async fn a_full_disk_is_a_temporary_error_that_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let catalogue = new_catalogue(&directory).await;
        // SQLite takes the pages that it has for the least.
        limit_pages(&catalogue, 1).await;
        let fill = async || {
            let mut session = catalogue.database.begin().await?;
            let bytes = vec![7; 100_000];
            let outcome = session.run("UPDATE audit_chain SET hash = $1", values![&bytes[..]]).await;
            session.end(outcome).await
        };
        let error = fill().await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Full) && error.is_temporary(), "{error}");
        assert_eq!(catalogue.check().await.unwrap(), []);
        limit_pages(&catalogue, 1_000_000).await;
        fill().await.unwrap();
    }

    #[tokio::test]
    async fn a_sink_says_in_one_line_why_nothing_can_be_recorded() {
        let directory = tempfile::tempdir().unwrap();
        let catalogue = new_catalogue(&directory).await;
        catalogue.close().await;
        let taken = catalogue.take_left(&"main".parse().unwrap(), std::time::Duration::ZERO).await;
        let Err(SinkError::Unavailable(text)) = taken else { panic!("{taken:?}") };
        assert!(text.contains("catalogue.db") && text.lines().count() == 1, "{text}");
    }

    #[tokio::test]
    async fn a_connection_that_may_only_read_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let catalogue = new_catalogue(&directory).await;
        let mut session = catalogue.database.read().await.unwrap();
        let error = session.run("DELETE FROM counters", values![]).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::ReadOnly), "{error}");
    }
}
