//! The statements by which tasks are put, taken and finished, by themselves: one connection, no checks, no counters, no
//! error handling.

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, SqliteConnection};
use uuid::Uuid;

/// A connection.
pub(crate) enum Bare {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

/// Runs the same code on either connection; `now` is the time, and `lock` what skips the tasks that others have.
macro_rules! on {
    ($self:ident, |$connection:ident, $now:ident, $lock:ident| $body:block) => {
        match $self {
            Bare::Sqlite($connection) => {
                let ($now, $lock) = ("CAST(ROUND(unixepoch('now', 'subsec') * 1000) AS INTEGER)", "");
                $body
            }
            Bare::Postgres($connection) => {
                let $now = "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS BIGINT)";
                let $lock = "FOR UPDATE SKIP LOCKED";
                $body
            }
        }
    };
}

/// The columns of a task.
const COLUMNS: &str =
    "queue, home, kind, account, space, key, destination, source, generation, state, visible, attempts, rounds,
    errors, is_released, is_put_off, created";

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

    fn begin(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "BEGIN IMMEDIATE",
            Self::Postgres(_) => "BEGIN",
        }
    }

    /// Puts tasks of an account with these keys, in one transaction.
    pub(crate) async fn put(&mut self, account: &str, keys: &[String]) {
        let begin = self.begin();
        on!(self, |connection, now, _lock| {
            let row = |at: usize| {
                let fields = (1..=8).map(|field| format!("${}", 8 * at + field)).collect::<Vec<_>>().join(", ");
                format!("({fields}, 1, 'waiting', {now}, 0, 0, '[]', FALSE, FALSE, {now})")
            };
            let rows = (0..keys.len()).map(row).collect::<Vec<_>>().join(", ");
            let sql = format!(
                "INSERT INTO tasks ({COLUMNS}) VALUES {rows}
                ON CONFLICT (account, space, key, kind, destination) DO UPDATE SET generation = tasks.generation + 1,
                    source = excluded.source, is_put_off = FALSE,
                    visible = CASE WHEN tasks.is_put_off AND tasks.holder IS NULL THEN {now} ELSE tasks.visible END
                RETURNING id, queue, generation, state, kind, account, space, key, destination"
            );
            connection.execute(begin).await.unwrap();
            let mut put = sqlx::query(AssertSqlSafe(sql));
            for key in keys {
                put = put.bind("duplication-low").bind("duplication-low").bind("DUP").bind(account).bind("space");
                put = put.bind(key.as_bytes()).bind("replica").bind("main");
            }
            assert_eq!(put.fetch_all(&mut *connection).await.unwrap().len(), keys.len());
            connection.execute("COMMIT").await.unwrap();
        });
    }

    /// Takes tasks of an account in one transaction, and finishes them in another one; the answer is how many there
    /// were.
    pub(crate) async fn take_and_finish(&mut self, account: &str, limit: i64) -> usize {
        let begin = self.begin();
        on!(self, |connection, now, lock| {
            let kinds = (7..=14).map(|at| format!("${at}")).collect::<Vec<_>>().join(", ");
            let sql = format!(
                "UPDATE tasks SET visible = {now} + $1, holder = $2, worker = $3, attempts = attempts + 1
                WHERE id IN (
                    SELECT id FROM tasks WHERE queue = $4 AND account = $5 AND visible <= {now} AND kind IN ({kinds})
                    ORDER BY visible, id LIMIT $6 {lock})
                RETURNING id, kind, account, space, key, destination, source, generation, attempts, rounds, errors, created,
                    is_released"
            );
            let holder = Uuid::now_v7();
            connection.execute(begin).await.unwrap();
            let mut take = sqlx::query(AssertSqlSafe(sql)).bind(300_000_i64).bind(holder).bind("bare");
            take = take.bind("duplication-low").bind(account).bind(limit);
            for _kind in 0..8 {
                take = take.bind("DUP");
            }
            let taken = take.fetch_all(&mut *connection).await.unwrap();
            connection.execute("COMMIT").await.unwrap();
            connection.execute(begin).await.unwrap();
            for row in &taken {
                let id: i64 = sqlx::Row::get(row, 0);
                let generation: i64 = sqlx::Row::get(row, 7);
                let finish = sqlx::query("DELETE FROM tasks WHERE id = $1 AND holder = $2 AND generation = $3");
                let finish = finish.bind(id).bind(holder).bind(generation);
                assert_eq!(finish.execute(&mut *connection).await.unwrap().rows_affected(), 1);
            }
            connection.execute("COMMIT").await.unwrap();
            taken.len()
        })
    }

    /// Adds so many tasks of an account that wait, made by the database, and so many dead letters.
    pub(crate) async fn fill(&mut self, account: &str, waiting: u64, dead: u64) {
        for (queue, state, visible, rows) in
            [("duplication-low", "waiting", 0, waiting), ("dead-letter", "dead", i64::MAX, dead)]
        {
            let task = |key: &str| {
                format!(
                    "'{queue}', 'duplication-low', 'DUP', '{account}', 'space', {key}, 'replica', 'main', 1, '{state}', {visible},
                    0, 0, '[]', FALSE, FALSE, 0"
                )
            };
            let rows = match self {
                Self::Sqlite(_) => {
                    let task = task(&format!("CAST(printf('{state}/%012d', n) AS BLOB)"));
                    format!(
                        "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows} - 1)
                        SELECT {task} FROM numbers"
                    )
                }
                Self::Postgres(_) => {
                    let task = task(&format!("convert_to('{state}/' || lpad(n::text, 12, '0'), 'UTF8')"));
                    format!("SELECT {task} FROM generate_series(0, {rows} - 1) AS n")
                }
            };
            on!(self, |connection, _now, _lock| {
                connection.execute(AssertSqlSafe(format!("INSERT INTO tasks ({COLUMNS}) {rows}"))).await.unwrap();
            });
        }
        on!(self, |connection, _now, _lock| {
            connection.execute("ANALYZE").await.unwrap();
        });
    }
}
