//! A database of its own for each test, of either kind, and what tests put into it.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_store::audit::{Change, Intent, Settlement, Subject};
use queuekeeper_store::store::EntityTag;
use queuekeeper_store::{Algorithm, Digest, Digests, Key};
use queuekeeper_testkit::documentation::block;
use queuekeeper_testkit::postgres::Postgres;
use sqlx::Connection as _;
use sqlx::{AssertSqlSafe, PgConnection, SqliteConnection};
use tempfile::TempDir;
use uuid::Uuid;

/// One server for all tests of the binary; it ends with the process.
pub(crate) static SERVER: LazyLock<Postgres> = LazyLock::new(|| {
    let server = Postgres::start();
    server.sql("postgres", &format!("CREATE ROLE {WORKER} LOGIN PASSWORD '{}'", server.password()));
    server
});

/// A user who owns nothing.
const WORKER: &str = "worker";

/// What SECURITY.md has an owner grant to that user.
static LEAST: LazyLock<&str> = LazyLock::new(|| block("SECURITY.md", "GRANT USAGE ON SCHEMA public TO worker;"));

/// What an owner does after an upgrade.
pub(crate) async fn grant(url: &str) {
    for statement in LEAST.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        drop(look(url, statement).await);
    }
}

/// The same database, as that user.
pub(crate) fn as_worker(url: &str) -> String {
    url.replacen("://keeper:", &format!("://{WORKER}:"), 1)
}

/// Longer than any test takes.
pub(crate) const LEASE: Duration = Duration::from_mins(5);

/// Runs each test on SQLite and on PostgreSQL.
macro_rules! on_both {
    ($($(#[$attribute:meta])* async fn $name:ident($world:ident: World) $body:block)*) => {
        $(
            $(#[$attribute])*
            async fn $name($world: $crate::catalogue::support::World) $body

            mod $name {
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_sqlite() {
                    Box::pin(super::$name($crate::catalogue::support::World::sqlite().await)).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_postgres() {
                    Box::pin(super::$name($crate::catalogue::support::World::postgres().await)).await;
                }
            }
        )*
    };
}
pub(crate) use on_both;

/// An open catalogue, and where it is.
pub(crate) struct World {
    pub(crate) catalogue: Catalogue,
    pub(crate) url: String,
    _directory: Option<TempDir>,
}

impl World {
    pub(crate) async fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("catalogue.db").display());
        let catalogue = Catalogue::open(&url).await.unwrap();
        Self { catalogue, url, _directory: Some(directory) }
    }

    /// The catalogue of another owner, with the least privileges that suffice by SECURITY.md. The URL is the owner's.
    pub(crate) async fn postgres() -> Self {
        let url = new_postgres_url();
        Catalogue::open(&url).await.unwrap().close().await;
        grant(&url).await;
        let catalogue = Catalogue::open(&as_worker(&url)).await.unwrap();
        Self { catalogue, url, _directory: None }
    }

    /// The first column of each row, as text, by a connection that knows nothing of the catalogue.
    pub(crate) async fn look(&self, sql: &str) -> Vec<String> {
        look(&self.url, sql).await
    }

    /// Changes the database behind the catalogue's back.
    pub(crate) async fn tamper(&self, sql: &str) {
        drop(self.look(sql).await);
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.look(&format!("SELECT CAST(({sql}) AS TEXT)")).await[0].parse().unwrap()
    }
}

/// An empty database.
pub(crate) fn new_postgres_url() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    SERVER.create(&format!("catalogue_{}", NUMBER.fetch_add(1, Ordering::Relaxed)))
}

pub(crate) async fn look(url: &str, sql: &str) -> Vec<String> {
    let sql = AssertSqlSafe(sql.to_owned());
    if url.starts_with("sqlite:") {
        let mut connection = SqliteConnection::connect(url).await.unwrap();
        let rows = sqlx::query_scalar::<_, String>(sql).fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        rows
    } else {
        let mut connection = PgConnection::connect(url).await.unwrap();
        let rows = sqlx::query_scalar::<_, String>(sql).fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        rows
    }
}

/// That an item of the store `main` will be added by Ada.
pub(crate) fn intent(key: &[u8]) -> Intent {
    Intent {
        id: Uuid::now_v7(),
        holder: Uuid::now_v7(),
        user: "ada".to_owned(),
        subject: subject("main", "space-a", key),
        change: Change::Add,
        seen: None,
        size: None,
        digests: Digests::default(),
        source: None,
        upload: None,
        properties: None,
    }
}

/// An item; the space itself where the key is empty.
pub(crate) fn subject(store: &str, space: &str, key: &[u8]) -> Subject {
    let key = (!key.is_empty()).then(|| Key::new(key).unwrap());
    Subject { store: store.parse().unwrap(), space: space.parse().unwrap(), key }
}

/// Digests that differ by their number.
pub(crate) fn digests(number: u8) -> Digests {
    [Digest::new(Algorithm::Md5, &[number; 16]), Digest::new(Algorithm::Sha256, &[number; 32])]
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

/// That content with this number, and as many bytes, was written.
pub(crate) fn done(change: Change, number: u8) -> Settlement {
    Settlement::Done { change, etag: Some(etag(number)), size: Some(number.into()), digests: digests(number) }
}

pub(crate) fn etag(number: u8) -> EntityTag {
    EntityTag(format!("etag-{number}"))
}
