//! The metrics endpoint.

use axum::extract::State as FromState;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::registry::Registry;

use super::state::State;
use crate::metrics::{self, Format};

/// `GET /metrics`, or wherever `--web.telemetry-path` puts it.
pub(super) async fn metrics(FromState(state): FromState<State>, headers: HeaderMap) -> Response {
    exposition(&state.shared.registry, &headers)
}

/// A registry in the format that the client accepts.
pub(super) fn exposition(registry: &Registry, headers: &HeaderMap) -> Response {
    exposition_of_all(&[registry], headers)
}

/// The same of several registries, as one.
pub(super) fn exposition_of_all(registries: &[&Registry], headers: &HeaderMap) -> Response {
    let wishes = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    let format = Format::negotiate(wishes);
    match metrics::expose_all(registries, format) {
        Ok(body) => ([(header::CONTENT_TYPE, format.content_type()), (header::VARY, "accept")], body).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to encode the metrics");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
