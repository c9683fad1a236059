//! A source with two copies, one in a directory and one in a bucket, and a catalogue in PostgreSQL.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::brake::BrakeLimit;
use queuekeeper_mill::account::ADMIN_SPACE;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::mail::ReportMail;
use queuekeeper_mill::bit::repair::RepairMode;
use queuekeeper_mill::duplicate::ASIDE;
use queuekeeper_mill::limits::StoreLimits;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_mill::policy::{PolicySource, StoreId};
use queuekeeper_mill::run::{Mill, MillSettings};
use queuekeeper_mill::users::MILL;
use queuekeeper_store::audited::Timing;
use queuekeeper_store::s3::{AccessKey, Credentials, S3Config};
use queuekeeper_store::{Audited, DirectoryStore, S3Store, SpaceName, Store, StoreFamilies, StoreName};
use queuekeeper_testkit::s3::Settings;

/// The source, and its copies.
pub(super) const MAIN: &str = "main";
pub(super) const REPLICA: &str = "replica";
pub(super) const CLOUD: &str = "cloud";

/// The bucket of the one store that is no directory, and what its keys begin with.
pub(super) const BUCKET: &str = "preservation";
pub(super) const PREFIX: &str = "copies";

/// The space as the stores name it.
pub(super) const SPACE: &str = "account1.theses";

/// The key of what is in both copies, and was never in the source.
pub(super) const FOREIGN: &str = "foreign";

/// A lease is short enough that what a killed process left is resolved while the test runs: whoever waits for such a
/// change waits to the end of its lease. Of a lease, two thirds are left when content is about to appear: longer than a
/// process or a server stands still on a busy machine.
const TIMING: Timing = Timing { lease: Duration::from_secs(20), wait_limit: Duration::from_secs(40) };

/// Where a process finds everything.
#[derive(Clone, Debug)]
pub(super) struct Deployment {
    pub(super) directory: PathBuf,
    pub(super) database: String,
    pub(super) endpoint: String,
}

/// The variables of a process that have the place.
const VARIABLES: [&str; 3] =
    ["QUEUEKEEPER_TEST_CHAOS_DIRECTORY", "QUEUEKEEPER_TEST_CHAOS_DATABASE", "QUEUEKEEPER_TEST_CHAOS_ENDPOINT"];

impl Deployment {
    pub(super) fn variables(&self) -> [(&'static str, &str); 3] {
        let [directory, database, endpoint] = VARIABLES;
        [(directory, self.directory.to_str().unwrap()), (database, &self.database), (endpoint, &self.endpoint)]
    }

    /// `None` in a process that was not started by the test.
    pub(super) fn of_process() -> Option<Self> {
        let [directory, database, endpoint] = VARIABLES.map(|name| std::env::var(name).ok());
        Some(Self { directory: directory?.into(), database: database?, endpoint: endpoint? })
    }
}

pub(super) fn store_name(name: &str) -> StoreName {
    name.parse().unwrap()
}

pub(super) fn space() -> SpaceName {
    SPACE.parse().unwrap()
}

/// A store itself: what is changed there is not recorded.
///
/// # Errors
/// With a sentence, where it cannot be opened.
pub(super) async fn bare(place: &Deployment, name: &str) -> Result<Arc<dyn Store>, String> {
    if name != CLOUD {
        let store = DirectoryStore::open(store_name(name), place.directory.join(name)).await;
        return Ok(Arc::new(store.map_err(|error| error.to_string())?));
    }
    let Settings { access_key, secret_key, .. } = Settings::default();
    let mut config = S3Config::new(store_name(name), format!("s3://{BUCKET}/{PREFIX}").parse().unwrap());
    config.endpoint = Some(place.endpoint.clone());
    config.credentials = Credentials::Key(AccessKey::new(&access_key, &secret_key));
    let metrics = StoreFamilies::default().store(&config.name);
    Ok(Arc::new(S3Store::new(config, metrics).await.map_err(|error| error.to_string())?))
}

/// The same, so that its changes are recorded in the name of a user.
///
/// # Errors
/// With a sentence, where it cannot be probed.
pub(super) async fn audited(
    place: &Deployment,
    name: &str,
    catalogue: &Catalogue,
    user: &str,
) -> Result<Audited<dyn Store>, String> {
    let store = bare(place, name).await?;
    let capabilities = store.probe().await.map_err(|error| error.to_string())?;
    let audited = Audited::new(store, &capabilities, Arc::new(catalogue.clone()), user);
    let admin = format!("account1.{ADMIN_SPACE}").parse().unwrap();
    Ok(audited.with_owned([ASIDE.parse().unwrap(), admin]).with_timing(TIMING))
}

/// The mill, as a process has it that was just started.
///
/// # Errors
/// With a sentence, where the database or a store is away.
pub(super) async fn mill(place: &Deployment, name: &str, workers: usize) -> Result<Mill, String> {
    let catalogue = Catalogue::open(&place.database).await.map_err(|error| error.to_string())?;
    let mut stores = BTreeMap::<StoreName, Arc<dyn Store>>::new();
    for name in [MAIN, REPLICA, CLOUD] {
        let audited = audited(place, name, &catalogue, MILL).await?;
        audited.resolve_left().await.map_err(|error| error.to_string())?;
        stores.insert(store_name(name), Arc::new(audited));
    }
    let ids = [("1", MAIN), ("2", REPLICA), ("3", CLOUD)];
    let repaired = StoreLimits { repair: RepairMode::Automatic, ..StoreLimits::default() };
    let account = Account {
        name: "account1".to_owned(),
        stores: ids.map(|(id, name)| (StoreId(id.to_owned()), store_name(name))).into(),
        prefix: Some("account1".to_owned()),
        limits: [MAIN, REPLICA, CLOUD].map(|name| (store_name(name), repaired.clone())).into(),
        ..Account::default()
    };
    // What is destroyed is counted, and is more within minutes than else within a day.
    let limit = BrakeLimit { items: u32::MAX, percent: 0 };
    let settings = MillSettings {
        workers,
        // An operator has loops begin.
        frequency: Duration::from_hours(1),
        thorough_every: 2,
        delete_after: Duration::ZERO,
        limit,
        ..MillSettings::default()
    };
    Ok(Mill {
        catalogue,
        accounts: BTreeMap::from([("account1".to_owned(), account)]),
        source: PolicySource::Directory(place.directory.join("policies")),
        stores,
        settings,
        name: name.to_owned(),
        metrics: MillMetrics::default(),
        mail: ReportMail::default(),
    })
}

/// Makes the directories of the stores, and the policy: the first store is copied to both others.
pub(super) fn set_up(directory: &Path) {
    for folder in [MAIN, REPLICA, "policies"] {
        std::fs::create_dir(directory.join(folder)).unwrap();
    }
    let pairs = r#"[{"srcStoreId": "1", "destStoreId": "2"}, {"srcStoreId": "1", "destStoreId": "3"}]"#;
    let policy = format!(r#"{{"defaultPolicies": {pairs}}}"#);
    std::fs::write(directory.join("policies/account1-duplication-policy.json"), policy).unwrap();
    std::fs::write(directory.join("policies/duplication-accounts.json"), r#"["account1"]"#).unwrap();
}
