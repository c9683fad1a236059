//! What one step of a job needs, and how it ends.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use prometheus_client::registry::Registry;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{self as queue, JobChange, LockedJob, Queue};
use queuekeeper_store::ocfl::{OcflError, Root};
use queuekeeper_store::{ErrorKind, SpaceName, Store, StoreName};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::copies::CountCopies;
use crate::engine::fence::Fence;
use crate::fetch::{Cause, FetchError, Fetcher, Hosts};
use crate::grants::Grants;
use crate::metrics::DaemonMetrics;
use crate::outbox::WaitingMail;
use crate::profile::{Profile, Profiles};
use crate::progress::Downloads;
use crate::settings::{Settings, WorkerBounds};
use crate::spec::JobSpec;
use crate::warnings;
use crate::working::{JobDirectory, WorkingStorage};

/// The longest message of a failure, in bytes.
const MOST_MESSAGE_BYTES: usize = 1_024;

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

/// Why a step was not done.
#[derive(Debug)]
pub enum StepError {
    /// It may succeed later: the job waits, without lock and worker.
    Temporary {
        /// What it failed by: one sentence.
        why: String,
        /// For how long it is of no use to try again, where that is known.
        after: Option<Duration>,
    },
    /// The same where a host is away: nothing was requested of it.
    Away {
        /// Which host, and what it failed by: one sentence.
        why: String,
        /// For how long it gets no request.
        after: Option<Duration>,
    },
    /// It may succeed later, and nothing was tried: all connections to a host are in use. The job waits, without lock and
    /// worker, and for as long as it takes.
    Busy(String),
    /// It never will: the job fails with this sentence.
    Permanent(String),
    /// There is no room for it: the job goes back to where it waits for some.
    NoRoom,
    /// There is no room for what it needs beyond its grant: it waits for as long as that takes. What it needs: one sentence.
    NoExtension(String),
    /// The queue could not be read or written, or the job is not ours any more.
    Queue(queue::Error),
}

impl StepError {
    /// A failure that may pass.
    pub fn temporary(why: impl fmt::Display) -> Self {
        Self::Temporary { why: why.to_string(), after: None }
    }

    /// A failure for good.
    pub fn permanent(why: impl fmt::Display) -> Self {
        Self::Permanent(why.to_string())
    }

    /// It in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Temporary { why, .. }
            | Self::Away { why, .. }
            | Self::Busy(why)
            | Self::Permanent(why)
            | Self::NoExtension(why) => why.clone(),
            Self::NoRoom => "there is no room".to_owned(),
            Self::Queue(error) => error.to_string(),
        }
    }

    /// A failure of the working storage, which is no fault of the deposit.
    #[must_use]
    pub fn working(what: &str, error: &std::io::Error) -> Self {
        Self::Temporary { why: format!("working storage: cannot {what}: {error}"), after: None }
    }
}

/// It in one sentence.
impl fmt::Display for StepError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.sentence())
    }
}

impl From<queue::Error> for StepError {
    fn from(error: queue::Error) -> Self {
        Self::Queue(error)
    }
}

impl From<FetchError> for StepError {
    fn from(error: FetchError) -> Self {
        let (why, after) = (error.to_string(), error.retry_after());
        match error.cause() {
            Cause::Away { .. } => Self::Away { why, after },
            Cause::Busy { .. } => Self::Busy(why),
            Cause::Disk(_) => Self::Temporary { why, after },
            _ if error.is_temporary() => Self::Temporary { why, after },
            _ => Self::Permanent(why),
        }
    }
}

impl From<OcflError> for StepError {
    fn from(error: OcflError) -> Self {
        // As with the working storage: what its file system fails by is no fault of the deposit.
        let is_of_system = matches!(&error, OcflError::Store(error) if matches!(error.kind, ErrorKind::Io(_)));
        if is_of_system || error.is_temporary() { Self::temporary(error) } else { Self::permanent(error) }
    }
}

impl From<queuekeeper_catalogue::Error> for StepError {
    fn from(error: queuekeeper_catalogue::Error) -> Self {
        if error.is_temporary() { Self::temporary(error) } else { Self::permanent(error) }
    }
}

/// A job that a worker of ours holds, with what its configuration says.
pub struct JobAtWork<'a> {
    /// What the daemons share.
    pub services: &'a Services,
    /// The queue, by the session that holds the lock.
    pub queue: &'a Queue,
    /// Whether that session may still be relied on.
    pub fence: &'a Fence,
    /// The job.
    pub job: &'a LockedJob,
    /// What it is to do.
    pub spec: &'a JobSpec,
    /// The profile of its collection.
    pub profile: Arc<Profile>,
    /// Its directory.
    pub directory: JobDirectory,
}

impl JobAtWork<'_> {
    /// Does what the job's state asks for; the answer is the change that goes with it. Provisioning is no such step: its
    /// change and its grant are decided together.
    ///
    /// # Errors
    /// How it ended otherwise.
    pub async fn step(&self) -> Result<JobChange, StepError> {
        use crate::steps;
        // Notify removes what they are read from.
        let before = (self.job.state == JobState::Notify).then(|| self.warnings());
        let change = match self.job.state {
            JobState::Pending => steps::pending::check(self),
            JobState::Estimating => steps::estimating::estimate(self).await,
            JobState::Downloading => steps::downloading::download(self).await,
            JobState::Processing => steps::processing::process(self).await,
            JobState::Storing => steps::storing::store(self).await,
            JobState::Recording => steps::recording::record(self).await,
            JobState::Notify => steps::notify::notify(self).await,
            JobState::Provisioning | JobState::Held | JobState::Failed | JobState::Completed | JobState::Deleted => {
                Err(StepError::permanent(format_args!("there is no step for a job that is {}", self.job.state)))
            }
        }?;
        let warnings = before.unwrap_or_else(|| self.warnings());
        Ok(match warnings::said(&warnings) {
            Some(text) => change.with_message(message(&text)),
            None => change,
        })
    }

    /// What is odd about the package, by the job's files, or where these are gone by its last message.
    fn warnings(&self) -> Vec<String> {
        if !self.job.state.has_content() {
            return Vec::new();
        }
        let kept = warnings::read(&self.directory);
        if kept.is_empty() { warnings::of(&self.job.job.status().value.message) } else { kept }
    }

    /// Whether the inventory has the version of this job.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub async fn is_recorded(&self) -> Result<bool, StepError> {
        Ok(self.services.catalogue.version_of_job(self.spec.uuid).await?.is_some())
    }

    /// Fetches what the profile allows to be fetched.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn fetcher(&self) -> Result<Fetcher, StepError> {
        self.services.fetcher(&self.profile)
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

    /// Changes how many workers daemons have, of those that run here; the others have as many as at the beginning. Work that
    /// is under way goes on: where there are to be fewer, they become so as it ends.
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

/// The present time.
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// A message as a status may have it: one line of at most 1 KiB.
#[must_use]
pub fn message(text: &str) -> String {
    let mut line =
        text.split(|char: char| char.is_control()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    if line.len() > MOST_MESSAGE_BYTES {
        line.truncate(line.floor_char_boundary(MOST_MESSAGE_BYTES - 3));
        line.push_str("..");
    }
    line
}
