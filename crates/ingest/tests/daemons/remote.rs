//! A database of PostgreSQL as the catalogue, and a bucket of an S3 server as the stores, of one world.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use queuekeeper_store::retry::RetryPolicy;
use queuekeeper_store::s3::{AccessKey, Credentials, S3Config, S3Store};
use queuekeeper_store::{Store, StoreFamilies, StoreName};
use queuekeeper_testkit::postgres::Postgres;
use queuekeeper_testkit::s3::S3Server;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One server for all tests of the binary; it ends with the process.
static POSTGRES: LazyLock<Postgres> = LazyLock::new(Postgres::start);

/// The file below a world's directory that says where these are, for its daemons in other processes.
const FILE: &str = "remote/servers.json";

/// How a process finds catalogue and stores.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Servers {
    /// The URL of the catalogue.
    pub(super) catalogue: String,
    endpoint: String,
    access_key: String,
    secret_key: String,
    bucket: String,
}

/// The servers of a world, as its test sees them.
pub(super) struct Remote {
    database: String,
    s3: Arc<S3Server>,
    bucket: String,
}

impl Servers {
    /// Those of the world that lies in a directory; `None` for one with files only.
    pub(super) fn of(directory: &Path) -> Option<Self> {
        let file = std::fs::read(directory.join(FILE)).ok()?;
        Some(serde_json::from_slice(&file).unwrap())
    }

    pub(super) async fn store(&self, name: StoreName) -> Arc<dyn Store> {
        let place = format!("s3://{}/{name}", self.bucket).parse().unwrap();
        let mut config = S3Config::new(name.clone(), place);
        config.endpoint = Some(self.endpoint.clone());
        config.credentials = Credentials::Key(AccessKey::new(&self.access_key, &self.secret_key));
        let short = Duration::from_millis(5);
        config.retry = RetryPolicy { attempts: 4, within: Duration::from_secs(10), first: short, most: short * 4 };
        Arc::new(S3Store::new(config, StoreFamilies::default().store(&name)).await.unwrap())
    }
}

impl Remote {
    /// Makes database and bucket of this name, and writes down in a world's directory where they are.
    pub(super) fn new(s3: &Arc<S3Server>, name: &str, directory: &Path) -> Self {
        let (database, bucket) = (name.replace('-', "_").to_lowercase(), name.to_lowercase());
        s3.create_bucket(&bucket);
        let servers = Servers {
            catalogue: POSTGRES.create(&database),
            endpoint: s3.endpoint(),
            access_key: s3.access_key().to_owned(),
            secret_key: s3.secret_key().to_owned(),
            bucket: bucket.clone(),
        };
        let file = directory.join(FILE);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, serde_json::to_vec(&servers).unwrap()).unwrap();
        Self { database, s3: Arc::clone(s3), bucket }
    }

    /// Makes the catalogue as it was before anything opened it.
    pub(super) fn forget_catalogue(&self) {
        POSTGRES.sql("postgres", &format!("DROP DATABASE {} WITH (FORCE)", self.database));
        drop(POSTGRES.create(&self.database));
    }

    /// Runs SQL; the answer has a JSON array for each row of a query.
    pub(super) fn sql(&self, sql: &str) -> Vec<Value> {
        if !sql.trim_start().starts_with("SELECT") {
            POSTGRES.sql(&self.database, sql);
            return Vec::new();
        }
        // In the order of the columns, of which several may have no name.
        let rows = format!(
            "SELECT (SELECT json_agg(value ORDER BY place)
                     FROM json_each(row_to_json(found)) WITH ORDINALITY AS each (key, value, place))
             FROM ({sql}) AS found"
        );
        let rows = POSTGRES.query(&self.database, &rows);
        rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect()
    }

    /// All that the stores have: their keys, and how many uploads are not whole.
    pub(super) fn keys(&self) -> Vec<String> {
        let mut keys = self.s3.keys(&self.bucket);
        keys.push(format!("{} uploads", self.s3.uploads(&self.bucket)));
        keys
    }
}
