//! What connections and layers share.

use std::sync::Arc;

use parking_lot::RwLock;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use super::auth::authenticator::Authenticator;
use super::host::Hosts;
use crate::config::{Config, ConfigFile, Users, Web, WebFile};
use crate::metrics::http::{Http, Known};

/// What connections and layers share: the web configuration, and what is of the whole server.
#[derive(Debug)]
pub(in crate::web) struct HttpContext {
    /// That of the pages of one queue, or of the pages of all.
    pub(in crate::web) config: Web,
    pub(super) server: Arc<ServerContext>,
}

/// What a server has once, however many queues it serves: the users and tokens that are valid now, and the metrics of
/// requests.
#[derive(Debug)]
pub(in crate::web) struct ServerContext {
    pub(super) metrics: Http,
    pub(super) hosts: Hosts,
    pub(super) authenticator: Authenticator,
    /// TLS and passwords. `config.file` is the version that was read at startup.
    web_file: RwLock<Option<Arc<WebFile>>>,
    /// Roles, tokens and rules.
    config_file: RwLock<Option<Arc<ConfigFile>>>,
    shutdown: CancellationToken,
}

impl ServerContext {
    /// Registers the metrics of requests and logins; `routes` are all that there are.
    pub(in crate::web) fn register<'a>(
        registry: &mut Registry,
        config: &Config,
        routes: impl IntoIterator<Item = Known<'a>>,
    ) -> Self {
        Self {
            metrics: Http::register(registry, routes),
            hosts: Hosts::new(&config.web),
            authenticator: Authenticator::register(registry),
            web_file: RwLock::new(config.web.file.clone().map(Arc::new)),
            config_file: RwLock::new(config.file.clone().map(Arc::new)),
            shutdown: CancellationToken::new(),
        }
    }
}

impl HttpContext {
    /// What pages with this configuration share with all others of the server.
    pub(in crate::web) fn new(config: Web, server: Arc<ServerContext>) -> Self {
        Self { config, server }
    }

    /// Cancelled when the server shuts down. Responses that do not complete by themselves watch it and end then:
    /// the others have a second.
    pub(in crate::web) fn shutdown(&self) -> &CancellationToken {
        &self.server.shutdown
    }

    /// TLS and passwords as they are now; `None` where there is no web configuration.
    pub(in crate::web) fn web_file(&self) -> Option<Arc<WebFile>> {
        self.server.web_file.read().clone()
    }

    /// Roles and tokens as they are now; `None` where there is no such file.
    pub(in crate::web) fn config_file(&self) -> Option<Arc<ConfigFile>> {
        self.server.config_file.read().clone()
    }

    /// Uses a new version of the web configuration from now on.
    pub(in crate::web) fn set_web_file(&self, file: WebFile) {
        *self.server.web_file.write() = Some(Arc::new(file));
    }

    /// Uses a new version of the configuration from now on.
    pub(in crate::web) fn set_config_file(&self, file: ConfigFile) {
        *self.server.config_file.write() = Some(Arc::new(file));
    }

    /// The users of the web configuration; `None` where there are none and reading needs no login.
    pub(super) fn users(&self) -> Option<Arc<Users>> {
        self.web_file().map(|file| Arc::clone(file.users())).filter(|users| !users.is_empty())
    }

    /// The path of a request without the prefix before it; `None` for one that is not below it.
    pub(in crate::web) fn strip_prefix<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(self.config.route_prefix.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}
