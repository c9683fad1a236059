//! What is looked at stays as it is.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;

use queuekeeper_catalogue::probe::Probed;
use queuekeeper_catalogue::{Catalogue, ErrorKind};

use super::support::{SERVER, World, as_worker, look, new_postgres_url, on_both};

const NEWEST: &str = "SELECT CAST(MAX(version) AS TEXT) FROM queuekeeper_schema";

/// Takes the last script away, as far as can be seen; the answer is the version before it.
async fn age(world: &World) -> i64 {
    world.tamper("DELETE FROM queuekeeper_schema WHERE version = (SELECT MAX(version) FROM queuekeeper_schema)").await;
    world.look(NEWEST).await[0].parse().unwrap()
}

on_both! {
    async fn a_probe_and_a_check_leave_an_older_schema_as_it_is(world: World) {
        let url = as_worker(&world.url);
        let newest = Catalogue::probe(&url).await.unwrap();
        let place = world.catalogue.place().to_owned();
        assert_eq!(newest, Probed { place, schema: world.catalogue.schema(), newest: world.catalogue.schema() });
        let older = age(&world).await;
        assert_eq!(Catalogue::probe(&url).await.unwrap(), Probed { schema: older, ..newest.clone() });
        let opened = Catalogue::open_as_is(&url).await.unwrap();
        assert_eq!((opened.schema(), opened.id()), (older, world.catalogue.id()));
        let error = opened.check().await.unwrap_err();
        let expected = format!("has schema {older}, but this program checks schema {}: check it with", newest.schema);
        assert!(matches!(error.kind, ErrorKind::Older { .. }) && error.to_string().contains(&expected), "{error}");
        assert_eq!(world.look(NEWEST).await, [older.to_string()]);
        assert_eq!(world.number("SELECT COUNT(*) FROM counter_deltas").await, 0, "what the probe wrote is rolled back");

        world.tamper("INSERT INTO queuekeeper_schema (version, applied) VALUES (1000, 0)").await;
        for error in [Catalogue::probe(&url).await.unwrap_err(), Catalogue::open_as_is(&url).await.unwrap_err()] {
            assert!(matches!(error.kind, ErrorKind::Newer { found: 1000, .. }), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_has_the_schema_of_its_catalogue() {
    let world = World::sqlite().await;
    let older = age(&world).await;
    world.catalogue.close().await;
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.db");
    Catalogue::open_as_is(&world.url).await.unwrap().backup(&copy).await.unwrap();
    for url in [&world.url, &format!("sqlite:{}", copy.display())] {
        assert_eq!(look(url, NEWEST).await, [older.to_string()]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_there_is_no_catalogue_none_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let (gone, empty) = (directory.path().join("gone.db"), directory.path().join("empty.db"));
    fs::write(&empty, "").unwrap();
    let server = new_postgres_url();
    let [gone_url, empty_url] = [&gone, &empty].map(|path| format!("sqlite:{}", path.display()));
    for url in [&gone_url, &empty_url, &server] {
        assert_eq!(Catalogue::probe(url).await.unwrap().schema, 0);
        let error = Catalogue::open_as_is(url).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Missing), "{error}");
    }
    assert_eq!(fs::metadata(&empty).unwrap().len(), 0);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "something was left");
    assert_eq!(look(&server, "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'").await, [""; 0]);
    let error = Catalogue::probe(&format!("sqlite:{}/no/catalogue.db", directory.path().display())).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Open(_)) && error.to_string().contains("/no: No such file"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_finds_a_missing_privilege_in_an_empty_database_and_in_a_catalogue() {
    let (empty, filled) = (new_postgres_url(), new_postgres_url());
    Catalogue::open(&filled).await.unwrap().close().await;
    look(&empty, "CREATE ROLE prober LOGIN PASSWORD 'prober'").await;
    look(&filled, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO prober").await;
    for (url, what) in [
        (
            &empty,
            "permission denied for schema public; the user in its URL needs the privilege: GRANT USAGE, CREATE ON",
        ),
        (
            &filled,
            "permission denied for table counter_deltas; the user in its URL needs the privilege: GRANT SELECT, INSERT",
        ),
    ] {
        let database = url.rsplit_once('/').unwrap().1;
        let prober = format!("postgres://prober:prober@127.0.0.1:{}/{database}", SERVER.port());
        let error = Catalogue::probe(&prober).await.unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_finds_damaged_pages() {
    let world = World::sqlite().await;
    world.catalogue.close().await;
    let path = world.url.trim_start_matches("sqlite:");
    let file = fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(&[0xff; 4096], 4 * 4096).unwrap();
    drop(file);
    let error = Catalogue::probe(&world.url).await.unwrap_err();
    let remedies =
        ["restore it from a backup", "move it away (a file with its -wal and -shm) and run `catalogue rebuild`"];
    assert!(matches!(error.kind, ErrorKind::Corrupt(_)), "{error}");
    assert!(remedies.iter().all(|remedy| error.to_string().contains(remedy)), "{error}");
}

/// For root everything is writable: then only what is said of reading is tried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_catalogue_that_cannot_be_written_is_checked_and_backed_up_all_the_same() {
    let world = World::sqlite().await;
    world.catalogue.close().await;
    let path = Path::new(world.url.trim_start_matches("sqlite:"));
    let directory = path.parent().unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(directory, Permissions::from_mode(0o500)).unwrap();
    let opened = Catalogue::open_as_is(&world.url).await.unwrap();
    assert_eq!(opened.check().await.unwrap(), []);
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("copy.db");
    opened.backup(&copy).await.unwrap();
    opened.close().await;
    let restored = Catalogue::open(&format!("sqlite:{}", copy.display())).await.unwrap();
    assert_eq!(restored.id(), world.catalogue.id());
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        let error = Catalogue::probe(&world.url).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::ReadOnly), "{error}");
        fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
        let error = Catalogue::open_as_is(&world.url).await.unwrap_err();
        assert!(error.to_string().contains("cannot be opened: Permission denied"), "{error}");
        fs::set_permissions(directory, Permissions::from_mode(0o000)).unwrap();
        for error in
            [Catalogue::probe(&world.url).await.unwrap_err(), Catalogue::open_as_is(&world.url).await.unwrap_err()]
        {
            assert!(error.to_string().contains("cannot be opened: Permission denied"), "{error}");
        }
    }
    fs::set_permissions(directory, Permissions::from_mode(0o700)).unwrap();
}
