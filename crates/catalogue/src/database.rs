//! The connections to a database, of either kind.
//!
//! Two pools behind one face: a statement is written once, with `$1` for its arguments and [`dialect`] words where the
//! two differ.

pub(crate) mod dialect;
mod postgres;
pub(crate) mod session;
mod sqlite;
pub(crate) mod value;

use std::path::Path;
use std::sync::Arc;

use sqlx::pool::PoolOptions;
use sqlx::{Pool, Postgres, Sqlite};

pub(crate) use self::session::Session;
pub(crate) use self::sqlite::APPLICATION_ID;
use crate::error::{Error, ErrorKind};

/// Connections to one database.
#[derive(Clone)]
pub(crate) struct Database {
    pools: Pools,
    place: Arc<str>,
}

#[derive(Clone)]
enum Pools {
    /// SQLite has one writer at a time: one connection, so that writers of this process wait in a fair queue.
    Sqlite {
        path: Arc<Path>,
        writer: Pool<Sqlite>,
        readers: Pool<Sqlite>,
    },
    Postgres(Pool<Postgres>),
}

/// Keeps a pool from closing connections by their age.
///
/// The task that would do so loops over the number of idle connections, which is lowered for one that is taken before it
/// is raised for it: read in that instant it is 2^64, and the task keeps its thread busy for ever (sqlx-core 0.9.0,
/// `pool/inner.rs`; met on 2026-11-24).
fn without_maintenance<D: sqlx::Database>(pool: PoolOptions<D>) -> PoolOptions<D> {
    pool.idle_timeout(None).max_lifetime(None)
}

impl Database {
    /// Connects once, so that whatever is wrong is said now. The schema may be of any version, or missing.
    pub(crate) async fn connect(url: &str) -> Result<Self, Error> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            // `sqlite://PATH` is what other programs write.
            let path = Path::new(path.strip_prefix("//").unwrap_or(path));
            let place: Arc<str> = path.display().to_string().into();
            let (writer, readers) = sqlite::connect(path, &place).await?;
            return Ok(Self { pools: Pools::Sqlite { path: path.into(), writer, readers }, place });
        }
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

    /// The file, of SQLite.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.pools {
            Pools::Sqlite { path, .. } => Some(path),
            Pools::Postgres(_) => None,
        }
    }

    /// The connections, of PostgreSQL.
    pub(crate) fn postgres(&self) -> Option<&Pool<Postgres>> {
        match &self.pools {
            Pools::Sqlite { .. } => None,
            Pools::Postgres(pool) => Some(pool),
        }
    }

    /// For statements that read, each of which sees the database at one instant.
    pub(crate) async fn read(&self) -> Result<Session, Error> {
        match &self.pools {
            Pools::Sqlite { readers, .. } => self.session(readers.acquire().await),
            Pools::Postgres(pool) => self.session(pool.acquire().await),
        }
    }

    /// Begins a transaction that writes.
    pub(crate) async fn begin(&self) -> Result<Session, Error> {
        match &self.pools {
            // One that begins by reading fails at once where another process writes meanwhile, however long it would
            // wait for a lock.
            Pools::Sqlite { writer, .. } => self.session(writer.acquire().await)?.begin("BEGIN IMMEDIATE").await,
            Pools::Postgres(pool) => {
                self.session(pool.acquire().await)?.begin("BEGIN ISOLATION LEVEL READ COMMITTED").await
            }
        }
    }

    /// Begins a transaction that reads, and sees the database at one instant.
    pub(crate) async fn snapshot(&self) -> Result<Session, Error> {
        let begin = match self.pools {
            Pools::Sqlite { .. } => "BEGIN",
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
            Pools::Sqlite { writer, readers, .. } => {
                readers.close().await;
                // The last connection that is closed moves the log into the database.
                writer.close().await;
            }
            Pools::Postgres(pool) => pool.close().await,
        }
    }
}
