//! What all daemons of a process share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use prometheus_client::registry::Registry;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_store::ocfl::Root;
use queuekeeper_store::{SpaceName, Store, StoreName};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::copies::CountCopies;
use crate::fetch::{Fetcher, Hosts};
use crate::grants::Grants;
use crate::metrics::DaemonMetrics;
use crate::outbox::WaitingMail;
use crate::profile::{Profile, Profiles};
use crate::progress::Downloads;
use crate::settings::{Settings, WorkerBounds};
use crate::step::StepError;
use crate::working::WorkingStorage;

/// What all daemons of a process share.
pub struct Services {
    /// The catalogue.
    pub catalogue: Catalogue,
    /// The stores, by their names.
    pub stores: BTreeMap<StoreName, Arc<dyn Store>>,
    /// The storage roots that were opened, and when.
    pub roots: Mutex<BTreeMap<(StoreName, SpaceName), (Root, Instant)>>,
    /// The profiles, as they are now.
    pub profiles: RwLock<Profiles>,
    /// The fetchers of the profiles, made again when one has changed.
    pub fetchers: RwLock<BTreeMap<String, (Arc<Profile>, Fetcher)>>,
    /// The hosts that are away.
    pub hosts: Hosts,
    /// What is being downloaded.
    pub downloads: Downloads,
    /// The working storage.
    pub working: WorkingStorage,
    /// What an operator has set.
    pub settings: Settings,
    /// How many workers each daemon has that runs here. It may change at any time: see [`Self::set_workers`].
    pub workers: watch::Sender<WorkerBounds>,
    /// The room on the working storage.
    pub grants: Grants,
    /// What is counted.
    pub metrics: DaemonMetrics,
    /// Why the daemons have no session to work in, in one line; `None` while they have one.
    pub no_session: Mutex<Option<String>>,
    /// What wakes those who deliver messages.
    pub posted: Posted,
    /// The mail that waits.
    pub waiting_mail: WaitingMail,
    /// What counts the copies of objects, where some are made.
    pub count_copies: OnceLock<CountCopies>,
}

/// A message was written into the outbox by this process.
#[derive(Debug, Default)]
pub struct Posted {
    /// A mail.
    pub mail: Notify,
    /// A callback on which no state depends.
    pub callback: Notify,
}

impl fmt::Debug for Services {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Services({})", self.working.root().display())
    }
}

impl Services {
    /// What daemons need, opened.
    #[must_use]
    pub fn new(
        catalogue: Catalogue,
        stores: BTreeMap<StoreName, Arc<dyn Store>>,
        profiles: Profiles,
        working: WorkingStorage,
        settings: Settings,
    ) -> Self {
        let grants = Grants::new(working.volume(), settings.space);
        let (profiles, fetchers, metrics) = (RwLock::new(profiles), RwLock::default(), DaemonMetrics::default());
        let (posted, hosts) = (Posted::default(), Hosts::default());
        let (downloads, workers) = (Downloads::default(), watch::Sender::new(settings.worker_bounds()));
        Self {
            catalogue,
            stores,
            roots: Mutex::default(),
            profiles,
            fetchers,
            hosts,
            downloads,
            working,
            settings,
            workers,
            grants,
            metrics,
            no_session: Mutex::new(Some("not connected to ZooKeeper yet".to_owned())),
            posted,
            waiting_mail: WaitingMail::default(),
            count_copies: OnceLock::new(),
        }
    }

    /// Adds to a registry what the daemons count.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
        self.hosts.register(registry);
    }

    /// Changes how many workers daemons have, of those that run here; the others have as many as at the beginning. Work
    /// that is under way goes on: where there are to be fewer, they become so as it ends.
    pub fn set_workers(&self, changed: &WorkerBounds) {
        let mut bounds = self.settings.worker_bounds();
        for (daemon, present) in &mut bounds {
            if let Some(changed) = changed.get(daemon) {
                present.clone_from(changed);
            }
        }
        self.workers.send_if_modified(|present| {
            let is_other = *present != bounds;
            *present = bounds;
            is_other
        });
    }

    /// The profile of a collection.
    ///
    /// # Errors
    /// One sentence, where there is none.
    pub fn profile(&self, name: &str) -> Result<Arc<Profile>, StepError> {
        let profiles = self.profiles.read();
        profiles.get(name).cloned().ok_or_else(|| {
            let known = crate::name::shown(name);
            StepError::permanent(format_args!("there is no profile {known:?}; add its file to the profiles"))
        })
    }

    /// The fetcher of a profile for one job or batch; hosts and their connections are shared by all.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn fetcher(&self, profile: &Arc<Profile>) -> Result<Fetcher, StepError> {
        let name = profile.name.to_string();
        if let Some((of, fetcher)) = self.fetchers.read().get(&name)
            && Arc::ptr_eq(of, profile)
        {
            return Ok(fetcher.for_job());
        }
        let settings = self.settings.fetch;
        let fetcher = Fetcher::new(profile.guard(), profile.credentials.clone(), settings);
        let fetcher = fetcher.map_err(|error| StepError::temporary(format_args!("TLS: {error}")))?.sharing(&self.hosts);
        self.fetchers.write().insert(name, (Arc::clone(profile), fetcher.for_job()));
        Ok(fetcher)
    }

    /// The store of a profile.
    ///
    /// # Errors
    /// One sentence, where it is not configured.
    pub fn store(&self, profile: &Profile) -> Result<Arc<dyn Store>, StepError> {
        self.stores.get(&profile.store).cloned().ok_or_else(|| {
            let (name, store) = (&profile.name, &profile.store);
            let why = format_args!("profile {name} names store {store}, which is not configured");
            StepError::temporary(why)
        })
    }
}
