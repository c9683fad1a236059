//! Opening a catalogue: the first time, again, at once, and where something else is in its place.

use std::os::unix::fs::PermissionsExt as _;

use queuekeeper_catalogue::catalogue::Migrated;
use queuekeeper_catalogue::{Catalogue, ErrorKind};

use super::support::{SERVER, World, as_worker, look, new_postgres_url, on_both};

on_both! {
    async fn a_catalogue_keeps_its_identifier(world: World) {
        let (again, migrated) = Catalogue::migrate(&world.url).await.unwrap();
        assert_eq!(again.id(), world.catalogue.id());
        assert_eq!(migrated.from, migrated.to);
    }

    async fn a_newer_schema_is_refused_in_one_line(world: World) {
        world.tamper("INSERT INTO queuekeeper_schema (version, applied) VALUES (1000, 0)").await;
        let error = Catalogue::open(&as_worker(&world.url)).await.unwrap_err();
        let known = world.number("SELECT MAX(version) FROM queuekeeper_schema WHERE version < 1000").await;
        let expected = format!(
            "was written by a newer queuekeeper (schema 1000, this program supports up to {known}); upgrade this program"
        );
        assert!(error.to_string().ends_with(&expected), "{error}");
        assert!(error.to_string().contains(world.catalogue.place()), "{error}");
        assert!(!error.is_temporary());
    }
}

/// Opens an empty database ten times at once.
async fn open_at_once(url: String) {
    let opened = (0..10).map(|_| {
        let url = url.clone();
        tokio::spawn(async move { Catalogue::migrate(&url).await.unwrap() })
    });
    let mut ids = Vec::new();
    let mut new = 0;
    for task in opened.collect::<Vec<_>>() {
        let (catalogue, Migrated { from, .. }) = task.await.unwrap();
        assert_eq!(catalogue.check().await.unwrap(), []);
        new += u32::from(from == 0);
        ids.push(catalogue.id());
    }
    assert_eq!(new, 1);
    ids.dedup();
    assert_eq!(ids.len(), 1);
    let twice = "SELECT CAST(COUNT(*) - MAX(version) AS TEXT) FROM queuekeeper_schema";
    assert_eq!(look(&url, twice).await, ["0"], "each script was applied once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_that_open_a_new_file_at_once_make_one_catalogue() {
    let directory = tempfile::tempdir().unwrap();
    open_at_once(format!("sqlite:{}", directory.path().join("new.db").display())).await;
    // It has mail addresses. What is left of the log would have its mode.
    for file in std::fs::read_dir(directory.path()).unwrap().map(Result::unwrap) {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
        assert!(file.file_name().to_str().unwrap().starts_with("new.db"), "{file:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_that_open_a_new_database_at_once_make_one_catalogue() {
    open_at_once(new_postgres_url()).await;
}

#[tokio::test]
async fn a_file_that_is_no_catalogue_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.db");
    std::fs::write(&path, "notes of another kind, and this is long enough to look like a page\n".repeat(100)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = Catalogue::open(&format!("sqlite:{}", path.display())).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Corrupt(_)), "{error}");
    assert!(error.to_string().contains("notes.db"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}?mode=rwc", directory.path().join("other.db").display());
    let other = format!("sqlite:{}?mode=rwc", directory.path().join("tagged.db").display());
    look(&other, "PRAGMA application_id = 77").await;
    look(&other, "CREATE TABLE anything (id INTEGER)").await;
    let server = new_postgres_url();
    for url in [&file, &server] {
        look(url, "CREATE TABLE cats (name TEXT)").await;
    }
    for (url, what) in [(&file, "do not belong to a catalogue"), (&other, "0x4d"), (&server, "\"cats\"")] {
        let error = Catalogue::open(url.trim_end_matches("?mode=rwc")).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Foreign(_)) && error.to_string().contains(what), "{error}");
    }
    assert_eq!(look(&server, "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'").await, ["cats"]);
    assert_eq!(look(&file, "SELECT name FROM sqlite_schema").await, ["cats"]);
    assert_eq!(look(&file, "PRAGMA journal_mode").await, ["delete"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_or_address_is_one_line_without_the_password() {
    let port = SERVER.port();
    let free = queuekeeper_testkit::process::free_port();
    for (url, what) in [
        (format!("postgres://keeper:not-the-secret@127.0.0.1:{port}/postgres"), "access denied"),
        (format!("postgres://keeper:not-the-secret@127.0.0.1:{free}/postgres"), "cannot be reached"),
        (
            SERVER.url_at(port, "no_such_database"),
            "\"no_such_database\" does not exist; name another in its URL, or create it on the server: CREATE DATABASE \
             no_such_database OWNER keeper",
        ),
        (SERVER.url_at(port, "Odd-\"one"), "CREATE DATABASE \"Odd-\"\"one\" OWNER keeper"),
        (format!("{}?sslmode=require", SERVER.url_at(port, "postgres")), "no TLS connection: "),
        (format!("postgres://keeper@127.0.0.1:{port}/postgres?password=not-the-secret"), "unknown parameter"),
        (format!("postgres://keeper:not-the-secret@127.0.0.1:{port}/postgres?sslmod=require"), "sslmode"),
        ("postgres://keeper:not-the-secret@127.0.0.1:port/postgres".to_owned(), "the URL is invalid"),
        ("not-the-secret".to_owned(), "expected sqlite:PATH"),
        ("mysql://keeper:not-the-secret@host/database".to_owned(), "mysql"),
    ] {
        let error = Catalogue::open(&url).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(error.to_string().contains(what), "{error}");
        assert!(!text.contains("not-the-secret") && !text.contains(SERVER.password()), "{text}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
    let world = World::postgres().await;
    let shown = format!("{:?}", world.catalogue);
    assert!(!shown.contains("correct"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_privilege_says_what_to_grant_to_whom() {
    let url = new_postgres_url();
    Catalogue::open(&url).await.unwrap().close().await;
    look(&url, "CREATE ROLE librarian LOGIN PASSWORD 'librarian'").await;
    let database = url.rsplit_once('/').unwrap().1;
    let reader = format!("postgres://librarian:librarian@127.0.0.1:{}/{database}", SERVER.port());
    let error = Catalogue::open(&reader).await.unwrap_err().to_string();
    assert!(error.starts_with("catalogue postgres://librarian@127.0.0.1:"), "{error}");
    assert!(error.contains("permission denied for table queuekeeper_schema; the user in its URL needs"), "{error}");
    assert!(error.contains("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES"), "{error}");
}

#[tokio::test]
async fn a_file_in_a_directory_that_is_missing_or_a_directory_itself_cannot_be_opened() {
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path().join("missing/catalogue.db"), directory.path().to_owned()] {
        let error = Catalogue::open(&format!("sqlite:{}", path.display())).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Open(_)), "{error}");
    }
}
