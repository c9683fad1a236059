//! The configuration of a server, checked: the values of the command line in types that exclude invalid ones.

use std::path::PathBuf;
use std::time::Duration;

use crate::actions::Role;
use crate::actions::audit::Destination;
use crate::mirror::READ_BUDGET_BYTES;
use queuekeeper_queue::fault::Limits;

mod address;
mod deployment;
mod network;

mod external;
mod file;
mod source;
mod telemetry_path;
mod web_file;

pub use crate::views::{DurationError, PrometheusDuration};
pub use address::{ListenAddress, ListenAddressError};
pub use deployment::{DeploymentName, DeploymentNameError, Deployments, OfOneQueue, QueueAddress, Queues, addresses};
pub use external::{Authority, ExternalUrl, ExternalUrlError, RoutePrefix, RoutePrefixError};
pub use file::{
    CatalogueUrl, ConfigFile, MillConfig, PolicyPlace, Presented, Secret, SecretError, StoreSettings, Token, TokenHash,
    TokenLine, TokenLineError, Tokens, expiry, worker_bounds,
};
pub use network::{Network, NetworkError};
pub use source::FileError;
#[cfg(test)]
pub(crate) use telemetry_path::RESERVED;
pub use telemetry_path::{TelemetryPath, TelemetryPathError};
pub use web_file::{Users, Validity, WebFile};

/// The configuration of `queuekeeper serve`, without the listeners and the log.
#[derive(Clone, Debug)]
pub struct Config {
    /// The connection to ZooKeeper.
    pub zookeeper: queuekeeper_zookeeper::Config,
    /// The pages and the API.
    pub web: Web,
    /// The mirror, and for how long it is trusted.
    pub mirror: Mirror,
    /// The volume of the daemons, if it is mounted here.
    pub storage: Option<StorageConfig>,
    /// Where the figures of more than six hours are; `None` for nowhere.
    pub prometheus: Option<PrometheusConfig>,
    /// How many collections have series of their own; 0 for none.
    pub collections: usize,
    /// Users, tokens and roles, and the rules for alerts.
    pub file: Option<ConfigFile>,
    /// Where actions are recorded.
    pub audit: Destination,
    /// Where deposits go; `None` where none are taken.
    pub deposits: Option<Deposits>,
    /// The accounts whose content is copied; `None` for those of the file.
    pub mill: Option<MillConfig>,
}

impl Config {
    /// The default number of collections with series of their own.
    pub const COLLECTIONS: u16 = 10;

    /// The default configuration with this ZooKeeper.
    #[must_use]
    pub fn new(zookeeper: queuekeeper_zookeeper::Config) -> Self {
        Self {
            zookeeper,
            web: Web::default(),
            mirror: Mirror::default(),
            storage: None,
            prometheus: None,
            collections: Self::COLLECTIONS.into(),
            file: None,
            audit: Destination::StandardOutput,
            deposits: None,
            mill: None,
        }
    }
}

/// Where deposits go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deposits {
    /// The working storage of the daemons.
    pub working: PathBuf,
    /// The directory of the collections' profiles.
    pub profiles: PathBuf,
}

/// The configuration of the pages and the API.
#[derive(Clone, Debug, Default)]
pub struct Web {
    /// The path of the metrics, below the prefix.
    pub telemetry_path: TelemetryPath,
    /// The external address, such as a proxy's.
    pub external_url: Option<ExternalUrl>,
    /// The prefix of all routes.
    pub route_prefix: RoutePrefix,
    /// The host names of the listen addresses.
    pub names: Vec<String>,
    /// TLS and passwords.
    pub file: Option<WebFile>,
    /// The access of clients on this machine without credentials; `None` for the same as others.
    pub loopback: Option<Loopback>,
    /// What there is of the repository behind the queue.
    pub repository: RepositoryParts,
    /// Where the pages are among those of several queues; `None` where there is one without a name.
    pub deployments: Option<Deployments>,
}

/// What a server shows and takes of the repository behind the queue. Of what it does not, there are no routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::struct_excessive_bools, reason = "a server has any of the parts without the others")]
pub struct RepositoryParts {
    /// It takes deposits.
    pub deposits: bool,
    /// It has a catalogue of objects.
    pub objects: bool,
    /// It answers the links of access requests.
    pub deliveries: bool,
    /// It has a mill.
    pub mill: bool,
}

impl RepositoryParts {
    /// All of it.
    pub const ALL: Self = Self { deposits: true, objects: true, deliveries: true, mill: true };
}

impl Web {
    /// Sets the external address and the prefix of all routes, which is by default the path of that address.
    #[must_use]
    pub fn reached_by(external_url: Option<ExternalUrl>, route_prefix: Option<RoutePrefix>) -> Self {
        let of_url = external_url.as_ref().map(|url| url.path().clone());
        Self { route_prefix: route_prefix.or(of_url).unwrap_or_default(), external_url, ..Self::default() }
    }

    /// The name of the queue whose pages these are; `None` for one without a name, and for the pages of all.
    #[must_use]
    pub fn deployment(&self) -> Option<&DeploymentName> {
        self.deployments.as_ref()?.this.as_ref()
    }
}

/// The access of clients on this machine, without a password or a token. For a demo or a repository of one's own only:
/// on a machine with other users or a proxy, such clients are not only its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loopback {
    /// Their role.
    pub role: Role,
    /// The notice about it on every page.
    pub notice: &'static str,
}

/// A Prometheus server that scrapes this one.
#[derive(Clone, Debug)]
pub struct PrometheusConfig {
    /// Where it is.
    pub url: ExternalUrl,
    /// Label matchers that select the series of this queue, such as `job="queuekeeper"`; empty for all.
    pub matchers: String,
}

/// The configuration of the mirror.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// The age at which a stale mirror makes the server not ready.
    pub stale_after: Duration,
    /// The age at which a stale mirror's series of the queue are omitted from scrapes.
    pub drop_after: Duration,
    /// The interval at which the tree is read again for comparison; `None` for never.
    pub drift_interval: Option<Duration>,
    /// The interval at which the servers' clock is measured by a write to `/queuekeeper/clock`; `None` for never.
    pub clock_interval: Option<Duration>,
    /// Whether the servers are queried for the addresses of their clients.
    pub session_addresses: bool,
    /// The maximum size of outstanding responses while the tree is read, in bytes.
    pub read_budget_bytes: u64,
    /// The ages at which conditions count as faults.
    pub fault_limits: Limits,
    /// How long no job must have left a state, and for a known cause, for the overview to call it stalled.
    pub stalled_after: Duration,
}

impl Mirror {
    /// The default age at which a stale mirror makes the server not ready.
    pub const STALE_AFTER: Duration = Duration::from_secs(10);
    /// The default age at which the series of the queue are omitted.
    pub const DROP_AFTER: Duration = Duration::from_mins(5);
    /// The default interval of comparisons with the tree.
    pub const DRIFT_INTERVAL: Duration = Duration::from_mins(10);
    /// The default interval of clock measurements.
    pub const CLOCK_INTERVAL: Duration = Duration::from_mins(5);
    /// The usual time for which no job has left a stalled state: less happens in a queue that flows.
    pub const STALLED_AFTER: Duration = Duration::from_mins(1);
}

impl Default for Mirror {
    fn default() -> Self {
        Self {
            stale_after: Self::STALE_AFTER,
            drop_after: Self::DROP_AFTER,
            drift_interval: Some(Self::DRIFT_INTERVAL),
            clock_interval: Some(Self::CLOCK_INTERVAL),
            session_addresses: false,
            read_budget_bytes: READ_BUDGET_BYTES,
            fault_limits: Limits::default(),
            stalled_after: Self::STALLED_AFTER,
        }
    }
}

/// The volume that the daemons work on.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageConfig {
    /// A directory on the volume.
    pub path: PathBuf,
    /// The used part of the volume, 0 to 1, above which the daemons hold jobs back.
    pub threshold: f64,
}
