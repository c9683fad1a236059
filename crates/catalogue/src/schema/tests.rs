//! That what earlier versions wrote is there after each migration, on both databases, with its meaning.

mod content;
mod readers;
mod tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use self::readers::{Said, figures_since, kept_since};
use self::tables::{Column, ColumnKind, Filling, Rows, Tables, bring, default, fill, number_on, rows};
use super::*;
use crate::Catalogue;
use crate::counters::{Counter, Figures};
use crate::test_server::SERVER;

/// The tables that a version made anew under the same name, since nothing had written to the one before.
const REPLACED: [(&str, i64); 2] = [("tasks", 5), ("bit_log", 10)];

/// The columns that a version dropped, for the same reason.
const DROPPED: [(&str, &str, i64); 1] = [("morsels", "is_deletes_done", 5)];

/// The columns that a version added with values that follow from what others before it hold, and the first of these.
const DERIVED: [(&str, &str, i64); 5] = [
    ("outbox", "ended", 1),
    ("asides", "kept_until", 5),
    ("bit_runs", "is_complete", 11),
    ("bit_runs", "is_newest", 11),
    ("copies", "written", 1),
];

/// The tables to which a version added rows that follow from others.
const ADDED_TO: [&str; 3] = ["counters", "proof_counts", "bit_items"];

/// What nothing writes.
const UNUSED: [&str; 1] = ["reports"];

/// Numbers, texts and bytes that a column holds, the first of them the least that it may.
const INTS: [i64; 3] = [0, i64::MAX, i64::MIN];
const TEXTS: [&str; 3] = ["", "Üß 𝔘\u{202e}\u{300} \"q\" 'q' ; -- $1 {now} %_ \\ \n\t\r\u{1}\u{7f}", "null"];
const BYTES: [&str; 3] = ["", "00ff27225c0a", "6e756c6c"];
const IDS: [u128; 3] = [0, u128::MAX, 7];

/// Where the databases of a test are.
struct TestDatabases {
    dialect: Dialect,
    directory: TempDir,
}

impl TestDatabases {
    fn both() -> [Self; 2] {
        // Each of many commits of SQLite waits for a disk.
        let memory = Path::new("/dev/shm");
        let memory = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let new = |dialect| Self { dialect, directory: tempfile::tempdir_in(&memory).unwrap() };
        [Dialect::Sqlite, Dialect::Postgres].map(new)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The URL of an empty database.
    fn url(&self, name: &str) -> String {
        match self.dialect {
            Dialect::Sqlite => format!("sqlite:{}", self.file(name).display()),
            Dialect::Postgres => SERVER.create(name),
        }
    }

    async fn rows(&self, database: &Database, table: &str, columns: &[&str]) -> Rows {
        rows(database, self.dialect, table, columns).await
    }
}

/// Whether the table that a version has under a name is there in the newest one.
fn is_kept(table: &str, version: i64) -> bool {
    !REPLACED.iter().any(|&(replaced, by)| replaced == table && version < by)
}

/// The columns of a table that a version has and the newest one, too; those that are missing there are known.
fn common<'a>(table: &str, version: i64, (old, new): (&'a Tables, &Tables)) -> Vec<&'a str> {
    let (kept, lost) = old.columns(table).into_iter().partition::<Vec<_>, _>(|name| new.columns(table).contains(name));
    let known = |name: &&str| DROPPED.iter().any(|&(of, dropped, by)| of == table && dropped == *name && version < by);
    assert!(lost.iter().all(known), "{table} lost {lost:?}");
    kept
}

/// Opens a catalogue that was closed, and so brings it up to date.
async fn migrate(url: &str, place: &TestDatabases, version: i64) -> (Catalogue, Option<PathBuf>) {
    let (catalogue, migrated) = Catalogue::migrate(url).await.unwrap_or_else(|error| panic!("from {version}: {error}"));
    assert_eq!((migrated.from, migrated.to), (version, NEWEST));
    assert_eq!(migrated.backup.is_some(), place.dialect == Dialect::Sqlite, "from {version}");
    (catalogue, migrated.backup)
}

/// A value that a column may have, as a literal; the first one is NULL where it may be.
fn value(table: &str, column: &Column, row: usize, dialect: Dialect) -> String {
    if row == 0 && column.may_be_null {
        return "NULL".to_owned();
    }
    let hex = |digits: &str| match dialect {
        Dialect::Sqlite => format!("X'{digits}'"),
        Dialect::Postgres => format!("'\\x{digits}'"),
    };
    match column.kind {
        ColumnKind::Int if column.is_checked => [1, i64::MAX, 2][row].to_string(),
        // Until 30 days later it was kept: no clock comes to the end of what there is.
        ColumnKind::Int if (table, &*column.name) == ("asides", "time") => (INTS[row] / 2).to_string(),
        ColumnKind::Int => INTS[row].to_string(),
        ColumnKind::Flag => (row > 0).to_string(),
        ColumnKind::Text => format!("'{}'", TEXTS[row].replace('\'', "''")),
        ColumnKind::Bytes => hex(BYTES[row]),
        ColumnKind::Id if dialect == Dialect::Postgres => format!("'{:032x}'", IDS[row]),
        ColumnKind::Id => hex(&format!("{:032x}", IDS[row])),
    }
}

#[tokio::test]
async fn rows_of_every_table_are_there_after_every_migration_whatever_is_in_them() {
    let versions = Tables::of_each_version("versions_of_rows").await;
    let newest = versions.last().unwrap();
    for (old, version) in versions.iter().zip(1..NEWEST) {
        for place in TestDatabases::both() {
            let url = place.url(&format!("rows_{version}"));
            let database = Database::connect(&url).await.unwrap();
            bring(&database, version).await;
            // What there is once has its row.
            let tables = old.in_order().into_iter().filter(|table| !old.columns(table).contains(&"only_row"));
            let filling = tables.map(|table| {
                let row = |row| old.0[table].iter().map(|column| value(table, column, row, place.dialect)).collect();
                Filling { table, columns: old.columns(table), rows: (0..INTS.len()).map(row).collect() }
            });
            let filling: Vec<_> = filling.collect();
            fill(&database, &filling).await;
            let mut before = BTreeMap::new();
            for table in old.0.keys() {
                before.insert(&**table, place.rows(&database, table, &old.columns(table)).await);
            }
            assert!(filling.iter().all(|filling| before[filling.table].len() == INTS.len()), "{before:?}");
            database.close().await;
            let (catalogue, backup) = migrate(&url, &place, version).await;
            for (table, before) in before {
                let columns = old.columns(table);
                if let Some(backup) = &backup {
                    assert_eq!(of_backup(backup, table, &columns).await, before, "backup of {table} of {version}");
                }
                if is_kept(table, version) {
                    let common = common(table, version, (old, newest));
                    let is_common: Vec<_> = columns.iter().map(|name| common.contains(name)).collect();
                    let kept = |row: Vec<String>| {
                        row.into_iter().zip(&is_common).filter_map(|(value, is)| is.then_some(value))
                    };
                    let before: Rows = before.into_iter().map(|row| kept(row).collect()).collect();
                    let mut after = place.rows(&catalogue.database, table, &common).await;
                    if ADDED_TO.contains(&table) {
                        after.retain(|row| before.contains(row));
                    }
                    assert_eq!(after, before, "{table} of {version} in {:?}", place.dialect);
                }
            }
            catalogue.close().await;
        }
    }
}

/// The rows of a table in the copy that was written before a migration.
async fn of_backup(backup: &Path, table: &str, columns: &[&str]) -> Rows {
    let database = Database::connect_as_is(&format!("sqlite:{}", backup.display())).await.unwrap();
    let found = rows(&database, Dialect::Sqlite, table, columns).await;
    database.close().await;
    found
}

/// A catalogue of the newest version, with content in all of its tables.
struct Original {
    id: Uuid,
    rows: BTreeMap<String, Rows>,
    /// By table and column.
    defaults: BTreeMap<(String, String), String>,
    said: Vec<Said>,
    figures: Figures,
}

impl Original {
    async fn write(place: &TestDatabases, newest: &Tables) -> Self {
        let catalogue = Catalogue::open(&place.url("original")).await.unwrap();
        content::write(&catalogue).await;
        let (mut rows, mut defaults) = (BTreeMap::new(), BTreeMap::new());
        for table in newest.0.keys() {
            for column in newest.columns(table) {
                let value = default(&catalogue.database, place.dialect, table, column).await;
                defaults.insert((table.clone(), column.to_owned()), value);
            }
            let found = place.rows(&catalogue.database, table, &newest.columns(table)).await;
            assert_eq!(found.is_empty(), UNUSED.contains(&&**table), "{table}: {found:?}");
            rows.insert(table.clone(), found);
        }
        let said = readers::read(&catalogue).await;
        let nothing: Vec<_> = said.iter().filter(|said| said.is_nothing()).collect();
        assert!(nothing.is_empty(), "{nothing:?}");
        assert_eq!(catalogue.check().await.unwrap(), []);
        let figures = catalogue.counters().await.unwrap();
        catalogue.close().await;
        Self { id: catalogue.id(), rows, defaults, said, figures }
    }

    /// The rows of a table without those of counters that a version does not keep.
    fn rows_of(&self, table: &str, version: i64) -> Rows {
        let is_later = |row: &Vec<String>| {
            let mut later = Counter::ALL.into_iter().filter(|counter| kept_since(*counter).0 > version);
            later.any(|counter| row.contains(&format!("'{}'", counter.as_str())))
        };
        let is_counter = table == "counters" || table == "counter_deltas";
        self.rows[table].iter().filter(|row| !is_counter || !is_later(row)).cloned().collect()
    }

    /// Puts what a version has room for into a database of that version.
    async fn fill(&self, database: &Database, version: i64, (old, newest): (&Tables, &Tables)) {
        let filling = old.in_order().into_iter().filter(|table| is_kept(table, version)).map(|table| {
            let new_columns = newest.columns(table);
            let old_row = |row: Vec<String>| -> Vec<String> {
                let of_newest = |name| new_columns.iter().position(|new| *new == name);
                // Those that were dropped are flags.
                let value = |name| of_newest(name).map_or_else(|| "FALSE".to_owned(), |at| row[at].clone());
                old.columns(table).into_iter().map(value).collect()
            };
            let rows = self.rows_of(table, version).into_iter().map(old_row).collect();
            Filling { table, columns: old.columns(table), rows }
        });
        fill(database, &filling.collect::<Vec<_>>()).await;
        number_on(database, old).await;
    }

    /// The rows that a table has which comes from a version.
    fn expected(&self, table: &str, version: i64, (old, newest): (&Tables, &Tables)) -> Rows {
        let old_columns = if is_kept(table, version) { old.columns(table) } else { Vec::new() };
        if old_columns.is_empty() {
            return Rows::new();
        }
        let is_derived =
            |column: &str| DERIVED.iter().any(|&(of, name, since)| (of, name) == (table, column) && since <= version);
        let value = |(column, value): (&&str, String)| {
            let is_known = old_columns.contains(column) || is_derived(column);
            if is_known { value } else { self.defaults[&(table.to_owned(), (*column).to_owned())].clone() }
        };
        let columns = newest.columns(table);
        let row = |row: Vec<String>| columns.iter().zip(row).map(value).collect();
        self.rows_of(table, version).into_iter().map(row).collect()
    }
}

#[tokio::test]
async fn a_catalogue_of_each_earlier_version_is_copied_and_then_brought_up_to_date() {
    let versions = Tables::of_each_version("versions_of_content").await;
    let newest = versions.last().unwrap();
    for place in TestDatabases::both() {
        let original = Original::write(&place, newest).await;
        for (old, version) in versions.iter().zip(1..NEWEST) {
            let name = format!("content_{version}");
            let url = place.url(&name);
            let database = Database::connect(&url).await.unwrap();
            bring(&database, version).await;
            original.fill(&database, version, (old, newest)).await;
            database.close().await;

            let (catalogue, backup) = migrate(&url, &place, version).await;
            assert_eq!(catalogue.id(), original.id);
            assert_eq!(catalogue.check().await.unwrap(), [], "from {version} in {:?}", place.dialect);
            for table in newest.0.keys() {
                let is_new = old.columns(table).is_empty();
                if table == "counters" || ADDED_TO.contains(&&**table) && is_new {
                    continue;
                }
                let found = place.rows(&catalogue.database, table, &newest.columns(table)).await;
                let expected = original.expected(table, version, (old, newest));
                assert_eq!(found, expected, "{table} from {version} in {:?}", place.dialect);
            }
            let figures = catalogue.counters().await.unwrap();
            assert_eq!(figures, figures_since(&original.figures, version), "from {version} in {:?}", place.dialect);
            let said = readers::read(&catalogue).await;
            for expected in original.said.iter().filter(|said| said.since <= version) {
                let of_same: Vec<_> = said.iter().filter(|said| said.of == expected.of).collect();
                assert!(said.contains(expected), "from {version} in {:?}: {expected:#?}\n{of_same:#?}", place.dialect);
            }
            content::write_more(&catalogue).await;
            assert_eq!(catalogue.check().await.unwrap(), [], "from {version} in {:?}", place.dialect);
            catalogue.close().await;

            if let Some(backup) = backup {
                assert_eq!(backup, place.file(&format!("{name}.schema-{version}")));
                let kept = Catalogue::open_as_is(&format!("sqlite:{}", backup.display())).await.unwrap();
                assert_eq!((kept.id(), kept.schema()), (original.id, version));
                kept.close().await;
            }
            let (catalogue, again) = Catalogue::migrate(&url).await.unwrap();
            assert_eq!((again.from, again.backup), (NEWEST, None));
            catalogue.close().await;
        }
    }
}
