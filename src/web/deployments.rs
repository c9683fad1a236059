//! Several queues behind one address: the pages of each below its name, and beside them what is of all.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State as FromState};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::get;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use tower::ServiceExt as _;

use super::http::context::HttpContext;
use super::http::prefix;
use super::http::problem::Problem;
use super::routes::{HEALTHY, READY};
use super::state::{Front, State};
use super::{assets, icons, pages, probes, scrape};
use crate::config::{DeploymentName, RoutePrefix, Web};

/// The pages of several queues, and those of all of them.
#[derive(Debug)]
pub struct ServedDeployments {
    pub(super) queues: Vec<State>,
    common: Common,
}

/// What the handlers of the pages of all queues need.
#[derive(Clone, Debug)]
pub(super) struct Common {
    context: Arc<HttpContext>,
    /// The series that belong to no queue.
    registry: Arc<Registry>,
    queues: Arc<[State]>,
}

impl ServedDeployments {
    /// `web` is the configuration of the pages of all queues, each of which has its own with its prefix. `registry` has
    /// what belongs to none of them, and is complete.
    #[must_use]
    pub fn new(front: &Front, web: Web, registry: Registry, queues: Vec<State>) -> Self {
        let context = Arc::new(HttpContext::new(web, Arc::clone(&front.server)));
        let common = Common { context, registry: Arc::new(registry), queues: queues.clone().into() };
        Self { queues, common }
    }

    /// What the pages of all queues share with those of each.
    pub(super) fn context(&self) -> &Arc<HttpContext> {
        &self.common.context
    }

    /// The routes beside those of the queues, with what their handlers need.
    pub(super) fn routes(&self) -> (Router<Common>, Common) {
        let config = &self.common.context.config;
        let routes = Router::new()
            .route("/", get(overview))
            .route("/runbook", get(runbook))
            .route(config.telemetry_path.as_str(), get(metrics))
            .route(HEALTHY, get(probes::healthy))
            .route(READY, get(ready))
            .route(assets::ROUTE, get(assets::asset))
            .route(icons::ROUTE, get(icons::icon));
        (prefix::below(&config.route_prefix, routes).fallback(nothing), self.common.clone())
    }
}

/// Passes each request to the routes of the queue that its path names below the prefix, or to those of all.
pub(super) fn dispatch(prefix: &RoutePrefix, of_all: Router, of_queues: Vec<(DeploymentName, Router)>) -> Router {
    let (prefix, of_queues) = (prefix.clone(), Arc::<[_]>::from(of_queues));
    Router::new().fallback(move |request: Request| {
        let below = request.uri().path().strip_prefix(prefix.as_str()).and_then(|path| path.strip_prefix('/'));
        let name = below.and_then(|path| path.split('/').next()).unwrap_or_default();
        let named = of_queues.iter().find(|(known, _)| known.as_str() == name);
        named.map_or(&of_all, |(_, router)| router).clone().oneshot(request)
    })
}

/// `GET /`: how each queue is.
async fn overview(FromState(common): FromState<Common>) -> Response {
    pages::deployments::overview(&common.context.config, &common.queues, Timestamp::now())
}

/// `GET /runbook`: what to do when an alert fires, of whichever queue.
async fn runbook(FromState(common): FromState<Common>) -> Response {
    pages::deployments::runbook(&common.context.config, &common.queues, Timestamp::now())
}

/// `GET /metrics`, or wherever `--web.telemetry-path` puts it: the series of all queues and of the process.
async fn metrics(FromState(common): FromState<Common>, headers: HeaderMap) -> Response {
    let of_queues = common.queues.iter().map(|state| &state.shared.registry);
    let registries: Vec<_> = std::iter::once(&*common.registry).chain(of_queues).collect();
    scrape::exposition_of_all(&registries, &headers)
}

/// `GET /-/ready`: every queue is; else which are not, and why, one a line.
async fn ready(FromState(common): FromState<Common>) -> Response {
    let now = Timestamp::now();
    let why = |state: &State| {
        let why = probes::readiness_of(state, now).err()?;
        let name = state.http().config.deployment()?;
        Some(format!("not ready: {name}: {why}\n"))
    };
    let unready: String = common.queues.iter().filter_map(why).collect();
    if unready.is_empty() {
        probes::plain(StatusCode::OK, "ready\n".to_owned())
    } else {
        probes::plain(StatusCode::SERVICE_UNAVAILABLE, unready)
    }
}

/// Any other path, of which the most likely mistake is one that lacks the name of a queue.
async fn nothing(FromState(common): FromState<Common>) -> Problem {
    let names = common.context.config.deployments.iter().flat_map(|deployments| deployments.all.iter());
    let problem = Problem::missing(
        "There is no page at this address. This server has several queues, and the first part of the address is the \
         name of one.",
    );
    problem.allowing(names.map(ToString::to_string))
}
