//! Everything below a prefix.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::{MethodRouter, get};

use crate::config::RoutePrefix;
use crate::web::State;

/// The routes below the prefix, with redirects to it: as in Prometheus, from the server's root, and from the prefix
/// without the slash that relative links need.
pub(in crate::web) fn below(prefix: &RoutePrefix, routes: Router<State>) -> Router<State> {
    let prefix = prefix.as_str();
    let Some((_, last)) = prefix.rsplit_once('/') else { return routes };
    Router::new()
        .nest(&format!("{prefix}/"), routes)
        .route("/", redirect(format!("{}/", &prefix[1..])))
        .route(prefix, redirect(format!("{last}/")))
}

/// To a place relative to the present one, since a proxy may have put more before it.
fn redirect(to: String) -> MethodRouter<State> {
    get(async || (StatusCode::FOUND, [(header::LOCATION, to)]))
}
