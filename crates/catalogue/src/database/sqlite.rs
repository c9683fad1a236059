//! Connections to a SQLite file.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::Access;
use sqlx::pool::PoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Pool, Sqlite};
use tempfile::NamedTempFile;

use super::{foreign, without_maintenance};
use crate::error::{Error, ErrorKind};

/// How long a writer waits for another process.
const BUSY_LIMIT: Duration = Duration::from_secs(10);

/// How long a writer waits for those of this process.
const QUEUE_LIMIT: Duration = Duration::from_mins(1);

/// Lists of pages and workers; more would only contend for two cores.
const READERS: u32 = 4;

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

/// The connections to a file.
#[derive(Clone)]
pub(super) struct SqlitePools {
    /// How the file is opened.
    pub(super) options: Arc<SqliteConnectOptions>,
    /// There is one writer at a time: one connection, so that writers of this process wait in a fair queue.
    pub(super) writer: Pool<Sqlite>,
    pub(super) readers: Pool<Sqlite>,
    /// What the file was when it was opened without locks.
    unlocked: Option<FileState>,
}

/// By what it shows that a file was written to: its time, its size, and whether it has a log.
type FileState = (Option<SystemTime>, u64, bool);

/// Opens the file, makes sure that it is ours or empty, and returns the writer's and the readers' connections.
pub(super) async fn connect(path: &Path, place: &Arc<str>) -> Result<SqlitePools, Error> {
    refuse_network(path, place)?;
    make(path, place)?;
    let options = options(path).create_if_missing(true);
    // Before anything is changed: another program's file stays as it is.
    look(&options, place).await?;
    let writing = options.clone().journal_mode(SqliteJournalMode::Wal);
    let writer = pool(1).connect_lazy_with(writing);
    switch_to_wal(&writer, place).await?;
    let readers = pool(READERS).connect_lazy_with(options.clone().pragma("query_only", "ON"));
    Ok(SqlitePools { options: options.into(), writer, readers, unlocked: None })
}

/// Opens a file that exists and is ours or empty, and changes nothing of it.
pub(super) async fn connect_as_is(path: &Path, place: &Arc<str>) -> Result<SqlitePools, Error> {
    refuse_network(path, place)?;
    if !exists(path, place)? {
        return Err(Error::new(place, ErrorKind::Missing));
    }
    let (mut options, mut unlocked) = (options(path), None);
    if let Err(error) = look(&options, place).await {
        let state = state(path);
        // A file with a log is read by way of an index beside it, which cannot be made in a directory that is
        // read-only. One whose log is gone has all of its content, and no process that writes.
        if !matches!(error.kind, ErrorKind::Open(_) | ErrorKind::ReadOnly) || state.2 {
            return Err(error);
        }
        options = options.read_only(true).immutable(true);
        look(&options, place).await.map_err(|_same| error)?;
        unlocked = Some(state);
    }
    let writer = pool(1).connect_lazy_with(options.clone());
    let readers = pool(READERS).connect_lazy_with(options.clone().pragma("query_only", "ON"));
    Ok(SqlitePools { options: options.into(), writer, readers, unlocked })
}

impl SqlitePools {
    pub(super) fn is_unchanged(&self, place: &Arc<str>) -> Result<(), Error> {
        match self.unlocked {
            Some(before) if state(self.options.get_filename()) != before => Err(Error::new(place, ErrorKind::Locked)),
            _ => Ok(()),
        }
    }
}

fn state(path: &Path) -> FileState {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let has_log = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
    let file = std::fs::metadata(path).ok();
    let modified = file.as_ref().and_then(|file| file.modified().ok());
    (modified, file.map_or(0, |file| file.len()), has_log)
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_LIMIT)
        .foreign_keys(true)
        .synchronous(SqliteSynchronous::Full)
        .disable_statement_logging()
}

fn pool(most: u32) -> PoolOptions<Sqlite> {
    // A connection that is opened anew is as good as one that is kept.
    let pool = PoolOptions::new().max_connections(most).acquire_timeout(QUEUE_LIMIT).test_before_acquire(false);
    without_maintenance(pool)
}

/// Connects once, and makes sure that the file is ours or empty.
async fn look(options: &SqliteConnectOptions, place: &Arc<str>) -> Result<(), Error> {
    let failed = |error: sqlx::Error| with_reason(Error::from_sqlx(place, &error), options.get_filename());
    let mut first = options.connect().await.map_err(failed)?;
    let outcome = foreign::refuse_foreign_file(&mut first, place).await;
    sqlx::Connection::close(first).await.map_err(failed)?;
    outcome
}

/// SQLite does not say why it cannot open a file. (To open it here would be wrong: closing it ends the locks that this
/// process has on it.)
fn with_reason(error: Error, path: &Path) -> Error {
    match (&error.kind, rustix::fs::access(path, Access::READ_OK)) {
        (ErrorKind::Open(_), Err(reason)) => {
            Error { kind: ErrorKind::Open(io::Error::from(reason).to_string()), ..error }
        }
        _ => error,
    }
}

/// Whether there is a file; not to know is an error.
fn exists(path: &Path, place: &Arc<str>) -> Result<bool, Error> {
    path.try_exists().map_err(|error| Error::new(place, ErrorKind::Open(error.to_string())))
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes an empty file, which only this user can read, where there is none. SQLite gives its log the same mode.
fn make(path: &Path, place: &Arc<str>) -> Result<(), Error> {
    if exists(path, place)? {
        return Ok(());
    }
    // It is closed before it has its name: closing it later would end locks of this process.
    let made = temporary(path).and_then(|file| Ok(file.into_temp_path().persist_noclobber(path)?));
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(cannot_make(&error, path, place)),
        _ => Ok(()),
    }
}

/// Whether a file can be made where one is missing.
pub(super) fn try_to_make(path: &Path, place: &Arc<str>) -> Result<(), Error> {
    refuse_network(path, place)?;
    temporary(path).map(drop).map_err(|error| cannot_make(&error, path, place))
}

fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".catalogue-")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(directory(path))
}

fn cannot_make(error: &io::Error, path: &Path, place: &Arc<str>) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull => ErrorKind::Full,
        io::ErrorKind::ReadOnlyFilesystem => ErrorKind::ReadOnly,
        _ => ErrorKind::Open(format!("{}: {}", directory(path).display(), reason(error))),
    };
    Error::new(place, kind)
}

/// The system's words, without the path of the temporary file.
fn reason(error: &io::Error) -> String {
    io::Error::from(error.kind()).to_string()
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
    let at = if exists(path, place)? { path } else { directory(path) };
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
