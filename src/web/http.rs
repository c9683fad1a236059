//! What stands before every handler: connections, TLS, host names, authentication, and the form of requests and errors.
//!
//! It knows neither pages nor API, but for the addresses in [`super::routes`].

pub(in crate::web) mod accept;
pub(in crate::web) mod address;
pub(in crate::web) mod attachment;
pub(in crate::web) mod auth;
pub(in crate::web) mod connection;
pub(in crate::web) mod context;
pub(in crate::web) mod csrf;
pub(in crate::web) mod headers;
pub(in crate::web) mod host;
pub(in crate::web) mod identity;
pub(in crate::web) mod json;
pub(in crate::web) mod key;
pub(in crate::web) mod layers;
pub(in crate::web) mod params;
pub(in crate::web) mod prefix;
pub(crate) mod problem;
pub(crate) mod query;
pub(in crate::web) mod tls;
