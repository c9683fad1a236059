//! Arguments of statements, and the rows of their answers.

use std::time::Duration;

use queuekeeper_store::store::EntityTag;
use queuekeeper_store::{Digests, Key, SpaceName, StoreName};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments as _, Decode, Postgres, Row as _, Sqlite, Type};
use uuid::Uuid;

/// An argument of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Int(Option<i64>),
    Flag(bool),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Id(Option<Uuid>),
}

/// The arguments of a statement, in order.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::database::value::Value::from($value)),*] };
}
pub(crate) use values;

macro_rules! from {
    ($($from:ty => |$value:ident| $to:expr;)*) => {
        $(impl From<$from> for Value {
            fn from($value: $from) -> Self {
                $to
            }
        })*
    };
}

from! {
    i64 => |value| Self::Int(Some(value));
    Option<i64> => |value| Self::Int(value);
    // Sizes and counts: nothing has 2^63 bytes.
    u64 => |value| Self::Int(Some(i64::try_from(value).unwrap_or(i64::MAX)));
    Option<u64> => |value| Self::Int(value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)));
    u32 => |value| Self::Int(Some(value.into()));
    bool => |value| Self::Flag(value);
    &str => |value| Self::Text(Some(value.to_owned()));
    &String => |value| Self::Text(Some(value.clone()));
    Option<&str> => |value| Self::Text(value.map(str::to_owned));
    &Option<String> => |value| Self::Text(value.clone());
    &StoreName => |value| Self::Text(Some(value.to_string()));
    &SpaceName => |value| Self::Text(Some(value.to_string()));
    Option<&SpaceName> => |value| Self::Text(value.map(ToString::to_string));
    &Option<EntityTag> => |value| Self::Text(value.as_ref().map(|etag| etag.0.clone()));
    &Digests => |value| Self::Text(Some(digests_as_text(value)));
    &Key => |value| Self::Bytes(Some(value.as_bytes().to_vec()));
    Option<&Key> => |value| Self::Bytes(value.map(|key| key.as_bytes().to_vec()));
    &[u8] => |value| Self::Bytes(Some(value.to_vec()));
    Uuid => |value| Self::Id(Some(value));
    Option<Uuid> => |value| Self::Id(value);
}

/// Digests as the catalogue keeps them: JSON, the weakest algorithm first, hexadecimal digits in lower case.
pub(crate) fn digests_as_text(digests: &Digests) -> String {
    serde_json::to_string(digests).expect("a map from text to text is JSON")
}

/// A span of time as the database counts it.
pub(crate) fn millis(duration: Duration) -> i64 {
    // Half of what there is: the sum with the time now is a time, too.
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 2).min(i64::MAX / 2)
}

/// Takes each value apart once for each driver.
macro_rules! arguments {
    ($values:expr, $arguments:ty) => {{
        let mut arguments = <$arguments>::default();
        for value in $values {
            let added = match value {
                Value::Int(value) => arguments.add(value),
                Value::Flag(value) => arguments.add(value),
                // PostgreSQL holds none, and SQLite shows what is before it.
                Value::Text(Some(text)) if text.contains('\0') => {
                    return Err(sqlx::Error::InvalidArgument(
                        "a text with a NUL character cannot be recorded".to_owned(),
                    ));
                }
                Value::Text(value) => arguments.add(value),
                Value::Bytes(value) => arguments.add(value),
                Value::Id(value) => arguments.add(value),
            };
            added.map_err(sqlx::Error::Encode)?;
        }
        Ok(arguments)
    }};
}

pub(crate) fn for_sqlite(values: Vec<Value>) -> Result<SqliteArguments, sqlx::Error> {
    arguments!(values, SqliteArguments)
}

pub(crate) fn for_postgres(values: Vec<Value>) -> Result<PgArguments, sqlx::Error> {
    arguments!(values, PgArguments)
}

/// What both drivers can read.
pub(crate) trait Readable:
    Type<Sqlite> + Type<Postgres> + for<'r> Decode<'r, Sqlite> + for<'r> Decode<'r, Postgres>
{
}

impl<T> Readable for T where T: Type<Sqlite> + Type<Postgres> + for<'r> Decode<'r, Sqlite> + for<'r> Decode<'r, Postgres>
{}

/// One row of an answer.
pub(crate) enum DatabaseRow {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl DatabaseRow {
    /// The value of a column, counted from 0.
    pub(crate) fn get<T: Readable>(&self, column: usize) -> Result<T, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    /// A value in a form of its own, such as a key; `None` where it is NULL.
    pub(crate) fn parse<T: Readable, U, E>(
        &self,
        column: usize,
        parse: impl FnOnce(T) -> Result<U, E>,
    ) -> Result<Option<U>, sqlx::Error>
    where
        Option<T>: Readable,
        E: std::error::Error + Send + Sync + 'static,
    {
        let Some(value) = self.get::<Option<T>>(column)? else { return Ok(None) };
        let invalid = |error: E| sqlx::Error::ColumnDecode { index: column.to_string(), source: Box::new(error) };
        parse(value).map(Some).map_err(invalid)
    }

    /// The same for what is never NULL.
    pub(crate) fn need<T: Readable, U, E>(
        &self,
        column: usize,
        parse: impl FnOnce(T) -> Result<U, E>,
    ) -> Result<U, sqlx::Error>
    where
        Option<T>: Readable,
        E: std::error::Error + Send + Sync + 'static,
    {
        let index = column.to_string();
        let missing = || sqlx::Error::ColumnDecode { index, source: Box::new(sqlx::error::UnexpectedNullError) };
        self.parse(column, parse)?.ok_or_else(missing)
    }

    /// A size or a count.
    pub(crate) fn count(&self, column: usize) -> Result<u64, sqlx::Error> {
        self.need(column, |value: i64| u64::try_from(value))
    }

    /// Digests.
    pub(crate) fn digests(&self, column: usize) -> Result<Digests, sqlx::Error> {
        self.need(column, |text: String| serde_json::from_str(&text))
    }

    /// An entity tag.
    pub(crate) fn etag(&self, column: usize) -> Result<Option<EntityTag>, sqlx::Error> {
        Ok(self.get::<Option<String>>(column)?.map(EntityTag))
    }

    /// A key.
    pub(crate) fn key(&self, column: usize) -> Result<Option<Key>, sqlx::Error> {
        self.parse(column, |bytes: Vec<u8>| Key::new(bytes))
    }

    /// A time, in milliseconds since 1970.
    pub(crate) fn time(&self, column: usize) -> Result<jiff::Timestamp, sqlx::Error> {
        self.need(column, jiff::Timestamp::from_millisecond)
    }
}
