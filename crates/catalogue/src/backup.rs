//! A consistent copy of a catalogue that is in use.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::NamedTempFile;

use crate::database::Database;
use crate::error::{Error, ErrorKind, io_code, is_full, one_line};
use crate::schema;

/// What is wrong with the disk of a backup.
const FULL: &str = "its disk is full; free space there, or name a file on another disk";

/// Result codes of SQLite: <https://sqlite.org/rescode.html>.
const IOERR_READ: i32 = 266;
const IOERR_SHORT_READ: i32 = 522;

/// Writes a copy of a SQLite catalogue to a file.
///
/// # Errors
/// As [`Catalogue::backup`](crate::catalogue::Catalogue::backup).
pub(crate) async fn write(database: &Database, to: &Path) -> Result<(), Error> {
    let Some(file) = database.file() else {
        return Err(database.error(ErrorKind::Unsupported(
            "PostgreSQL is backed up by its own tools: use pg_dump, or pg_basebackup with an archive of its log",
        )));
    };
    let target = Target { database, to };
    if is_same(file.get_filename(), to).map_err(|error| target.failed(&error))? {
        let text = format!("{} is the catalogue itself; name another file for the backup", to.display());
        return Err(database.error(ErrorKind::Refused(text)));
    }
    let copy = target.copy(file).await?;
    target.keep(copy)
}

/// Writes a copy of a catalogue in SQLite beside it, before its schema, of that version, is brought up to date; the
/// answer is its file. None for PostgreSQL, and where another process has brought it up to date meanwhile and so has
/// written one.
///
/// # Errors
/// As [`write`].
pub(crate) async fn before_migration(database: &Database, version: i64) -> Result<Option<PathBuf>, Error> {
    let Some(file) = database.file() else { return Ok(None) };
    let mut to = file.get_filename().as_os_str().to_owned();
    to.push(format!(".schema-{version}"));
    let to = PathBuf::from(to);
    let target = Target { database, to: &to };
    let copy = target.copy(file).await?;
    // What has that schema after it was copied had it before.
    if schema::look(database).await?.map(|(_, found)| found) != Some(version) {
        return Ok(None);
    }
    target.keep(copy)?;
    Ok(Some(to))
}

/// A database, and the file that a copy of it becomes.
struct Target<'a> {
    database: &'a Database,
    to: &'a Path,
}

impl Target<'_> {
    fn failed(&self, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::StorageFull => self.cannot(FULL.to_owned()),
            _ => self.cannot(error.to_string()),
        }
    }

    fn cannot(&self, why: String) -> Error {
        self.database.error(ErrorKind::Backup { path: self.to.display().to_string(), why })
    }

    fn directory(&self) -> &Path {
        self.to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// A file beside it with the database as it is at one instant.
    async fn copy(&self, file: &SqliteConnectOptions) -> Result<NamedTempFile, Error> {
        let directory = self.directory();
        // SQLite writes into an empty file as into none, and so keeps who may read it.
        let copy = tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(directory);
        let copy = copy.map_err(|error| self.failed(&error))?;
        let driver_failed = |error: sqlx::Error| Error::from_sqlx(self.database.place(), &error);
        let mut connection = file.connect().await.map_err(driver_failed)?;
        let path = copy.path().to_str().ok_or_else(|| self.cannot("its path is not UTF-8".to_owned()))?.to_owned();
        let written = sqlx::query("VACUUM INTO $1").bind(path).execute(&mut connection).await;
        connection.close().await.map_err(driver_failed)?;
        written.map_err(|error| match io_code(&error) {
            // It could not be read from the catalogue.
            Some(IOERR_READ | IOERR_SHORT_READ) => driver_failed(error),
            Some(_) if is_full(directory) => self.cannot(FULL.to_owned()),
            Some(_) => {
                self.cannot(format!("{}; check its disk and the limit on file sizes", one_line(&error.to_string())))
            }
            None => match driver_failed(error) {
                Error { kind: ErrorKind::Full, .. } => self.cannot(FULL.to_owned()),
                error => error,
            },
        })?;
        self.database.is_unchanged()?;
        Ok(copy)
    }

    fn keep(&self, copy: NamedTempFile) -> Result<(), Error> {
        copy.as_file().sync_all().map_err(|error| self.failed(&error))?;
        copy.persist(self.to).map_err(|error| self.failed(&error.error))?;
        let synced = File::open(self.directory()).and_then(|directory| directory.sync_all());
        synced.map_err(|error| self.failed(&error))
    }
}

fn is_same(from: &Path, to: &Path) -> io::Result<bool> {
    let from = std::fs::metadata(from)?;
    match std::fs::metadata(to) {
        Ok(to) => Ok((from.dev(), from.ino()) == (to.dev(), to.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
