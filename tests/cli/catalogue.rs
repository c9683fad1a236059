//! `queuekeeper catalogue`, and what `check-config --probe` says of one.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use queuekeeper_testkit::documentation::block;
use queuekeeper_testkit::postgres::Postgres;

use super::program::{Ran, run};
use super::stores::command;

fn configure(home: &Path, catalogue: &str) {
    fs::set_permissions(home, Permissions::from_mode(0o700)).unwrap();
    fs::write(home.join("config.yml"), format!("catalogue: {catalogue}\n")).unwrap();
}

async fn probe(home: &Path) -> Ran {
    run(home, &["check-config", home.join("config.yml").to_str().unwrap(), "--probe"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_created_prepared_and_migrated_only_when_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let server = Postgres::start();
    let url = format!("postgres://keeper@127.0.0.1:{}/records", server.port());
    configure(home, &format!("{{url: \"{url}\"}}"));
    probe(home).await.is(1, &["access denied: ", "the password in the file that password_file names"]);
    fs::write(home.join("password"), server.password()).unwrap();
    configure(home, &format!("{{url: \"{url}\", password_file: password}}"));
    let create = "create it on the server: CREATE DATABASE records OWNER keeper";
    probe(home).await.is(1, &["database \"records\" does not exist", create]);

    drop(server.create("records"));
    let tables = || server.query("records", "SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'");
    probe(home)
        .await
        .is(0, &[&format!("catalogue {url}: there is none yet; `catalogue migrate`, or the first change")]);
    command(home, "catalogue check").await.is(4, &["there is none; `catalogue migrate` creates it"]);
    assert_eq!(tables(), "0\n");
    command(home, "catalogue migrate").await.is(0, &["created with schema"]);
    probe(home).await.is(0, &[&format!("catalogue {url}: it can be used\n")]);

    let older = "DELETE FROM queuekeeper_schema WHERE version = (SELECT MAX(version) FROM queuekeeper_schema)";
    server.sql("records", older);
    let version = || server.query("records", "SELECT MAX(version) FROM queuekeeper_schema");
    let before = version();
    let said = format!("it can be used; schema {}; `catalogue migrate`, or the first command or daemon", before.trim());
    probe(home).await.is(0, &[&said]);
    command(home, "catalogue check").await.is(1, &["check it with the queuekeeper that wrote it, or migrate it"]);
    assert_eq!(version(), before);

    // One that was created as the documentation says, by a user who owns nothing else.
    let create = block("docs/stores.md", "CREATE ROLE keeper ").replace("'...'", &format!("'{}'", server.password()));
    for statement in create.replace("keeper", "owner_of_it").split_inclusive(';').filter(|part| part.contains(';')) {
        server.sql("postgres", statement);
    }
    let owned = format!("postgres://owner_of_it@127.0.0.1:{}/catalogue", server.port());
    configure(home, &format!("{{url: \"{owned}\", password_file: password}}"));
    command(home, "catalogue migrate").await.is(0, &["created with schema"]);
    configure(home, &format!("{{url: \"{url}\", password_file: password}}"));

    server.sql("postgres", "ALTER DATABASE records SET default_transaction_read_only = on");
    probe(home).await.is(1, &["read-only; make the file and its directory (or the database) writable"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalogue_of_a_standalone_repository_is_named_by_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let data = home.join("data").display().to_string();
    let backup = home.join("backup.db").display().to_string();
    let catalogue = async |words: &[&str]| run(home, &[&["catalogue"], words, &["--data", &data]].concat()).await;
    catalogue(&["migrate"]).await.is(1, &["data: No such file or directory"]);
    fs::create_dir(&data).unwrap();
    catalogue(&["check"]).await.is(4, &["data/catalogue.db: there is none; `catalogue migrate` creates it"]);
    catalogue(&["migrate"]).await.is(0, &["created with schema"]);
    catalogue(&["check"]).await.is(0, &["no problems found"]);
    catalogue(&["backup", &backup]).await.is(0, &["wrote "]);

    // A damaged one, and the backup in its place.
    let file = home.join("data/catalogue.db");
    let mut bytes = fs::read(&file).unwrap();
    bytes[5 * 4096..7 * 4096].fill(0xff);
    fs::write(&file, bytes).unwrap();
    catalogue(&["check"]).await.is(1, &["damaged"]);
    fs::create_dir(home.join("data/damaged")).unwrap();
    for name in ["catalogue.db", "catalogue.db-wal", "catalogue.db-shm"] {
        let _ = fs::rename(home.join("data").join(name), home.join("data/damaged").join(name));
    }
    fs::copy(&backup, &file).unwrap();
    catalogue(&["check"]).await.is(0, &["no problems found"]);
    catalogue(&["migrate"]).await.is(0, &["is up to date"]);

    run(home, &["catalogue", "check"]).await.is(2, &["--config.file <FILE>"]);
    configure(home, "{url: \"sqlite:gone/catalogue.db\"}");
    probe(home).await.is(1, &["gone: No such file or directory", "check that its directory exists"]);
}
