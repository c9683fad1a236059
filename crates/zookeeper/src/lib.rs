//! Connections to ZooKeeper, our own znodes there, and a private server for the demo and the tests.
//!
//! From configuration to a session, top down:
//!
//! - [`address`]: the connect string, checked; [`auth`]: credentials from a file; [`acl`]: who may do what;
//!   [`tls`]: certificates from files;
//! - [`chroot`]: what to do where the znode that all paths are relative to is missing;
//! - [`connect`]: one attempt to get a session, and when it fails, one line with the reason;
//! - [`connections`]: from where the clients of a server are connected;
//! - [`diagnose`]: finds that reason, since the client library only reports that no host could be used;
//! - [`session`]: attempts without end, backing off between them, and what a session lives through afterwards;
//! - [`request`]: a limit in time for each request, since one that is made while disconnected waits;
//! - [`write`](Write): a write to a znode of our own, as a part of a transaction;
//! - [`coordination`]: our own znodes below `/queuekeeper`, by which several processes of ours act as one;
//! - [`server`]: a real ZooKeeper server of our own, as a child process; [`child`]: processes that we start and that do
//!   not outlive us;
//! - [`files`]: which files are trusted: credentials, keys, configuration, records.
//!
//! Nothing here knows what the znodes mean.

pub mod acl;
pub mod address;
pub mod auth;
pub mod child;
pub mod chroot;
mod config_error;
pub mod connect;
pub mod connections;
pub mod coordination;
pub mod diagnose;
pub mod files;
pub mod request;
pub mod server;
pub mod session;
pub mod tls;
mod write;

pub use address::{Host, Servers, ServersError};
pub use auth::Auth;
pub use chroot::NoChroot;
pub use config_error::ConfigError;
pub use connect::{Config, ConnectError};
pub use request::{RequestError, within};
pub use server::{PrivateServer, ServerError};
pub use session::{Connection, SessionEnd, Sessions};
pub use tls::Tls;
pub use write::Write;
