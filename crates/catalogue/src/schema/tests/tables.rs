//! All rows of all tables of a database, whatever tables it has: its own schema names them.

use std::collections::{BTreeMap, BTreeSet};

use crate::database::Database;
use crate::database::dialect::Dialect;
use crate::database::value::values;
use crate::schema::{NEWEST, bring_to};
use crate::test_server::SERVER;

/// The rows of a table: of each, its values as literals of SQL.
pub(super) type Rows = BTreeSet<Vec<String>>;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Int,
    Flag,
    Text,
    Bytes,
    Id,
}

#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
    pub(super) may_be_null: bool,
    /// Whether a rule restricts its numbers: no such rule forbids those above 0.
    pub(super) is_checked: bool,
    /// Whether the database itself numbers the rows by it.
    pub(super) is_numbered: bool,
    /// The table to whose rows it refers.
    pub(super) refers: Option<String>,
}

/// The tables of one version by their names, but for that of the versions.
#[derive(Clone, Debug)]
pub(super) struct Tables(pub(super) BTreeMap<String, Vec<Column>>);

const COLUMNS: &str =
    "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT), CAST(data_type AS TEXT), is_nullable = 'YES',
        EXISTS (SELECT 1 FROM pg_constraint WHERE contype = 'c' AND conrelid = to_regclass(table_name)
            AND ordinal_position = ANY (conkey)),
        (SELECT CAST(CAST(confrelid AS regclass) AS TEXT) FROM pg_constraint WHERE contype = 'f'
            AND conrelid = to_regclass(table_name) AND ordinal_position = ANY (conkey)),
        is_identity = 'YES'
    FROM information_schema.columns WHERE table_schema = CURRENT_SCHEMA() AND table_name <> 'queuekeeper_schema'
    ORDER BY table_name, ordinal_position";

impl Tables {
    /// Those of each version from 1 on, as PostgreSQL describes them: it knows flags and identifiers from numbers and
    /// bytes.
    pub(super) async fn of_each_version(database: &str) -> Vec<Self> {
        let database = Database::connect(&SERVER.create(database)).await.unwrap();
        let mut all = Vec::new();
        for version in 1..=NEWEST {
            bring(&database, version).await;
            all.push(Self::read(&database).await);
        }
        database.close().await;
        all
    }

    async fn read(database: &Database) -> Self {
        let mut session = database.read().await.unwrap();
        let mut tables = BTreeMap::<String, Vec<Column>>::new();
        for row in session.rows(COLUMNS, values![]).await.unwrap() {
            let text = |at| row.get::<String>(at).unwrap();
            let kind = match &*text(2) {
                "bigint" => ColumnKind::Int,
                "boolean" => ColumnKind::Flag,
                "text" => ColumnKind::Text,
                "bytea" => ColumnKind::Bytes,
                "uuid" => ColumnKind::Id,
                other => panic!("a column of type {other}"),
            };
            let (may_be_null, is_checked) = (row.get(3).unwrap(), row.get(4).unwrap());
            let (refers, is_numbered) = (row.get(5).unwrap(), row.get(6).unwrap());
            let column = Column { name: text(1), kind, may_be_null, is_checked, is_numbered, refers };
            tables.entry(text(0)).or_default().push(column);
        }
        Self(tables)
    }

    /// Their names, each behind those that it refers to.
    pub(super) fn in_order(&self) -> Vec<&str> {
        let mut order: Vec<&str> = Vec::new();
        while order.len() < self.0.len() {
            let next = self.0.iter().find(|(name, columns)| {
                let is_there = |table: &String| order.contains(&&**table);
                !order.contains(&&***name) && columns.iter().filter_map(|column| column.refers.as_ref()).all(is_there)
            });
            order.push(next.expect("no circle").0);
        }
        order
    }

    /// The names of a table's columns; none where it has no such table.
    pub(super) fn columns(&self, table: &str) -> Vec<&str> {
        self.0.get(table).into_iter().flatten().map(|column| &*column.name).collect()
    }
}

/// Brings the schema of a database to a version.
pub(super) async fn bring(database: &Database, version: i64) {
    let mut session = database.begin().await.unwrap();
    let outcome = bring_to(&mut session, version).await;
    session.end(outcome).await.unwrap();
}

/// The statements of tests are made of names in the schema.
fn fixed(sql: String) -> &'static str {
    Box::leak(sql.into_boxed_str())
}

/// What a statement without arguments answers: of each row, so many columns.
async fn answers(database: &Database, sql: String, columns: usize) -> Vec<Vec<String>> {
    let mut session = database.read().await.unwrap();
    let rows = session.rows(fixed(sql), values![]).await.unwrap();
    rows.iter().map(|row| (0..columns).map(|at| row.get(at).unwrap()).collect()).collect()
}

/// All rows of a table, by these columns.
pub(super) async fn rows(database: &Database, dialect: Dialect, table: &str, columns: &[&str]) -> Rows {
    let literal = |name: &&str| match dialect {
        Dialect::Sqlite => format!("quote(\"{name}\")"),
        Dialect::Postgres => format!("quote_nullable(CAST(\"{name}\" AS TEXT))"),
    };
    let list = columns.iter().map(literal).collect::<Vec<_>>().join(", ");
    let found = answers(database, format!("SELECT {list} FROM {table}"), columns.len()).await;
    let number = found.len();
    let rows = Rows::from_iter(found);
    // Every table has a key, but the columns that two versions have may lack it.
    assert_eq!(rows.len(), number, "rows of {table} are the same in {columns:?}");
    rows
}

/// The value that a column has where none is given, as a literal.
pub(super) async fn default(database: &Database, dialect: Dialect, table: &str, column: &str) -> String {
    let (known, literal) = match dialect {
        Dialect::Sqlite => {
            ("SELECT COALESCE(dflt_value, 'NULL') FROM pragma_table_info('{table}') WHERE name = '{column}'", "quote")
        }
        Dialect::Postgres => (
            "SELECT COALESCE(CAST(column_default AS TEXT), 'NULL') FROM information_schema.columns
                WHERE table_schema = CURRENT_SCHEMA() AND table_name = '{table}' AND column_name = '{column}'",
            "quote_nullable",
        ),
    };
    let known =
        answers(database, known.replace("{table}", table).replace("{column}", column), 1).await.remove(0).remove(0);
    let cast = if dialect == Dialect::Postgres { format!("CAST({known} AS TEXT)") } else { known };
    answers(database, format!("SELECT {literal}({cast})"), 1).await.remove(0).remove(0)
}

/// Rows to put into a table, with the columns that they have.
pub(super) struct Filling<'a> {
    pub(super) table: &'a str,
    pub(super) columns: Vec<&'a str>,
    pub(super) rows: Rows,
}

/// Puts rows into tables, in this order, in place of those that they have.
pub(super) async fn fill(database: &Database, all: &[Filling<'_>]) {
    let mut session = database.begin().await.unwrap();
    let own_numbers = if session.dialect() == Dialect::Postgres { "OVERRIDING SYSTEM VALUE " } else { "" };
    let statements = all.iter().filter(|filling| !filling.rows.is_empty()).map(|Filling { table, columns, rows }| {
        let rows = rows.iter().map(|row| format!("({})", row.join(", "))).collect::<Vec<_>>().join(", ");
        let columns = columns.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        format!("DELETE FROM {table}; INSERT INTO {table} ({columns}) {own_numbers}VALUES {rows};\n")
    });
    let sql: String = statements.collect();
    let outcome = session.script(sql).await;
    session.end(outcome).await.unwrap();
}

/// Lets rows that are added later have numbers that no row has: SQLite does so by itself.
pub(super) async fn number_on(database: &Database, tables: &Tables) {
    let mut session = database.begin().await.unwrap();
    if session.dialect() == Dialect::Postgres {
        let is_numbered = |columns: &[Column]| columns.iter().any(|column| column.is_numbered);
        let statements = tables.0.iter().filter(|(_, columns)| is_numbered(columns)).map(|(table, _)| {
            let next = format!("(SELECT COALESCE(MAX(id), 0) + 1 FROM {table})");
            format!("SELECT setval(pg_get_serial_sequence('{table}', 'id'), {next}, FALSE);\n")
        });
        let sql: String = statements.collect();
        session.script(sql).await.unwrap();
    }
    session.end(Ok(())).await.unwrap();
}
