//! What is served over HTTP: the metrics, the probes and the status page.
//!
//! Handlers are thin: they take a view from the mirror and render it. None of them asks ZooKeeper anything.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware;
use axum::routing::{MethodRouter, get};
use jiff::Timestamp;
use parking_lot::RwLock;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::TimeoutLayer;

use self::http::{auth, connection, guard, host, layers, prefix};
use crate::actions::Actions;
use crate::alerts::Alerts;
use crate::config;
use crate::metrics::http::{Http, Known};
use crate::metrics::storage::Storage;
use crate::mirror::Store;
use crate::views::Source;

mod actions;
mod api;
mod assets;
pub(crate) mod dashboards;
mod events;
pub mod health;
mod http;
mod links;
pub mod pages;
mod reload;
mod scrape;

/// No request carries more, in bytes.
const BODY_LIMIT: usize = 64 * 1024;

/// But Alertmanager's, which carries many alerts at once.
const ALERTS_LIMIT: usize = 1024 * 1024;

/// No answer takes longer: the client is asked to retry.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// What the handlers need; cheap to clone.
#[derive(Clone, Debug)]
pub struct State {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    registry: Registry,
    http: Http,
    storage: Option<Storage>,
    /// `None` for a server that only shows.
    actions: Option<Actions>,
    /// Empty for a server that takes no alerts.
    alerts: OnceLock<Alerts>,
    config: config::Config,
    hub: events::Hub,
    hosts: host::Hosts,
    authenticator: auth::Authenticator,
    /// TLS and passwords as they are now; what `config` says of them is what there was at the start.
    web_file: RwLock<Option<Arc<config::WebFile>>>,
    /// Who may request something, as it is now.
    file: RwLock<Option<Arc<config::ConfigFile>>>,
    reloaded: reload::Reloaded,
    /// Changes each time that one of these files was taken up.
    reloads: watch::Sender<()>,
    /// Wakes whatever looks at the files.
    look: Notify,
    ending: CancellationToken,
}

impl State {
    /// The state of a server. `registry` is complete: what is registered later is not served.
    #[must_use]
    pub fn new(
        config: config::Config,
        store: Store,
        storage: Option<Storage>,
        actions: Option<Actions>,
        mut registry: Registry,
    ) -> Self {
        let routes = assemble(&config.web).1;
        let http = Http::register(&mut registry, routes.iter().map(Route::known));
        let web_file = config.web.file.clone().map(Arc::new);
        let file = config.file.clone().map(Arc::new);
        let reloaded = reload::Reloaded::register(&mut registry, &config);
        let authenticator = auth::Authenticator::register(&mut registry);
        let shared = Shared {
            store,
            registry,
            http,
            storage,
            actions,
            alerts: OnceLock::new(),
            hosts: host::Hosts::new(&config.web),
            authenticator,
            web_file: RwLock::new(web_file),
            file: RwLock::new(file),
            reloaded,
            reloads: watch::Sender::new(()),
            look: Notify::new(),
            ending: CancellationToken::new(),
            hub: events::Hub::default(),
            config,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Takes alerts, too.
    #[must_use]
    pub fn with_alerts(self, alerts: Alerts) -> Self {
        // It is new, so that there are none yet.
        let _ = self.shared.alerts.set(alerts);
        self
    }

    /// Looks at once whether the files of the configuration have changed, and not only when it is time.
    pub fn reload(&self) {
        self.shared.look.notify_one();
    }

    /// Cancelled when the server is asked to end. Answers without an end of their own watch it and end then: the others
    /// have a second.
    fn ending(&self) -> &CancellationToken {
        &self.shared.ending
    }

    /// TLS and passwords as they are now; `None` where there is no web configuration.
    fn web_file(&self) -> Option<Arc<config::WebFile>> {
        self.shared.web_file.read().clone()
    }

    /// Who may request something, as it is now; `None` where there is no such file.
    fn file(&self) -> Option<Arc<config::ConfigFile>> {
        self.shared.file.read().clone()
    }

    /// What every page is made of at `now`.
    fn view(&self, now: Timestamp) -> pages::View {
        let Shared { store, config, .. } = &*self.shared;
        pages::View {
            now,
            servers: config.zookeeper.servers.to_string(),
            telemetry_path: config.web.telemetry_path.as_str().to_owned(),
            notice: config.web.loopback.as_ref().map(|loopback| loopback.notice),
            freshness: store.freshness(),
            summary: self.source().summary(now).ok(),
        }
    }

    /// What views are worked out from.
    fn source(&self) -> Source<'_> {
        let Shared { store, storage, alerts, config, .. } = &*self.shared;
        Source { store, storage: storage.as_ref(), alerts: alerts.get(), servers: &config.zookeeper.servers }
    }
}

/// Everything that has a route of its own and is neither page nor API.
fn own_routes(config: &config::Web) -> Vec<(&str, MethodRouter<State>)> {
    vec![
        (config.telemetry_path.as_str(), get(scrape::metrics)),
        ("/-/healthy", get(health::healthy)),
        ("/-/ready", get(health::ready)),
        (events::ROUTE, get(events::events)),
        (assets::ROUTE, get(assets::asset)),
        (dashboards::ROUTE, get(dashboards::file)),
    ]
}

/// Every route there is, and what is known of each.
fn assemble(config: &config::Web) -> (Router<State>, Vec<Route>) {
    let (document, mut known, mut router) = api::described();
    let read = own_routes(config).into_iter().chain(pages::read()).chain([api::document_route(&document)]);
    let read = read.map(|(pattern, route)| (pattern, route, true));
    for (pattern, route, is_read) in read.chain(pages::posted().map(|(pattern, route)| (pattern, route, false))) {
        known.push(Route { pattern: pattern.to_owned(), is_read });
        router = router.route(pattern, route);
    }
    (router, known)
}

/// A route's pattern, and whether it answers GET; one that does not takes POST.
#[derive(Debug)]
struct Route {
    pattern: String,
    is_read: bool,
}

impl Route {
    /// The routes whose answers are bytes that the binary carries, with nothing of the queue in them.
    const CARRIED: [&str; 8] = [
        assets::ROUTE,
        dashboards::ROUTE,
        api::DOCUMENT,
        "/api",
        "/api/bodies",
        "/dashboards",
        "/runbook",
        "/-/healthy",
    ];

    fn known(&self) -> Known<'_> {
        let is_timed = !Self::CARRIED.contains(&&*self.pattern);
        Known { pattern: &self.pattern, is_read: self.is_read, is_timed }
    }
}

/// The router with everything that stands before its handlers.
pub fn router(state: State) -> Router {
    let config = &state.shared.config.web;
    prefix::below(&config.route_prefix, assemble(config).0)
        .fallback(|| async { StatusCode::NOT_FOUND })
        .layer(middleware::from_fn_with_state(state.clone(), layers::limit))
        .layer(RequestBodyLimitLayer::new(ALERTS_LIMIT))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, ANSWER_LIMIT))
        .layer(middleware::from_fn_with_state(state.clone(), auth::check))
        .layer(middleware::from_fn_with_state(state.clone(), guard::check))
        .layer(middleware::from_fn_with_state(state.clone(), host::check))
        .layer(middleware::from_fn(layers::head))
        .layer(CatchPanicLayer::custom(layers::on_panic))
        .layer(middleware::from_fn_with_state(state.clone(), layers::describe_errors))
        .layer(layers::compression())
        .layer(middleware::map_response_with_state(state.clone(), layers::secure))
        .layer(middleware::from_fn_with_state(state.clone(), layers::count))
        .with_state(state)
}

/// Serves on every listener until `shutdown`, and then ends within a second, whatever clients are still connected.
///
/// The caller binds the listeners and decides when to end.
///
/// # Errors
/// When a listener can take no more connections for good.
pub async fn run(listeners: Vec<TcpListener>, state: State, shutdown: CancellationToken) -> std::io::Result<()> {
    let ending = state.ending().clone();
    let relayed = async {
        ending.run_until_cancelled(shutdown.cancelled()).await;
        ending.cancel();
    };
    // A stream would be waited for until it is cut, so all of them end first.
    let streams = async {
        ending.cancelled().await;
        state.shared.hub.end().await;
    };
    let served = async {
        let served = connection::serve(listeners, router(state.clone()), state.clone()).await;
        ending.cancel();
        served
    };
    let (served, (), (), ()) = tokio::join!(served, reload::keep_up(&state), relayed, streams);
    served
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_take_the_place_of_no_route() {
        let (_, routes) = assemble(&config::Web::default());
        let patterns = routes.iter().map(|route| &*route.pattern);
        for pattern in patterns.filter(|pattern| !matches!(*pattern, "/" | "/metrics")) {
            let first = pattern.split('/').nth(1).unwrap();
            assert!(format!("/{first}").parse::<config::TelemetryPath>().is_err(), "{pattern}");
        }
    }

    #[test]
    fn what_the_binary_carries_has_no_histogram_and_what_takes_only_post_is_not_read() {
        let (_, routes) = assemble(&config::Web::default());
        let known: Vec<Known<'_>> = routes.iter().map(Route::known).collect();
        assert_eq!(known.iter().filter(|known| !known.is_timed).count(), Route::CARRIED.len(), "{known:#?}");
        for (pattern, is_read) in
            [("/jobs", true), ("/lists/{id}", true), ("/lists", false), (api::ALERTS, false), ("/api/v1/jobs", true)]
        {
            let found = known.iter().find(|known| known.pattern == pattern);
            assert_eq!(found, Some(&Known { pattern, is_read, is_timed: true }));
        }
    }
}
