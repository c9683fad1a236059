//! `--web.route-prefix`.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::{MethodRouter, get};

use crate::config::RoutePrefix;

/// The routes below the prefix, with redirects to it: as in Prometheus, from the server's root, and from the prefix
/// without the slash that relative links need.
pub(in crate::web) fn below<S: Clone + Send + Sync + 'static>(prefix: &RoutePrefix, routes: Router<S>) -> Router<S> {
    let prefix = prefix.as_str();
    let Some((_, last)) = prefix.rsplit_once('/') else { return routes };
    Router::new()
        .nest(&format!("{prefix}/"), routes)
        .route("/", redirect(format!("{}/", &prefix[1..])))
        .route(prefix, redirect(format!("{last}/")))
}

/// A relative redirect, since a reverse proxy may add a prefix of its own.
fn redirect<S: Clone + Send + Sync + 'static>(to: String) -> MethodRouter<S> {
    get(async || (StatusCode::FOUND, [(header::LOCATION, to)]))
}
