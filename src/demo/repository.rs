//! The directory of the demo's repository, and how its daemons are set.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use queuekeeper_ingest::access::AccessSettings;
use queuekeeper_ingest::cleanup::CleanupSettings;
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::fetch::{self, HostLimits};
use queuekeeper_ingest::settings::Settings;
use queuekeeper_ingest::space::Rules;
use queuekeeper_mail::settings::{MailSettings, Route};
use queuekeeper_store::retry::RetryPolicy;
use queuekeeper_zookeeper::Config;
use queuekeeper_zookeeper::child::Guard;
use tempfile::TempDir;

use super::collections::{self, KIB, MIB};
use super::origin::{self, Origins};
use super::pace::Pace;
use super::scenario::LARGE_OBJECTS;
use super::storage::THRESHOLD;
use crate::config::MillConfig;
use crate::server::ingest::Ingest;
use crate::server::standalone::DataDirectory;
use queuekeeper_ingest::working::SizeLimit;

/// How long nothing of the demo's own queue is cleaned up: the operator purges what is too much.
const KEPT: Duration = Duration::from_hours(24);

/// For how many seconds small objects may pass a large one, at the natural rate.
pub(super) const WAIT_LIMIT_SECONDS: f64 = 6.0;

/// The largest object that is requested as a small one.
const SMALL_BYTES: u64 = 200 * KIB;

/// A directory that is removed at the end, also when this process is killed.
pub(super) struct Repository {
    guard: Guard,
    data: DataDirectory,
    _lock: fs::File,
    directory: TempDir,
}

impl Repository {
    /// Makes it, with a profile for each collection, and one for the users of the demo.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn make(origins: &Origins) -> anyhow::Result<Self> {
        let directory = TempDir::with_prefix("queuekeeper-demo-").context("cannot create a temporary directory")?;
        let guard = Guard::start(Some(directory.path())).context("cannot start a shell")?;
        let data = DataDirectory::new(directory.path().to_owned());
        let lock = data.open()?;
        for collection in collections::all() {
            let path = data.profiles().join(format!("{}.yaml", collection.mnemonic));
            fs::write(&path, collection.profile(origins.address(collection)))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Self { guard, data, _lock: lock, directory })
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Its two stores, and where its policy is.
    ///
    /// # Errors
    /// When the name of a store is invalid, which it is not.
    pub(super) fn mill(&self) -> anyhow::Result<MillConfig> {
        Ok(self.data.mill()?)
    }

    /// Where copies are.
    pub(super) fn copies(&self) -> PathBuf {
        self.data.copies()
    }

    /// What its daemons need.
    ///
    /// # Errors
    /// When the name of its store is invalid, which it is not.
    pub(super) fn ingest(
        &self,
        zookeeper: Config,
        limit: SizeLimit,
        pace: Pace,
        url: Option<String>,
    ) -> anyhow::Result<Ingest> {
        let stores = self.data.stores()?;
        // The links to archives lead to our own server.
        let access = stores.access().cloned().zip(url);
        let access = access.map(|(access, url)| AccessSettings { url, small: SMALL_BYTES, ..access });
        Ok(Ingest {
            zookeeper,
            stores,
            profiles: self.data.profiles(),
            working: self.data.working(),
            working_limit: Some(limit),
            settings: Settings { access, ..settings(pace, Route::Directory(self.data.reports())) },
        })
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let path = self.path().to_owned();
        tracing::info!(path = %path.display(), "removing the repository of the demo");
        if let Err(error) = fs::remove_dir_all(&path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove the repository of the demo");
        }
        // Not before: there are many files, and who is killed meanwhile leaves the rest to the guard.
        self.guard.dismiss();
    }
}

/// The settings of the daemons: everything that takes minutes in production takes seconds here.
fn settings(pace: Pace, mail: Route) -> Settings {
    let defaults = Settings::default();
    let mut workers = defaults.workers.clone();
    workers.insert(Daemon::Downloading, LARGE_OBJECTS + origin::WORKERS);
    let retries = RetryPolicy { attempts: 3, within: pace.time(8.0), first: pace.time(0.3), most: pace.time(2.0) };
    let hosts = HostLimits { first: pace.time(4.0), most: pace.time(8.0), ..HostLimits::default() };
    Settings {
        workers,
        space: Rules {
            threshold: THRESHOLD,
            unknown: MIB,
            wait_limit: pace.time(WAIT_LIMIT_SECONDS),
            ..Rules::default()
        },
        fetch: fetch::Settings { retries, hosts, ..defaults.fetch },
        retry_within: pace.time(150.0),
        retry_first: pace.time(4.0),
        retry_most: pace.time(16.0),
        shutdown: Duration::from_secs(1),
        mail: MailSettings { route: mail, ..MailSettings::default() },
        cleanup: CleanupSettings { after: KEPT, entries_after: KEPT, messages_after: KEPT, ..defaults.cleanup },
        ..defaults
    }
}
