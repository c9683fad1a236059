//! A consistent copy of a catalogue that is in use.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::catalogue::Catalogue;
use crate::error::{Error, ErrorKind};

impl Catalogue {
    /// Writes a copy of a SQLite catalogue, as it is at one instant, to a file that only this user can read. It is written
    /// beside that file, synced, and takes its place when it is whole; an earlier copy is replaced. Others read and write
    /// meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for PostgreSQL, which has tools of its own for that. Others when the copy cannot be
    /// written; then an earlier copy is still there.
    pub async fn backup(&self, to: &Path) -> Result<(), Error> {
        let Some(from) = self.database.file() else {
            return Err(self.database.error(ErrorKind::Unsupported(
                "PostgreSQL is backed up by its own tools: use pg_dump, or pg_basebackup with an archive of its log",
            )));
        };
        let failed = |error: io::Error| {
            let kind = if error.kind() == io::ErrorKind::StorageFull {
                ErrorKind::Full
            } else {
                ErrorKind::Open(format!("backup {}: {error}", to.display()))
            };
            self.database.error(kind)
        };
        if is_same(from, to).map_err(failed)? {
            let text = format!("{} is the catalogue itself; name another file for the backup", to.display());
            return Err(self.database.error(ErrorKind::Refused(text)));
        }
        let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // SQLite writes into an empty file as into none, and so keeps who may read it.
        let copy = tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(directory);
        let copy = copy.map_err(failed)?;
        let options = SqliteConnectOptions::new().filename(from).disable_statement_logging();
        let driver_failed = |error: sqlx::Error| Error::from_sqlx(self.database.place(), &error);
        let mut connection = options.connect().await.map_err(driver_failed)?;
        let path = copy.path().to_str().ok_or_else(|| failed(io::Error::other("its path is no text")))?.to_owned();
        let written = sqlx::query("VACUUM INTO $1").bind(path).execute(&mut connection).await;
        connection.close().await.map_err(driver_failed)?;
        written.map_err(driver_failed)?;
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
