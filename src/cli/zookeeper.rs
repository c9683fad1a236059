//! How to reach ZooKeeper, on the command line.

use std::path::PathBuf;

use clap::Args;

use super::UsageError;
use crate::config::{PrometheusDuration, addresses};
use crate::server::standalone::DataDirectory;
use queuekeeper_zookeeper::acl::{AclError, parse};
use queuekeeper_zookeeper::connect::DEFAULT_SESSION_TIMEOUT;
use queuekeeper_zookeeper::{Auth, Config, ConfigError, Servers, Tls};

/// Where ZooKeeper is by default.
pub(super) const DEFAULT: &str = "127.0.0.1:2181";

/// Where ZooKeeper is, and how to reach it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "ZooKeeper")]
pub struct ZooKeeperArgs {
    /// Where ZooKeeper is: host:port[,host:port...][/chroot]
    #[arg(long = "zookeeper", value_name = "CONNECT-STRING", default_value = DEFAULT, value_parser = one)]
    servers: Servers,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// How to reach ZooKeeper, wherever it is.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "ZooKeeper")]
pub(super) struct ConnectionArgs {
    /// The time without contact after which the server ends a session; 100ms to 1h
    #[arg(long = "zookeeper.session-timeout", value_name = "DURATION", default_value_t = PrometheusDuration::from(DEFAULT_SESSION_TIMEOUT))]
    session_timeout: PrometheusDuration,

    /// The time without an answer after which another server is tried [default: two fifths of the session timeout]
    #[arg(long = "zookeeper.connection-timeout", value_name = "DURATION")]
    connection_timeout: Option<PrometheusDuration>,

    /// File of credentials, one scheme:credentials a line, such as digest:user:password
    #[arg(long = "zookeeper.auth-file", value_name = "FILE")]
    auth_file: Option<PathBuf>,

    /// Connect with TLS; implied by the other TLS flags
    #[arg(long = "zookeeper.tls-enabled")]
    tls_enabled: bool,

    /// PEM file of the authorities to trust [default: those that the system trusts]
    #[arg(long = "zookeeper.tls-ca-file", value_name = "FILE")]
    tls_ca_file: Option<PathBuf>,

    /// PEM file of the client certificate, for servers that require one
    #[arg(long = "zookeeper.tls-cert-file", value_name = "FILE")]
    tls_cert_file: Option<PathBuf>,

    /// PEM file of its private key
    #[arg(long = "zookeeper.tls-key-file", value_name = "FILE")]
    tls_key_file: Option<PathBuf>,

    /// ACL of the znodes that queuekeeper creates, as scheme:id:permissions[,...]; the scheme auth with an empty id is
    /// any client with these credentials [default: world:anyone:cdrwa]
    #[arg(
        long = "zookeeper.acl",
        value_name = "ACL",
        value_parser = acl
    )]
    acl: Option<Acls>,
}

/// One value of one flag: a list of clap's own would be one of flags.
type Acls = std::sync::Arc<Vec<zookeeper_client::Acl>>;

fn acl(text: &str) -> Result<Acls, AclError> {
    parse(text).map(Acls::new)
}

/// The connect string of one queue. A name before it, for a server of several, says nothing here.
fn one(text: &str) -> Result<Servers, String> {
    match &addresses(text)?[..] {
        [one] => Ok(one.servers.clone()),
        several => {
            let names: Vec<_> = several.iter().filter_map(|one| Some(one.name.as_ref()?.as_str())).collect();
            Err(format!("it names several queues ({}), but this command accepts only one", names.join(", ")))
        }
    }
}

impl ZooKeeperArgs {
    /// Reads the files and checks everything that can be checked without a server.
    ///
    /// # Errors
    /// Says what is wrong and what is allowed.
    pub fn config(self) -> Result<Config, UsageError> {
        self.connection.config(self.servers)
    }
}

impl ConnectionArgs {
    /// The same with these servers.
    ///
    /// # Errors
    /// As [`ZooKeeperArgs::config`].
    pub(super) fn config(self, servers: Servers) -> Result<Config, UsageError> {
        let refuse = |error: ConfigError| UsageError::flag(flag_of(&error), error);
        let auth = self.auth_file.as_deref().map(Auth::read_file).transpose();
        let config = Config {
            servers,
            session_timeout: self.session_timeout.get(),
            connection_timeout: self.connection_timeout.map(PrometheusDuration::get),
            auth: auth.map_err(|error| UsageError::flag("--zookeeper.auth-file", error))?.unwrap_or_default(),
            tls: Tls::from_flags(self.tls_enabled, self.tls_ca_file, self.tls_cert_file, self.tls_key_file)
                .map_err(refuse)?,
            acl: self.acl.map(|acl| acl.to_vec()).unwrap_or_default(),
        };
        config.check().map_err(refuse)?;
        Ok(config)
    }
}

/// The ZooKeeper of a standalone repository that is running.
pub(super) fn of_data(data: &DataDirectory) -> anyhow::Result<Config> {
    let file = data.connect_file();
    let text = std::fs::read_to_string(&file).map_err(|error| {
        let why = format!("cannot read {}: {error}; is queuekeeper standalone running there?", file.display());
        UsageError::flag("--data", why)
    })?;
    Ok(Config::new(text.trim().parse()?))
}

/// The flag that a mistake in the configuration is about.
fn flag_of(error: &ConfigError) -> &'static str {
    match error {
        ConfigError::ReadFile { .. } | ConfigError::BadCertificate { .. } | ConfigError::NoSystemRoots => {
            "--zookeeper.tls-*"
        }
        ConfigError::HalfAnIdentity => "--zookeeper.tls-cert-file and --zookeeper.tls-key-file",
        ConfigError::AuthLine { .. } | ConfigError::NoCredentials { .. } => "--zookeeper.auth-file",
        ConfigError::SessionTimeout { .. } => "--zookeeper.session-timeout",
        ConfigError::ConnectionTimeout { .. } => "--zookeeper.connection-timeout",
    }
}
