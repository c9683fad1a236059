//! The configuration of a server, checked: what the command line says, in types that cannot be wrong.

use std::path::PathBuf;
use std::time::Duration;

use crate::actions::Role;
use crate::actions::audit::Destination;
use crate::mirror::READ_BUDGET_BYTES;
use queuekeeper_queue::fault::Limits;

mod address;
mod duration;
mod external;
mod file;
mod path;
mod source;
mod web_file;

pub use address::{ListenAddress, ListenAddressError};
pub use duration::{DurationError, PrometheusDuration};
pub use external::{Authority, ExternalUrl, ExternalUrlError, RoutePrefix, RoutePrefixError};
pub use file::{
    ConfigFile, Presented, Secret, SecretError, Token, TokenHash, TokenLine, TokenLineError, Tokens, expiry,
};
pub use path::{TelemetryPath, TelemetryPathError};
pub use source::FileError;
pub use web_file::{Users, Validity, WebFile};

/// Everything that `queuekeeper serve` is told, but where to listen and how to log.
#[derive(Clone, Debug)]
pub struct Config {
    /// How to reach ZooKeeper.
    pub zookeeper: queuekeeper_zookeeper::Config,
    /// What is served over HTTP.
    pub web: Web,
    /// How the image is kept and for how long it is trusted.
    pub mirror: Mirror,
    /// The volume that the daemons work on, where it can be seen from here.
    pub storage: Option<Storage>,
    /// How many collections get series of their own; 0 for none at all.
    pub collections: usize,
    /// Who may request something.
    pub file: Option<ConfigFile>,
    /// Where it is written down who requested what.
    pub audit: Destination,
}

impl Config {
    /// The configuration of a server that is told nothing but where ZooKeeper is.
    #[must_use]
    pub fn new(zookeeper: queuekeeper_zookeeper::Config) -> Self {
        Self {
            zookeeper,
            web: Web::default(),
            mirror: Mirror::default(),
            storage: None,
            collections: 0,
            file: None,
            audit: Destination::StandardOutput,
        }
    }
}

/// What is served over HTTP.
#[derive(Clone, Debug, Default)]
pub struct Web {
    /// Where the metrics are, below the prefix.
    pub telemetry_path: TelemetryPath,
    /// Where users find the server, as through a proxy.
    pub external_url: Option<ExternalUrl>,
    /// What stands before every path.
    pub route_prefix: RoutePrefix,
    /// The names that the addresses to listen on were given by.
    pub names: Vec<String>,
    /// TLS and passwords.
    pub file: Option<WebFile>,
    /// What whoever is on this machine may do without a word; `None` for what everyone may.
    pub loopback: Option<Loopback>,
}

impl Web {
    /// Where users find the server, and what stands before every path: the path of that URL, unless another is given.
    #[must_use]
    pub fn reached_by(external_url: Option<ExternalUrl>, route_prefix: Option<RoutePrefix>) -> Self {
        let of_url = external_url.as_ref().map(|url| url.path().clone());
        Self { route_prefix: route_prefix.or(of_url).unwrap_or_default(), external_url, ..Self::default() }
    }
}

/// What whoever connects from this machine itself may do, without a password or a token. For a queue that is made up:
/// on a machine that others use or that a proxy runs on, these are not only its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loopback {
    /// Their role.
    pub role: Role,
    /// What every page says of it, since nobody should be surprised by that.
    pub notice: &'static str,
}

/// How the image is kept and for how long it is trusted.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// A stale image makes the server not ready after this time.
    pub stale_after: Duration,
    /// The queue's own series are left out of a scrape after the image was stale for this time.
    pub drop_after: Duration,
    /// How often the tree is read again to compare; `None` for never.
    pub drift_interval: Option<Duration>,
    /// How often the servers' time is measured by a write to `/queuekeeper/clock`; `None` for never.
    pub clock_interval: Option<Duration>,
    /// How many bytes of answers may be under way at once while the tree is read.
    pub read_budget_bytes: u64,
    /// From when on something counts as a fault.
    pub fault_limits: Limits,
}

impl Mirror {
    /// The time after which a stale image makes the server not ready, where the operator says nothing.
    pub const STALE_AFTER: Duration = Duration::from_secs(10);
    /// The time after which the queue's own series are left out, where the operator says nothing.
    pub const DROP_AFTER: Duration = Duration::from_mins(5);
    /// The time between two comparisons with the tree, where the operator says nothing.
    pub const DRIFT_INTERVAL: Duration = Duration::from_mins(10);
    /// The time between two measurements of the servers' time, where the operator says nothing.
    pub const CLOCK_INTERVAL: Duration = Duration::from_mins(5);
}

impl Default for Mirror {
    fn default() -> Self {
        Self {
            stale_after: Self::STALE_AFTER,
            drop_after: Self::DROP_AFTER,
            drift_interval: Some(Self::DRIFT_INTERVAL),
            clock_interval: Some(Self::CLOCK_INTERVAL),
            read_budget_bytes: READ_BUDGET_BYTES,
            fault_limits: Limits::default(),
        }
    }
}

/// The volume that the daemons work on.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    /// A directory on the volume.
    pub path: PathBuf,
    /// The part of the volume, 0 to 1, above which the daemons keep jobs back.
    pub threshold: f64,
}

impl Storage {
    /// The daemons' own threshold.
    pub const THRESHOLD: f64 = 0.8;
}
