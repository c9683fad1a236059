//! One attempt to get a session, from configuration.

use std::time::Duration;

use zookeeper_client::{Acl, Client, Error};

use super::address::Servers;
use super::auth::Auth;
use super::chroot::{self, NoChroot, Presence};
use super::config_error::ConfigError;
use super::diagnose::{self, Failures};
use super::tls::{Loaded, Tls};

/// The default session timeout.
pub const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// How to reach ZooKeeper.
#[derive(Clone, Debug)]
pub struct Config {
    /// The servers and the chroot.
    pub servers: Servers,
    /// How long a session may be without contact before the server ends it. The server may grant another: by default
    /// it keeps it between 2 and 20 of its ticks, 4 s to 40 s.
    pub session_timeout: Duration,
    /// How long a connection may be silent, or take to be made, before another server is tried; `None` for two fifths
    /// of the session timeout.
    pub connection_timeout: Option<Duration>,
    /// Credentials to show; none for nodes with the open ACL.
    pub auth: Vec<Auth>,
    /// TLS, where wanted.
    pub tls: Option<Tls>,
    /// The ACL of the znodes that we create; empty for the open ACL.
    pub acl: Vec<Acl>,
}

impl Config {
    /// Plain connections to `servers`, without credentials, with the default timeouts.
    #[must_use]
    pub fn new(servers: Servers) -> Self {
        Self {
            servers,
            session_timeout: DEFAULT_SESSION_TIMEOUT,
            connection_timeout: None,
            auth: Vec::new(),
            tls: None,
            acl: Vec::new(),
        }
    }

    /// Checks what can be checked without a server: the timeouts and the files.
    ///
    /// [`Self::connect`] does it too; a command line does it once before, to end with a message of its own.
    ///
    /// # Errors
    /// When a setting is wrong: names it and what is allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_timeouts()?;
        self.tls.as_ref().map(Tls::load).transpose()?;
        Ok(())
    }

    fn check_timeouts(&self) -> Result<(), ConfigError> {
        let session = self.session_timeout;
        if !(Duration::from_millis(100)..=Duration::from_hours(1)).contains(&session) {
            return Err(ConfigError::SessionTimeout { found: session });
        }
        // The client library silently takes its default for a longer one.
        if let Some(found) = self.connection_timeout
            && (found < Duration::from_millis(10) || found > session * 3 / 5)
        {
            return Err(ConfigError::ConnectionTimeout { found, most: session * 3 / 5 });
        }
        Ok(())
    }

    /// Tries every server once, in random order, and returns with the first session, once the chroot was found.
    ///
    /// When none grants one, the servers are diagnosed: the client library reports no reason.
    ///
    /// # Errors
    /// One line with the reason why there is no session, host by host where they differ, and what to do about it; or
    /// that the chroot does not exist.
    pub async fn connect(&self) -> Result<Client, ConnectError> {
        let client = self.connect_anywhere().await?;
        match chroot::look(&client, &self.servers).await {
            Presence::Missing => Err(NoChroot::of(&self.servers).into()),
            // A session that is over fails the first request, with a reason.
            Presence::Present | Presence::SessionOver => Ok(client),
        }
    }

    /// The same whether the chroot exists or not.
    ///
    /// # Errors
    /// One line with the reason why there is no session.
    pub async fn connect_anywhere(&self) -> Result<Client, ConnectError> {
        self.check_timeouts()?;
        let tls = self.tls.as_ref().map(Tls::load).transpose()?;
        match self.attempt(tls.as_ref()).await {
            Ok(client) => Ok(client),
            Err(Error::AuthFailed) => {
                Err(ConnectError::AuthRefused { servers: self.servers.to_string(), schemes: self.schemes() })
            }
            Err(source) => {
                let failures = diagnose::diagnose(self.servers.hosts(), tls.as_ref()).await;
                if failures.all_serve() {
                    Err(ConnectError::NoSession { servers: self.servers.to_string(), source })
                } else {
                    Err(ConnectError::NoServer { failures })
                }
            }
        }
    }

    /// The same as [`Self::connect_anywhere`] without a diagnosis, which may take as long as the attempt.
    pub(super) async fn connect_quickly(&self) -> Option<Client> {
        let tls = self.tls.as_ref().map(Tls::load).transpose().ok()?;
        self.attempt(tls.as_ref()).await.ok()
    }

    async fn attempt(&self, tls: Option<&Loaded>) -> Result<Client, Error> {
        let mut connector = Client::connector()
            .with_session_timeout(self.session_timeout)
            // Without it, one attempt would last as long as the session timeout; trying again is the caller's part.
            .with_fail_eagerly();
        if let Some(timeout) = self.connection_timeout {
            connector = connector.with_connection_timeout(timeout);
        }
        for auth in &self.auth {
            connector = connector.with_auth(auth.scheme(), auth.credentials());
        }
        let servers = self.servers.to_string();
        match tls {
            None => connector.connect(&servers).await,
            Some(tls) => connector.with_tls(tls.options.clone()).secure_connect(&servers).await,
        }
    }

    fn schemes(&self) -> String {
        self.auth.iter().map(Auth::scheme).collect::<Vec<_>>().join(", ")
    }
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The configuration cannot work with any server.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A server refuses our credentials as such: it does not know their scheme, or wants others.
    #[error(
        "ZooKeeper at {servers} refused the credentials of --zookeeper.auth-file (schemes: {schemes}): it does not \
         support a scheme, or requires another one; give only schemes that its servers have providers for"
    )]
    AuthRefused {
        /// The connect string.
        servers: String,
        /// The schemes shown, separated by commas.
        schemes: String,
    },
    /// No server could be used.
    #[error("no ZooKeeper server can be used: {failures}")]
    NoServer {
        /// The symptom of each.
        failures: Failures,
    },
    /// There is a session, and no znode to work below.
    #[error(transparent)]
    NoChroot(#[from] NoChroot),
    /// The servers answer, and yet the attempt to get a session failed or took too long.
    #[error(
        "ZooKeeper at {servers} answers, but did not grant a session ({source}): is it overloaded or out of connections?"
    )]
    NoSession {
        /// The connect string.
        servers: String,
        /// The error of the client library, often only a time-out.
        source: Error,
    },
}

impl ConnectError {
    /// Whether another attempt may succeed with the same configuration.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Config(_) | Self::AuthRefused { .. } => false,
            Self::NoServer { .. } | Self::NoChroot(_) | Self::NoSession { .. } => true,
        }
    }

    /// What each server does, where that is the reason.
    #[must_use]
    pub fn failures(&self) -> Option<&Failures> {
        match self {
            Self::NoServer { failures } => Some(failures),
            Self::Config(_) | Self::AuthRefused { .. } | Self::NoChroot(_) | Self::NoSession { .. } => None,
        }
    }
}
