//! What is served over HTTP: the metrics, the probes and the status page.
//!
//! Handlers are thin: they take a view from the mirror and render it. None of them sends a request to ZooKeeper.
//!
//! Each module names only those below it (`.ci/layers` checks that): this one assembles `several`, `events` and
//! `errors`, `pages`, `api`, `deliveries`, `process`, the small handlers (`probes`, `scrape`, `dashboards`, `assets`,
//! `icons`), `actions`, `state`, `reload`, `http`, `routes`.

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware;
use axum::routing::{MethodRouter, get};
use axum::{Extension, Router};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use self::http::connection::ServeOptions;
use self::http::context::HttpContext;
use self::http::{auth, connection, csrf, headers, layers, prefix};
use self::routes::{HEALTHY, READY, Route};
use crate::actions::Actions;
use crate::config;
use crate::metrics::http::Known;
use crate::metrics::working_storage::MeasuredStorage;
use crate::mirror::MirrorStore;

pub use self::deployments::ServedDeployments;
pub use self::state::{Front, State};

mod actions;
mod api;
mod assets;
pub(crate) mod dashboards;
mod deliveries;
mod deployments;
mod deposits;
mod errors;
mod events;
mod http;
mod icons;
mod links;
pub mod pages;
mod poster;
pub mod probes;
pub mod process;
mod reload;
mod routes;
mod scrape;
mod state;
pub mod working;

impl State {
    /// The state of a server. `registry` is complete: what is registered later is not served.
    #[must_use]
    pub fn new(
        config: config::Config,
        store: MirrorStore,
        storage: Option<MeasuredStorage>,
        actions: Option<Actions>,
        registry: Registry,
    ) -> Self {
        let mut registry = registry;
        let front = Front::new(&mut registry, &config);
        Self::behind(&front, config, store, storage, actions, registry)
    }
}

impl Front {
    /// Registers the families of requests, logins and reloads.
    #[must_use]
    pub fn new(registry: &mut Registry, config: &config::Config) -> Self {
        let routes = assemble(&config.web).1;
        Self::with_routes(registry, config, routes.iter().map(known))
    }
}

/// The routes of what is neither page nor API.
fn own_routes(config: &config::Web) -> Vec<(&str, MethodRouter<State>)> {
    vec![
        (config.telemetry_path.as_str(), get(scrape::metrics)),
        (HEALTHY, get(probes::healthy)),
        (READY, get(probes::ready)),
        (events::ROUTE, get(events::events)),
        (assets::ROUTE, get(assets::asset)),
        (icons::ROUTE, get(icons::icon)),
        (dashboards::ROUTE, get(dashboards::file)),
    ]
}

/// All routes.
fn assemble(config: &config::Web) -> (Router<State>, Vec<Route>) {
    let has = config.repository;
    let (document, mut known, mut router) = api::described(has);
    let read = own_routes(config).into_iter().chain(pages::read(has)).chain([api::document_route(&document)]);
    let read = read.map(|(pattern, route)| (pattern, route, true));
    let deliveries = deliveries::routes(has).map(|(pattern, route)| (pattern, route, true));
    let read = read.chain(deliveries);
    for (pattern, route, is_read) in
        read.chain(pages::posted(has).chain(poster::routes(has)).map(|(pattern, route)| (pattern, route, false)))
    {
        known.push(Route { pattern: pattern.to_owned(), is_read });
        router = router.route(pattern, route);
    }
    (router, known)
}

/// The routes that serve bytes embedded in the binary, which do not depend on the queue.
const EMBEDDED: [&str; 10] = [
    assets::ROUTE,
    icons::ROUTE,
    dashboards::ROUTE,
    routes::API_DOCUMENT,
    "/api",
    "/api/bodies",
    "/api/bodies/{body}",
    "/dashboards",
    "/runbook",
    HEALTHY,
];

/// What the metrics of requests need to know of a route.
fn known(route: &Route) -> Known<'_> {
    let is_timed = !EMBEDDED.contains(&&*route.pattern);
    Known { pattern: &route.pattern, is_read: route.is_read, is_timed }
}

/// The router with all layers.
pub fn router(state: State) -> Router {
    with_layers(state, Arc::default())
}

fn with_layers(state: State, hub: Arc<events::Hub>) -> Router {
    let context = Arc::clone(state.http());
    let config = &context.config;
    let routes = prefix::below(&config.route_prefix, assemble(config).0)
        .fallback(|| async { StatusCode::NOT_FOUND })
        .layer(Extension(hub));
    behind_layers(routes, &context)
        .layer(middleware::from_fn_with_state(state.clone(), api::count_unauthorized_alerts))
        .with_state(state)
}

/// Routes behind what stands before every handler.
fn behind_layers<S: Clone + Send + Sync + 'static>(routes: Router<S>, context: &Arc<HttpContext>) -> Router<S> {
    let context = Arc::clone(context);
    routes
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(Arc::clone(&context), layers::limit))
        .layer(middleware::from_fn_with_state(Arc::clone(&context), auth::check))
        .layer(middleware::from_fn_with_state(Arc::clone(&context), csrf::check))
        .layer(middleware::from_fn_with_state(Arc::clone(&context), layers::check_host))
        .layer(middleware::from_fn(layers::limit_head))
        .layer(CatchPanicLayer::custom(layers::on_panic))
        .layer(middleware::from_fn_with_state(Arc::clone(&context), errors::describe))
        .layer(layers::compression())
        .layer(middleware::map_response_with_state(Arc::clone(&context), headers::secure))
        .layer(middleware::from_fn_with_state(context, layers::count))
}

/// Serves on every listener until `shutdown`, and then stops within a second, even with clients still connected.
///
/// The caller binds the listeners and decides when to stop.
///
/// # Errors
/// When a listener fails for good.
pub async fn run(listeners: Vec<TcpListener>, state: State, shutdown: CancellationToken) -> std::io::Result<()> {
    let hub = Arc::<events::Hub>::default();
    let router = with_layers(state.clone(), Arc::clone(&hub));
    serve(listeners, router, &[(state, hub)], shutdown).await
}

impl ServedDeployments {
    /// The same for the pages of several queues.
    ///
    /// # Errors
    /// When a listener fails for good.
    pub async fn run(self, listeners: Vec<TcpListener>, shutdown: CancellationToken) -> std::io::Result<()> {
        let context = Arc::clone(self.context());
        let (routes, common) = self.routes();
        let of_all = behind_layers(routes, &context).with_state(common);
        let first = Arc::<events::Hub>::default();
        let hub = |n: usize| if n == 0 { Arc::clone(&first) } else { Arc::new(first.beside()) };
        let queues: Vec<_> = self.queues.into_iter().enumerate().map(|(n, state)| (state, hub(n))).collect();
        let of_queue = |(state, hub): &(State, Arc<events::Hub>)| {
            let name = state.http().config.deployment()?.clone();
            Some((name, with_layers(state.clone(), Arc::clone(hub))))
        };
        let of_queues = queues.iter().filter_map(of_queue).collect();
        let router = deployments::dispatch(&context.config.route_prefix, of_all, of_queues);
        serve(listeners, router, &queues, shutdown).await
    }
}

/// Serves the pages of queues, each with its live pages, by one router.
async fn serve(
    listeners: Vec<TcpListener>,
    router: Router,
    queues: &[(State, Arc<events::Hub>)],
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let Some((first, _)) = queues.first() else { return Ok(()) };
    let context = first.http();
    let stopping = context.shutdown().clone();
    let relayed = async {
        stopping.run_until_cancelled(shutdown.cancelled()).await;
        stopping.cancel();
    };
    // Connections wait for their event streams, so these end first.
    let streams = async {
        stopping.cancelled().await;
        futures::future::join_all(queues.iter().map(|(_, hub)| hub.end())).await;
    };
    let served = async {
        let served = connection::serve(listeners, router, ServeOptions::of_pages(Arc::clone(context))).await;
        stopping.cancel();
        served
    };
    let alerts: Vec<_> = queues.iter().filter_map(|(state, _)| state.shared.alerts.get()).collect();
    let reloading = first.shared.reloader.run(context, &alerts);
    let (served, (), (), ()) = tokio::join!(served, reloading, relayed, streams);
    served
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_telemetry_path_cannot_be_that_of_another_route() {
        let (_, routes) = assemble(&config::Web { repository: config::RepositoryParts::ALL, ..config::Web::default() });
        let patterns = routes.iter().map(|route| &*route.pattern);
        let others = patterns.filter(|pattern| !matches!(*pattern, "/" | "/metrics"));
        let first: BTreeSet<_> = others.map(|pattern| pattern.split('/').nth(1).unwrap()).collect();
        assert_eq!(first, config::RESERVED.into_iter().collect());
    }

    /// An address with its parameters alike: in braces as in routes, in capitals as in the documentation.
    fn shape(address: &str) -> String {
        let is_parameter =
            |part: &str| part.starts_with('{') || part.starts_with(|first: char| first.is_ascii_uppercase());
        address.split('/').map(|part| if is_parameter(part) { "*" } else { part }).collect::<Vec<_>>().join("/")
    }

    #[test]
    fn the_documentation_names_a_page_of_every_part_and_none_that_is_not_there() {
        let (_, table) = include_str!("../docs/operate.md").split_once("| where | what |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let cells = rows.map(|row| row.split('|').nth(1).unwrap());
        let named: BTreeSet<_> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(shape).collect();
        let pages = pages::read(config::RepositoryParts::ALL).into_iter().map(|(pattern, _)| pattern);
        let all: BTreeSet<_> = pages.chain(["/metrics", HEALTHY, READY, routes::API]).map(shape).collect();
        assert_eq!(named.difference(&all).collect::<Vec<_>>(), [""; 0], "docs/operate.md names these");
        let part = |address: &String| address.split('/').nth(1).unwrap_or_default().to_owned();
        let parts: BTreeSet<_> = named.iter().map(part).collect();
        let missing: Vec<_> = all.iter().filter(|address| !parts.contains(&part(address))).collect();
        assert_eq!(missing, [""; 0], "the table of pages in docs/operate.md lacks these");
    }

    #[test]
    fn embedded_files_have_no_histogram_and_routes_for_post_are_not_read() {
        let (_, routes) = assemble(&config::Web { repository: config::RepositoryParts::ALL, ..config::Web::default() });
        let all: Vec<Known<'_>> = routes.iter().map(known).collect();
        assert_eq!(all.iter().filter(|known| !known.is_timed).count(), EMBEDDED.len(), "{all:#?}");
        for (pattern, is_read) in
            [("/jobs", true), ("/lists/{id}", true), ("/lists", false), (routes::ALERTS, false), ("/api/v1/jobs", true)]
        {
            let found = all.iter().find(|known| known.pattern == pattern);
            assert_eq!(found, Some(&Known { pattern, is_read, is_timed: true }));
        }
    }
}
