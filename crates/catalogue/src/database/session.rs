//! One connection in use: statements, and the transaction around them.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Executor as _, Postgres, Sqlite};
use tokio::time::timeout;

use super::dialect::Dialect;
use super::value::{DatabaseRow, Value, for_postgres, for_sqlite};
use crate::error::{Error, ErrorKind};

/// How long a server may take for one statement: longer than any wait for a lock of ours.
const STATEMENT_LIMIT: Duration = Duration::from_mins(1);

/// How many rows one statement inserts at most: more gains nothing, and SQLite has a limit of arguments.
pub(crate) const ROWS_AT_ONCE: usize = 100;

/// `row` is what stands in the parentheses of one row, with `?` for each argument.
fn insert_statement(dialect: Dialect, into: &str, row: &str, rows: usize, then: &str) -> String {
    let mut sql = format!("{into} VALUES ");
    let mut argument = 0;
    for number in 0..rows {
        sql.push_str(if number == 0 { "(" } else { ", (" });
        for char in row.chars() {
            // SQLite goes through all names that an argument may have, once for each of them: a thousand are a million
            // steps.
            if char == '?' && dialect == Dialect::Postgres {
                argument += 1;
                let _infallible = write!(sql, "${argument}");
            } else {
                sql.push(char);
            }
        }
        sql.push(')');
    }
    sql + then
}

/// The connection itself.
pub(crate) enum Link {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
}

impl From<PoolConnection<Sqlite>> for Link {
    fn from(connection: PoolConnection<Sqlite>) -> Self {
        Self::Sqlite(connection)
    }
}

impl From<PoolConnection<Postgres>> for Link {
    fn from(connection: PoolConnection<Postgres>) -> Self {
        Self::Postgres(connection)
    }
}

/// A connection, given back when dropped. One with a transaction or a statement under way is closed instead, which ends
/// both.
pub(crate) struct Session {
    link: Link,
    place: Arc<str>,
    is_in_transaction: bool,
    is_waiting: bool,
    limit: Option<Duration>,
}

/// Runs one call of a driver on either connection.
macro_rules! call {
    ($self:ident, $sql:expr, $values:expr, $call:ident, |$answer:ident| ($sqlite:expr, $postgres:expr)) => {{
        let sql = $self.dialect().statement($sql.into());
        $self.is_waiting = true;
        let limit = $self.limit;
        let call = async {
            match &mut $self.link {
                Link::Sqlite(link) => {
                    let query = sqlx::query_with(AssertSqlSafe(sql), for_sqlite($values)?);
                    let $answer = query.$call(&mut **link).await?;
                    Ok($sqlite)
                }
                Link::Postgres(link) => {
                    let query = sqlx::query_with(AssertSqlSafe(sql), for_postgres($values)?);
                    let $answer = query.$call(&mut **link).await?;
                    Ok($postgres)
                }
            }
        };
        let answer = within(limit, call).await;
        $self.answered(answer)
    }};
}

impl Session {
    pub(super) fn new(link: Link, place: &Arc<str>) -> Self {
        let limit = match link {
            // The file is local; what takes long there has much to do.
            Link::Sqlite(_) => None,
            Link::Postgres(_) => Some(STATEMENT_LIMIT),
        };
        Self { link, place: Arc::clone(place), is_in_transaction: false, is_waiting: false, limit }
    }

    pub(super) async fn begin(mut self, statement: &'static str) -> Result<Self, Error> {
        self.is_in_transaction = true;
        self.script(statement).await?;
        Ok(self)
    }

    /// Lets statements take any time, as those may that look at every row.
    pub(crate) fn without_limit(mut self) -> Self {
        self.limit = None;
        self
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self.link {
            Link::Sqlite(_) => Dialect::Sqlite,
            Link::Postgres(_) => Dialect::Postgres,
        }
    }

    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(&self.place, kind)
    }

    /// Takes back what the transaction did.
    pub(crate) async fn roll_back(mut self) {
        // Where this fails, closing the connection does the same.
        self.is_in_transaction = self.script("ROLLBACK").await.is_err();
    }

    /// Commits where the outcome is a success, else rolls back.
    pub(crate) async fn end<T>(mut self, outcome: Result<T, Error>) -> Result<T, Error> {
        match outcome {
            Ok(value) => {
                self.script("COMMIT").await?;
                self.is_in_transaction = false;
                Ok(value)
            }
            Err(error) => {
                self.roll_back().await;
                Err(error)
            }
        }
    }

    /// Runs a statement; the answer is how many rows it changed.
    pub(crate) async fn run(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64, Error> {
        call!(self, sql, values, execute, |done| (done.rows_affected(), done.rows_affected()))
    }

    /// Inserts many rows of so many columns by statements that each have [`ROWS_AT_ONCE`] of them. `into` is all that
    /// comes before `VALUES`.
    pub(crate) async fn insert_many(
        &mut self,
        into: &'static str,
        columns: usize,
        values: Vec<Value>,
    ) -> Result<(), Error> {
        self.insert_returning(into, &vec!["?"; columns].join(", "), "", values).await.map(|_rows| ())
    }

    /// As [`Self::insert_many`]. `row` is one row, with `?` for each argument; `then` is what comes after the rows, and
    /// its answers are returned. There are no arguments but those of the rows.
    pub(crate) async fn insert_returning(
        &mut self,
        into: &'static str,
        row: &str,
        then: &'static str,
        mut values: Vec<Value>,
    ) -> Result<Vec<DatabaseRow>, Error> {
        let columns = row.matches('?').count();
        let mut answers = Vec::new();
        while !values.is_empty() {
            let rest = values.split_off(values.len().min(ROWS_AT_ONCE * columns));
            let sql = insert_statement(self.dialect(), into, row, values.len() / columns, then);
            answers.extend(self.rows_of(sql, values).await?);
            values = rest;
        }
        Ok(answers)
    }

    /// All rows of an answer. Statements say how many that are at most.
    pub(crate) async fn rows(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<DatabaseRow>, Error> {
        self.rows_of(sql, values).await
    }

    async fn rows_of(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: Vec<Value>,
    ) -> Result<Vec<DatabaseRow>, Error> {
        call!(self, sql, values, fetch_all, |rows| (
            rows.into_iter().map(DatabaseRow::Sqlite).collect(),
            rows.into_iter().map(DatabaseRow::Postgres).collect()
        ))
    }

    /// The first row of an answer.
    pub(crate) async fn row(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Option<DatabaseRow>, Error> {
        call!(self, sql, values, fetch_optional, |row| (row.map(DatabaseRow::Sqlite), row.map(DatabaseRow::Postgres)))
    }

    /// Runs statements that have neither arguments nor answers.
    pub(crate) async fn script(&mut self, sql: impl Into<String>) -> Result<(), Error> {
        let sql = AssertSqlSafe(sql.into());
        self.is_waiting = true;
        let limit = self.limit;
        let call = async {
            match &mut self.link {
                Link::Sqlite(link) => link.execute(sqlx::raw_sql(sql)).await.map(|_done| ()),
                Link::Postgres(link) => link.execute(sqlx::raw_sql(sql)).await.map(|_done| ()),
            }
        };
        let answer = within(limit, call).await;
        self.answered(answer)
    }

    /// Reads what a row holds.
    pub(crate) fn decode<T>(&self, value: Result<T, sqlx::Error>) -> Result<T, Error> {
        value.map_err(|error| Error::from_sqlx(&self.place, &error))
    }

    fn answered<T>(&mut self, answer: Option<Result<T, sqlx::Error>>) -> Result<T, Error> {
        let Some(answer) = answer else {
            return Err(self.error(ErrorKind::Away(format!("no answer within {} s", STATEMENT_LIMIT.as_secs()))));
        };
        // After an answer that is no word of the database's, nothing is known of the connection.
        self.is_waiting = matches!(&answer, Err(error) if error.as_database_error().is_none());
        self.decode(answer)
    }
}

async fn within<T>(limit: Option<Duration>, call: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => timeout(limit, call).await.ok(),
        None => Some(call.await),
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_in_transaction || self.is_waiting {
            match &mut self.link {
                Link::Sqlite(link) => link.close_on_drop(),
                Link::Postgres(link) => link.close_on_drop(),
            }
        }
    }
}
