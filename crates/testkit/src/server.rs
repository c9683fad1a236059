//! Private ZooKeeper servers and sessions with them.

use std::time::Duration;

use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{Config, PrivateServer};
use tokio::sync::OnceCell;
use zookeeper_client::Client;

/// One server for all tests of a binary; it ends with the process.
pub async fn shared() -> &'static PrivateServer {
    static SERVER: OnceCell<PrivateServer> = OnceCell::const_new();
    SERVER.get_or_init(async || PrivateServer::start(Options::default()).await.unwrap()).await
}

/// A configuration for a connect string, with a session time-out that a busy machine does not reach.
#[must_use]
pub fn config(connect_string: &str) -> Config {
    Config { session_timeout: Duration::from_secs(30), ..Config::new(connect_string.parse().unwrap()) }
}

/// A session that is lost by nothing but a cut: it is as long as a private server grants.
pub async fn connect(connect_string: &str) -> Client {
    Config { session_timeout: Duration::from_mins(1), ..config(connect_string) }.connect().await.unwrap()
}
