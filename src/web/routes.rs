//! Addresses that more than one room names, and what is known of every route.

/// Where the API is.
pub(super) const API: &str = "/api/v1";

/// Where Alertmanager calls.
pub(super) const ALERTS: &str = "/api/v1/alerts";

/// Where stores say what has changed.
pub(super) const STORE_EVENTS: &str = "/api/v1/store-events";

/// The caller.
pub(super) const IDENTITY: &str = "/api/v1/identity";

/// Style sheets, scripts and pictures.
pub(super) const ASSETS: &str = "/static/{asset}";

/// The icons of pages.
pub(super) const ICON: &str = "/icon/{icon}";

/// Where deposits are.
pub(super) const DEPOSITS: &str = "/api/v1/deposits";
/// What follows on a deposit's id where its failed rows are submitted again; the request has no body.
pub(super) const FAILED: &str = "/failed";
/// What follows on a deposit's id where it is withdrawn; the request may have no body.
pub(super) const WITHDRAW: &str = "/withdraw";

/// The links of access requests, which are their own credentials.
pub(super) const DELIVERY: &str = "/access/download/{expires}/{signature}/{name}";

/// The page to deposit with.
pub(super) const SUBMIT: &str = "/submit";

/// Below this, programs deposit as they do to Merritt.
pub(super) const POSTER_ROOT: &str = "/poster/";

/// Where the description of the API is.
pub(super) const API_DOCUMENT: &str = "/api/v1/openapi.json";

/// Below this, errors are problem documents and bodies are JSON.
pub(super) const API_ROOT: &str = "/api/";

/// The probes, which need no login.
pub(super) const HEALTHY: &str = "/-/healthy";
/// See [`HEALTHY`].
pub(super) const READY: &str = "/-/ready";

/// A route's pattern, and whether it answers GET; one that does not takes POST.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) pattern: String,
    pub(super) is_read: bool,
}
