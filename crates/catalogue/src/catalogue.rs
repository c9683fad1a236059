//! The catalogue as its users hold it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::backup;
use crate::database::Database;
use crate::database::grouped::Grouped;
use crate::database::value::{DatabaseRow, Value};
use crate::error::Error;
use crate::notify::Notifier;
use crate::schema;

/// A catalogue: connections to its database. Clones share them.
#[derive(Clone)]
pub struct Catalogue {
    pub(crate) database: Database,
    pub(crate) grouped: Grouped,
    pub(crate) notifier: Arc<Notifier>,
    id: Uuid,
    schema: i64,
}

/// What [`Catalogue::open`] and [`Catalogue::migrate`] did to the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0 where there was none.
    pub from: i64,
    /// The version now.
    pub to: i64,
    /// The copy of a catalogue in SQLite that was written before its schema was changed.
    pub backup: Option<PathBuf>,
}

impl Catalogue {
    /// Opens the catalogue at `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. A database that is empty
    /// or older is brought up to date; any number of processes may do that at once. A file of SQLite that is older is
    /// copied first, to a file beside it whose name ends with `.schema-` and its version.
    ///
    /// # Errors
    /// One line that names the file or the host and says what to do: where it is away, locked, read-only, damaged, of
    /// another program, or of a newer version of this one.
    pub async fn open(url: &str) -> Result<Self, Error> {
        Ok(Self::migrate(url).await?.0)
    }

    /// As [`Self::open`]; the answer has what was done to the schema, too.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn migrate(url: &str) -> Result<(Self, Migrated), Error> {
        let database = Database::connect(url).await?;
        let backup = match schema::look(&database).await? {
            Some((_, found)) if found < schema::NEWEST => backup::before_migration(&database, found).await?,
            _ => None,
        };
        let (id, from) = schema::migrate(&database).await?;
        Ok((Self::new(database, id, schema::NEWEST), Migrated { from, to: schema::NEWEST, backup }))
    }

    pub(crate) fn new(database: Database, id: Uuid, schema: i64) -> Self {
        Self { database, grouped: Grouped::default(), notifier: Notifier::new(), id, schema }
    }

    /// The version of its schema: the newest that this program knows, unless [`Self::open_as_is`] has opened it.
    #[must_use]
    pub fn schema(&self) -> i64 {
        self.schema
    }

    /// What distinguishes this catalogue from every other; made once, with the database.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// What errors call the database: the path of its file, or `postgres://USER@HOST:PORT/DATABASE`.
    #[must_use]
    pub fn place(&self) -> &str {
        self.database.place()
    }

    /// Writes a copy of a SQLite catalogue, as it is at one instant, to a file that only this user can read. It is
    /// written beside that file, synced, and takes its place when it is whole; an earlier copy is replaced. Others read
    /// and write meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::error::ErrorKind::Unsupported) for PostgreSQL, which has tools of its own for
    /// that. Others when the copy cannot be written; then an earlier copy is still there.
    pub async fn backup(&self, to: &Path) -> Result<(), Error> {
        backup::write(&self.database, to).await
    }

    /// Ends all connections, after what is under way. For SQLite, this moves the write-ahead log into the file.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

impl Catalogue {
    /// All rows of one statement.
    pub(crate) async fn list<T>(
        &self,
        sql: &'static str,
        values: Vec<Value>,
        read: impl Fn(&DatabaseRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, Error> {
        let mut session = self.database.read().await?;
        let rows = session.rows(sql, values).await?;
        rows.iter().map(|row| session.decode(read(row))).collect()
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Catalogue").field("place", &self.place()).field("id", &self.id).finish_non_exhaustive()
    }
}

/// The most rows of one page of a list.
const MOST_ROWS: u32 = 1000;

/// How many rows a page of a list has, of those that were requested.
pub(crate) fn page(limit: u32) -> u32 {
    limit.min(MOST_ROWS)
}
