//! The statements of `record_version` by themselves: one connection, no checks, no counters, no error handling.

use queuekeeper_catalogue::inventory::{File, NewVersion};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, SqliteConnection};

/// As many rows as one statement of the catalogue has.
const ROWS_AT_ONCE: usize = 100;

/// A connection.
pub(crate) enum Bare {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

/// Runs the same code on either connection.
macro_rules! on {
    ($self:ident, |$connection:ident, $now:ident| $body:block) => {
        match $self {
            Bare::Sqlite($connection) => {
                let $now = "CAST(ROUND(unixepoch('now', 'subsec') * 1000) AS INTEGER)";
                $body
            }
            Bare::Postgres($connection) => {
                let $now = "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS BIGINT)";
                $body
            }
        }
    };
}

fn insert_files(rows: usize) -> String {
    let row = |row: usize| {
        let arguments = (1..=7).map(|column| format!("${}", 7 * row + column)).collect::<Vec<_>>();
        format!("({})", arguments.join(", "))
    };
    let rows = (0..rows).map(row).collect::<Vec<_>>().join(", ");
    format!("INSERT INTO files (version, path, content_path, size, digests, media_type, is_billable) VALUES {rows}")
}

impl Bare {
    pub(crate) async fn connect(url: &str) -> Self {
        if url.starts_with("sqlite:") {
            let mut connection = SqliteConnection::connect(url).await.unwrap();
            connection.execute("PRAGMA synchronous = FULL; PRAGMA busy_timeout = 60000").await.unwrap();
            Self::Sqlite(connection)
        } else {
            Self::Postgres(PgConnection::connect(url).await.unwrap())
        }
    }

    /// One transaction.
    pub(crate) async fn record(&mut self, new: &NewVersion, files: impl Iterator<Item = File>) {
        let begin = match self {
            Self::Sqlite(_) => "BEGIN IMMEDIATE",
            Self::Postgres(_) => "BEGIN",
        };
        let files = files.collect::<Vec<_>>();
        on!(self, |connection, now| {
            connection.execute(begin).await.unwrap();
            let sql = "SELECT 1 FROM versions WHERE job = $1";
            assert!(sqlx::query(sql).bind(new.job).fetch_optional(&mut *connection).await.unwrap().is_none());
            let sql = format!(
                "INSERT INTO objects (ark, owner, collection, created, modified, current_version)
                VALUES ($1, $2, $3, {now}, {now}, 0) ON CONFLICT (ark) DO NOTHING"
            );
            let insert = sqlx::query(AssertSqlSafe(sql)).bind(&new.ark).bind(&new.owner).bind(&new.collection);
            insert.execute(&mut *connection).await.unwrap();
            let sql = format!(
                "UPDATE objects SET modified = {now}, title = $2, current_version = $3 WHERE ark = $1 RETURNING id"
            );
            let update = sqlx::query_scalar(AssertSqlSafe(sql)).bind(&new.ark).bind(&new.title).bind(1i64);
            let object: i64 = update.fetch_one(&mut *connection).await.unwrap();
            let sql = format!(
                "INSERT INTO versions
                    (object, number, job, batch, submitter, message, file_count, byte_count, ingested)
                VALUES ($1, 1, $2, $3, $4, $5, 0, 0, {now}) RETURNING id"
            );
            let insert = sqlx::query_scalar(AssertSqlSafe(sql)).bind(object).bind(new.job).bind(new.batch);
            let insert = insert.bind(&new.submitter).bind(&new.message);
            let version: i64 = insert.fetch_one(&mut *connection).await.unwrap();
            for rows in files.chunks(ROWS_AT_ONCE) {
                let mut insert = sqlx::query(AssertSqlSafe(insert_files(rows.len())));
                for file in rows {
                    let size = i64::try_from(file.size).unwrap();
                    let digests = serde_json::to_string(&file.digests).unwrap();
                    insert = insert.bind(version).bind(&file.path).bind(&file.content_path).bind(size);
                    insert = insert.bind(digests).bind(&file.media_type).bind(file.is_billable);
                }
                insert.execute(&mut *connection).await.unwrap();
            }
            let count = i64::try_from(files.len()).unwrap();
            let sql = "UPDATE versions SET file_count = $1, byte_count = $2 WHERE id = $3";
            let update = sqlx::query(sql).bind(count).bind(0i64).bind(version);
            update.execute(&mut *connection).await.unwrap();
            connection.execute("COMMIT").await.unwrap();
        });
    }

    /// Fills the objects with so many rows, made by the database.
    pub(crate) async fn fill(&mut self, rows: u64) {
        let numbers = match self {
            Self::Sqlite(_) => {
                format!(
                    "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows} - 1)
                    SELECT printf('ark:/99999/%012d', n), 'owner', 'collection', 'a title', 0, 0, 1 FROM numbers"
                )
            }
            Self::Postgres(_) => format!(
                "SELECT 'ark:/99999/' || lpad(n::text, 12, '0'), 'owner', 'collection', 'a title', 0, 0, 1
                FROM generate_series(0, {rows} - 1) AS n"
            ),
        };
        let insert = "INSERT INTO objects (ark, owner, collection, title, created, modified, current_version)";
        on!(self, |connection, _now| {
            connection.execute(AssertSqlSafe(format!("{insert} {numbers}"))).await.unwrap();
            connection.execute("ANALYZE").await.unwrap();
        });
    }
}
