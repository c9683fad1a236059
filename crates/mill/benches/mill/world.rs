//! Two stores of an account, each a directory or a bucket, and the mill of a process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::mail::ReportMail;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_mill::policy::{PolicySource, StoreId};
use queuekeeper_mill::run::{Mill, MillSettings};
use queuekeeper_mill::users::MILL;
use queuekeeper_store::s3::{AccessKey, Credentials, S3Config, S3Store};
use queuekeeper_store::{Audited, DirectoryStore, SpaceName, Store, StoreFamilies, StoreName};
use queuekeeper_testkit::s3::Settings;

use super::SPACE;

/// The source and its copy.
pub(crate) const STORES: [&str; 2] = ["main", "replica"];

/// A space that no policy copies.
const IGNORED: &str = "ignored";

/// What an argument of a process says where it has nothing to say.
const NONE: &str = "-";

/// Where a process finds everything.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// A directory with one for each store, and one with policies.
    pub(crate) top: PathBuf,
    /// The URL of the catalogue.
    pub(crate) database: String,
    /// The S3 server of each store; `None` where it is a directory.
    pub(crate) endpoints: [Option<String>; 2],
}

impl World {
    /// Makes the directories and a policy by which the space is copied.
    pub(crate) fn new(top: &Path, database: String, endpoints: [Option<String>; 2]) -> Self {
        for folder in STORES.iter().chain(&["policies"]) {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        let policy = format!(
            r#"{{"defaultPolicies": [{{"srcStoreId": "1", "destStoreId": "2"}}], "spacesToIgnore": ["{IGNORED}"]}}"#
        );
        std::fs::write(top.join("policies/one-duplication-policy.json"), policy).unwrap();
        std::fs::write(top.join("policies/duplication-accounts.json"), r#"["one"]"#).unwrap();
        Self { top: top.to_owned(), database, endpoints }
    }

    /// A catalogue in a file within the world.
    pub(crate) fn sqlite(top: &Path) -> String {
        format!("sqlite:{}", top.join("catalogue.db").display())
    }

    /// As the first arguments of a process.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let endpoints = self.endpoints.iter().map(|endpoint| endpoint.clone().unwrap_or_else(|| NONE.to_owned()));
        [self.top.to_str().unwrap().to_owned(), self.database.clone()].into_iter().chain(endpoints).collect()
    }

    pub(crate) fn of_arguments(arguments: &[&str]) -> Self {
        let [top, database, main, replica] = arguments else { panic!("{arguments:?}") };
        let endpoint = |text: &str| (text != NONE).then(|| text.to_owned());
        Self {
            top: PathBuf::from(top),
            database: (*database).to_owned(),
            endpoints: [endpoint(main), endpoint(replica)],
        }
    }

    /// How many bytes the catalogue has in its file and the log of that.
    pub(crate) fn sqlite_bytes(&self) -> u64 {
        let file = self.database.strip_prefix("sqlite:").unwrap();
        let size = |path: String| std::fs::metadata(path).map_or(0, |file| file.len());
        size(file.to_owned()) + size(format!("{file}-wal"))
    }

    /// A store itself.
    pub(crate) async fn store(&self, at: usize) -> Arc<dyn Store> {
        let name: StoreName = STORES[at].parse().unwrap();
        let Some(endpoint) = &self.endpoints[at] else {
            return Arc::new(DirectoryStore::open(name, self.top.join(STORES[at])).await.unwrap());
        };
        let Settings { access_key, secret_key, .. } = Settings::default();
        let mut config = S3Config::new(name, "s3://bench".parse().unwrap());
        config.endpoint = Some(endpoint.clone());
        config.credentials = Credentials::Key(AccessKey::new(&access_key, &secret_key));
        let metrics = StoreFamilies::default().store(&config.name);
        Arc::new(S3Store::new(config, metrics).await.unwrap())
    }

    /// The mill, as `queuekeeper mill run` has it.
    pub(crate) async fn mill(&self, name: &str, workers: usize) -> Mill {
        let catalogue = Catalogue::open(&self.database).await.unwrap();
        let mut stores = BTreeMap::<StoreName, Arc<dyn Store>>::new();
        for at in 0..STORES.len() {
            let store = self.store(at).await;
            let capabilities = store.probe().await.unwrap();
            let audited = Audited::new(store, &capabilities, Arc::new(catalogue.clone()), MILL);
            stores.insert(audited.name().clone(), Arc::new(audited));
        }
        let ids = ["1", "2"].into_iter().zip(STORES);
        let account = Account {
            name: "one".to_owned(),
            stores: ids.map(|(id, name)| (StoreId(id.to_owned()), name.parse().unwrap())).collect(),
            ..Account::default()
        };
        Mill {
            catalogue,
            accounts: BTreeMap::from([(account.name.clone(), account)]),
            source: PolicySource::Directory(self.top.join("policies")),
            stores,
            settings: MillSettings { workers, ..MillSettings::default() },
            name: name.to_owned(),
            metrics: MillMetrics::default(),
            mail: ReportMail::default(),
        }
    }
}

pub(crate) fn space() -> SpaceName {
    SPACE.parse().unwrap()
}

pub(crate) fn ignored() -> SpaceName {
    IGNORED.parse().unwrap()
}
