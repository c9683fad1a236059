//! A consistent copy of a catalogue that is in use.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use sqlx::{ConnectOptions as _, Connection as _};

use crate::catalogue::Catalogue;
use crate::error::{Error, ErrorKind, io_code, is_full, one_line};

/// What is wrong with the disk of a backup.
const FULL: &str = "its disk is full; make space there, or name a file on another disk";

/// Result codes of SQLite: <https://sqlite.org/rescode.html>.
const IOERR_READ: i32 = 266;
const IOERR_SHORT_READ: i32 = 522;

impl Catalogue {
    /// Writes a copy of a SQLite catalogue, as it is at one instant, to a file that only this user can read. It is written
    /// beside that file, synced, and takes its place when it is whole; an earlier copy is replaced. Others read and write
    /// meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for PostgreSQL, which has tools of its own for that. Others when the copy cannot be
    /// written; then an earlier copy is still there.
    pub async fn backup(&self, to: &Path) -> Result<(), Error> {
        let Some(options) = self.database.file() else {
            return Err(self.database.error(ErrorKind::Unsupported(
                "PostgreSQL is backed up by its own tools: use pg_dump, or pg_basebackup with an archive of its log",
            )));
        };
        let of_backup = |why: String| self.database.error(ErrorKind::Backup { path: to.display().to_string(), why });
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::StorageFull => of_backup(FULL.to_owned()),
            _ => of_backup(error.to_string()),
        };
        if is_same(options.get_filename(), to).map_err(failed)? {
            let text = format!("{} is the catalogue itself; name another file for the backup", to.display());
            return Err(self.database.error(ErrorKind::Refused(text)));
        }
        let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // SQLite writes into an empty file as into none, and so keeps who may read it.
        let copy = tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(directory);
        let copy = copy.map_err(failed)?;
        let driver_failed = |error: sqlx::Error| Error::from_sqlx(self.database.place(), &error);
        let mut connection = options.connect().await.map_err(driver_failed)?;
        let path = copy.path().to_str().ok_or_else(|| failed(io::Error::other("its path is no text")))?.to_owned();
        let written = sqlx::query("VACUUM INTO $1").bind(path).execute(&mut connection).await;
        connection.close().await.map_err(driver_failed)?;
        written.map_err(|error| match io_code(&error) {
            // It could not be read from the catalogue.
            Some(IOERR_READ | IOERR_SHORT_READ) => driver_failed(error),
            Some(_) if is_full(directory) => of_backup(FULL.to_owned()),
            Some(_) => {
                of_backup(format!("{}; check its disk, and the limit of file sizes", one_line(&error.to_string())))
            }
            None => match driver_failed(error) {
                Error { kind: ErrorKind::Full, .. } => of_backup(FULL.to_owned()),
                error => error,
            },
        })?;
        self.database.is_unchanged()?;
        copy.as_file().sync_all().map_err(failed)?;
        copy.persist(to).map_err(|error| failed(error.error))?;
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
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
