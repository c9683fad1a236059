//! Databases of both kinds, a new one for each measurement.

use queuekeeper_testkit::postgres::Postgres;
use tempfile::TempDir;

/// A kind of database.
pub(crate) enum DatabaseKind {
    Sqlite(TempDir),
    Postgres(Box<Postgres>),
}

impl DatabaseKind {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }

    /// The URL of a new database.
    pub(crate) fn url(&self, name: &str) -> String {
        match self {
            Self::Sqlite(directory) => format!("sqlite:{}", directory.path().join(format!("{name}.db")).display()),
            Self::Postgres(server) => server.create(name),
        }
    }
}
