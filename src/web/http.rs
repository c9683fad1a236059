//! What stands before every handler: connections, TLS, the names of hosts, who asks, and the form of requests and errors.

pub(in crate::web) mod auth;
pub(in crate::web) mod connection;
pub(in crate::web) mod guard;
pub(in crate::web) mod host;
pub(in crate::web) mod identity;
pub(in crate::web) mod json;
pub(in crate::web) mod layers;
pub(in crate::web) mod params;
pub(in crate::web) mod prefix;
pub(crate) mod problem;
pub(crate) mod query;
pub(in crate::web) mod tls;
