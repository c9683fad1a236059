//! The metrics and probes of a process without a status page.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State as FromState;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::get;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::routes::{HEALTHY, READY};
use super::{probes, scrape};

#[derive(Clone)]
struct Probed {
    registry: Arc<Registry>,
    is_ready: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// Serves `/metrics`, `/-/healthy` and `/-/ready` until `shutdown`; `is_ready` gives the reason where it is not.
///
/// # Errors
/// When a listener fails.
pub async fn run(
    listeners: Vec<TcpListener>,
    registry: Registry,
    is_ready: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let routes = Router::new()
        .route("/metrics", get(metrics))
        .route(HEALTHY, get(probes::healthy))
        .route(READY, get(ready))
        .with_state(Probed { registry: Arc::new(registry), is_ready: Arc::new(is_ready) });
    let mut serving = JoinSet::new();
    for listener in listeners {
        let (routes, shutdown) = (routes.clone(), shutdown.clone());
        serving.spawn(
            async move { axum::serve(listener, routes).with_graceful_shutdown(shutdown.cancelled_owned()).await },
        );
    }
    while let Some(served) = serving.join_next().await {
        served.map_err(io::Error::other)??;
    }
    Ok(())
}

/// `GET /metrics`
async fn metrics(FromState(probed): FromState<Probed>, headers: HeaderMap) -> Response {
    scrape::exposition(&probed.registry, &headers)
}

/// `GET /-/ready`
async fn ready(FromState(probed): FromState<Probed>) -> Response {
    match (probed.is_ready)() {
        Ok(()) => probes::plain(StatusCode::OK, "ready\n".to_owned()),
        Err(why) => probes::plain(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", probes::one_line(&why))),
    }
}
