//! The metrics and probes of a process that runs daemons and serves no queue.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::extract::State as FromState;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::get;
use prometheus_client::registry::Registry;
use queuekeeper_ingest::step::Services;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{health, scrape};

#[derive(Clone)]
struct Probed {
    registry: Arc<Registry>,
    services: Arc<Services>,
}

/// Serves them until `shutdown`.
///
/// # Errors
/// When a listener fails.
pub async fn run(
    listeners: Vec<TcpListener>,
    registry: Registry,
    services: Arc<Services>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let routes = Router::new()
        .route("/metrics", get(metrics))
        .route("/-/healthy", get(health::healthy))
        .route("/-/ready", get(ready))
        .with_state(Probed { registry: Arc::new(registry), services });
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

/// `GET /-/ready`: the daemons have a session.
async fn ready(FromState(probed): FromState<Probed>) -> Response {
    if probed.services.is_connected.load(Ordering::Relaxed) {
        health::plain(StatusCode::OK, "ready\n".to_owned())
    } else {
        health::plain(StatusCode::SERVICE_UNAVAILABLE, "not ready: not connected to ZooKeeper\n".to_owned())
    }
}
