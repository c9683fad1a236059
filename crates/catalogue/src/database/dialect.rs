//! The words in which the SQL of the two databases differs.

use std::borrow::Cow;

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// A word of our statements, with what SQLite and PostgreSQL call it.
type Word = (&'static str, &'static str, &'static str);

/// Of every statement.
///
/// PostgreSQL's `{now}` is the time at which the statement began, since an index is used only with what does not change
/// during it; a statement that waited for a lock takes leases to be longer than they are, never shorter.
const WORDS: &[Word] = &[
    (
        "{now}",
        "CAST(ROUND(unixepoch('now', 'subsec') * 1000) AS INTEGER)",
        "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS BIGINT)",
    ),
    ("{job_text}", "LOWER(HEX(job))", "CAST(job AS TEXT)"),
    // SQLite's writers are alone.
    ("{lock}", "", "FOR UPDATE"),
    ("{lock_next}", "", "FOR UPDATE SKIP LOCKED"),
];

/// Of the schema. SQLite's tables are strict: a column holds its type and nothing else.
const SCHEMA_WORDS: &[Word] = &[
    ("{id}", "INTEGER PRIMARY KEY", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    ("{int}", "INTEGER", "BIGINT"),
    ("{flag}", "INTEGER", "BOOLEAN"),
    // Compared by bytes in both.
    ("{text}", "TEXT", "TEXT COLLATE \"C\""),
    ("{bytes}", "BLOB", "BYTEA"),
    ("{uuid}", "BLOB", "UUID"),
    ("{table}", "STRICT", ""),
    // Kept in the order of the primary key.
    ("{table_by_key}", "STRICT, WITHOUT ROWID", ""),
];

impl Dialect {
    /// A statement of ours in this dialect.
    pub(crate) fn statement(self, sql: Cow<'static, str>) -> Cow<'static, str> {
        if sql.contains('{') { Cow::Owned(self.replace(&sql, WORDS)) } else { sql }
    }

    /// A part of the schema in this dialect.
    pub(crate) fn schema(self, sql: &str) -> String {
        self.replace(sql, SCHEMA_WORDS)
    }

    fn replace(self, sql: &str, words: &[Word]) -> String {
        words.iter().fold(sql.to_owned(), |sql, &(word, sqlite, postgres)| {
            let ours = match self {
                Self::Sqlite => sqlite,
                Self::Postgres => postgres,
            };
            sql.replace(word, ours)
        })
    }
}
