//! The connections to a database, of either kind.
//!
//! Two pools behind one face: a statement is written once, with `$1` for its arguments and [`dialect`] words where the
//! two differ.

pub(crate) mod dialect;
pub(crate) mod foreign;
pub(crate) mod grouped;
mod postgres;
pub(crate) mod session;
mod sqlite;
pub(crate) mod value;

use std::path::Path;
use std::sync::Arc;

use sqlx::pool::PoolOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Pool, Postgres};

pub(crate) use self::session::Session;
use self::sqlite::SqlitePools;
use crate::error::{Error, ErrorKind};

/// Connections to one database.
#[derive(Clone)]
pub(crate) struct Database {
    pools: Pools,
    place: Arc<str>,
}

#[derive(Clone)]
enum Pools {
    Sqlite(SqlitePools),
    Postgres(Pool<Postgres>),
}

/// Keeps a pool from closing connections by their age.
///
/// The task that would do so loops over the number of idle connections, which is lowered for one that is taken before
/// it is raised for it: read in that instant it is 2^64, and the task keeps its thread busy for ever (sqlx-core 0.9.0,
/// `pool/inner.rs`; met on 2026-11-24).
fn without_maintenance<D: sqlx::Database>(pool: PoolOptions<D>) -> PoolOptions<D> {
    pool.idle_timeout(None).max_lifetime(None)
}

impl Database {
    /// Connects once, so that whatever is wrong is said now. The schema may be of any version, or missing. A file that
    /// does not exist is made.
    pub(crate) async fn connect(url: &str) -> Result<Self, Error> {
        match path_of(url) {
            Some(path) => {
                let place = path.display().to_string().into();
                Ok(Self { pools: Pools::Sqlite(sqlite::connect(path, &place).await?), place })
            }
            None => Self::connect_to_server(url).await,
        }
    }

    /// The same, and nothing is changed: no file is made, and one stays in the mode that it has, or is only read where
    /// it cannot be written.
    pub(crate) async fn connect_as_is(url: &str) -> Result<Self, Error> {
        match path_of(url) {
            Some(path) => {
                let place = path.display().to_string().into();
                Ok(Self { pools: Pools::Sqlite(sqlite::connect_as_is(path, &place).await?), place })
            }
            None => Self::connect_to_server(url).await,
        }
    }

    /// Whether a file can be made where one is missing.
    pub(crate) fn try_to_make(url: &str) -> Result<(), Error> {
        let Some(path) = path_of(url) else { return Ok(()) };
        sqlite::try_to_make(path, &path.display().to_string().into())
    }

    /// Whether the URL of a server is one.
    pub(crate) fn check_server_url(url: &str) -> Result<(), String> {
        postgres::options(url).map(drop)
    }

    async fn connect_to_server(url: &str) -> Result<Self, Error> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let (pool, place) = postgres::connect(url).await?;
            return Ok(Self { pools: Pools::Postgres(pool), place });
        }
        // It may be a password that was put in the wrong place: only what comes before a colon is repeated.
        let scheme = url.split_once(':').map_or("no scheme", |(scheme, _)| scheme);
        let scheme = scheme.chars().take(20).collect::<String>();
        Err(Error::new(&"URL".into(), ErrorKind::Url(scheme)))
    }

    /// What errors call it.
    pub(crate) fn place(&self) -> &Arc<str> {
        &self.place
    }

    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(&self.place, kind)
    }

    /// How the file is opened, of SQLite.
    pub(crate) fn file(&self) -> Option<&SqliteConnectOptions> {
        match &self.pools {
            Pools::Sqlite(pools) => Some(&pools.options),
            Pools::Postgres(_) => None,
        }
    }

    /// Makes sure that what was read without locks was not written meanwhile.
    pub(crate) fn is_unchanged(&self) -> Result<(), Error> {
        match &self.pools {
            Pools::Sqlite(pools) => pools.is_unchanged(&self.place),
            Pools::Postgres(_) => Ok(()),
        }
    }

    /// The connections, of PostgreSQL.
    pub(crate) fn postgres(&self) -> Option<&Pool<Postgres>> {
        match &self.pools {
            Pools::Sqlite(_) => None,
            Pools::Postgres(pool) => Some(pool),
        }
    }

    /// For statements that read, each of which sees the database at one instant.
    pub(crate) async fn read(&self) -> Result<Session, Error> {
        match &self.pools {
            Pools::Sqlite(pools) => self.session(pools.readers.acquire().await),
            Pools::Postgres(pool) => self.session(pool.acquire().await),
        }
    }

    /// Begins a transaction that writes.
    pub(crate) async fn begin(&self) -> Result<Session, Error> {
        match &self.pools {
            // One that begins by reading fails at once where another process writes meanwhile, however long it would
            // wait for a lock.
            Pools::Sqlite(pools) => self.session(pools.writer.acquire().await)?.begin("BEGIN IMMEDIATE").await,
            Pools::Postgres(pool) => {
                self.session(pool.acquire().await)?.begin("BEGIN ISOLATION LEVEL READ COMMITTED").await
            }
        }
    }

    /// Begins a transaction that reads, and sees the database at one instant.
    pub(crate) async fn snapshot(&self) -> Result<Session, Error> {
        let begin = match self.pools {
            Pools::Sqlite(_) => "BEGIN",
            Pools::Postgres(_) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        self.read().await?.begin(begin).await
    }

    fn session(&self, link: Result<impl Into<session::Link>, sqlx::Error>) -> Result<Session, Error> {
        match link {
            Ok(link) => Ok(Session::new(link.into(), &self.place)),
            Err(error) => Err(Error::from_sqlx(&self.place, &error)),
        }
    }

    /// Ends all connections.
    pub(crate) async fn close(&self) {
        match &self.pools {
            Pools::Sqlite(pools) => {
                pools.readers.close().await;
                // The last connection that is closed moves the log into the database.
                pools.writer.close().await;
            }
            Pools::Postgres(pool) => pool.close().await,
        }
    }
}

/// The path of a file of SQLite.
fn path_of(url: &str) -> Option<&Path> {
    let path = url.strip_prefix("sqlite:")?;
    // `sqlite://PATH` is what other programs write.
    Some(Path::new(path.strip_prefix("//").unwrap_or(path)))
}
