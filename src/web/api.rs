//! The JSON API below `/api/v1`: the views as they are, and the document that describes them.
//!
//! A handler is registered with its description ([`utoipa::path`]), so that the document cannot name one that is not
//! there or leave one out.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use utoipa::OpenApi;
use utoipa::openapi::tag::Tag;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::http::json::Json;
use super::http::problem::Problem;
use super::routes::Route;
use super::state::State;
use crate::alerts::MAX_MESSAGE_BYTES;
use crate::config::RepositoryParts;
use crate::words::size;

mod access;
pub(super) mod actions;
mod alerts;
mod audit;
mod batches;
mod csv;
mod daemons;
mod deposits;
mod download;
mod failures;
mod faults;
mod identity;
mod job;
mod jobs;
mod locks;
mod mill;
mod objects;
mod openapi;
mod overview;
mod rules;
mod status;
mod store_events;
pub(super) mod tree;

pub(super) use super::routes::{API as PREFIX, API_DOCUMENT as DOCUMENT};
pub(super) use alerts::count_unauthorized as count_unauthorized_alerts;
pub(super) use audit::{list as audit_list, on as audit_on};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "queuekeeper API",
        description = "The ingest queue as queuekeeper mirrors it: everything that the status page shows, and the actions \
                       of operators. Actions require authentication, by a token (Authorization: Bearer) or a password, \
                       and a role that allows them. Instants are RFC 3339 in UTC, sizes are in bytes, states are named \
                       as in the metrics. Errors are problem documents (RFC 9457).",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    components(schemas(Problem))
)]
struct Document;

/// The parts of the API, by the first segment of their paths, and their tags.
#[derive(Default)]
struct Parts {
    tags: Vec<Tag>,
    api: OpenApiRouter<State>,
}

impl Parts {
    /// Adds the routes of a part, and what it is about.
    fn part(mut self, description: &str, routes: OpenApiRouter<State>) -> Self {
        self.tags.extend(routes.get_openapi().paths.paths.keys().next().map(|path| openapi::tag(path, description)));
        Self { tags: self.tags, api: self.api.merge(routes) }
    }

    /// The same of one that not every server has.
    fn part_if(self, is_there: bool, description: &str, routes: impl FnOnce() -> OpenApiRouter<State>) -> Self {
        if is_there { self.part(description, routes()) } else { self }
    }
}

/// The description (OpenAPI 3.1), and the routes that it describes, of a server that has so much of a repository.
pub(super) fn described(has: RepositoryParts) -> (utoipa::openapi::OpenApi, Vec<Route>, axum::Router<State>) {
    let routes = OpenApiRouter::<State>::new;
    let parts = Parts::default()
        .part("Whether the figures are current", routes().routes(routes!(status::status)))
        .part("The caller", routes().routes(routes!(identity::identity)))
        .part("Whether the queue is moving", routes().routes(routes!(overview::overview)))
        .part("The last hours", routes().routes(routes!(overview::history)))
        .part(
            "Jobs: lists and details",
            routes()
                .routes(routes!(jobs::jobs))
                .routes(routes!(jobs::jobs_csv))
                .routes(routes!(job::job))
                .routes(routes!(job::diagnosis)),
        )
        .part(
            "Failed jobs, grouped by cause",
            routes().routes(routes!(failures::failures)).routes(routes!(failures::failures_csv)),
        )
        .part(
            "Batches: lists and details",
            routes()
                .routes(routes!(batches::batches))
                .routes(routes!(batches::batches_csv))
                .routes(routes!(batches::batch)),
        )
        .part("Access requests", {
            let lists = if has.deliveries { routes!(access::access, access::request) } else { routes!(access::access) };
            routes().routes(lists).routes(routes!(access::access_csv))
        })
        .part("Locks and their holders", routes().routes(routes!(locks::locks)).routes(routes!(locks::locks_csv)))
        .part_if(has.deposits, "Deposits and their progress", || {
            let one = routes!(deposits::deposit, deposits::upload, deposits::give_up);
            let made = routes().routes(routes!(deposits::deposits, deposits::make)).routes(one);
            made.routes(routes!(deposits::failed)).routes(routes!(deposits::withdraw))
        })
        .part_if(has.objects, "Objects that were stored", || {
            let lists = routes().routes(routes!(objects::objects)).routes(routes!(objects::object));
            lists.routes(routes!(download::file))
        })
        .part_if(has.mill, "The mill: copies in other stores", mill::router)
        .part("Daemons and what they are working on", routes().routes(routes!(daemons::daemons)))
        .part(
            "Faults: what is broken in the tree",
            routes().routes(routes!(faults::faults)).routes(routes!(faults::faults_csv)),
        )
        .part(
            "Actions and their outcome",
            routes()
                .routes(routes!(actions::action))
                .routes(routes!(actions::action_by_id))
                .routes(routes!(actions::cancel)),
        )
        .part("Actions on many jobs", routes().routes(routes!(actions::freeze)).routes(routes!(actions::execute)))
        .part("The audit trail", routes().routes(routes!(audit::audit)).routes(routes!(audit::audit_csv)))
        .part("Alertmanager's webhook", alerts::router())
        .part("Notifications of changes from stores", store_events::router())
        .part(
            "Rules that act on alerts",
            routes()
                .routes(routes!(rules::rules))
                .routes(routes!(rules::reset))
                .routes(routes!(rules::pause))
                .routes(routes!(rules::unpause)),
        )
        .part("Any znode", routes().routes(routes!(tree::tree_root)).routes(routes!(tree::tree)));
    let (router, mut document) =
        OpenApiRouter::with_openapi(Document::openapi()).nest(PREFIX, parts.api).split_for_parts();
    let paths = document.paths.paths.iter();
    let routes = paths.map(|(path, item)| Route { pattern: path.clone(), is_read: item.get.is_some() }).collect();
    // OpenAPI has no syntax for the router's catch-all parameters.
    let paths = std::mem::take(&mut document.paths.paths);
    document.paths.paths = paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    openapi::complete(&mut document, parts.tags);
    (document, routes, router)
}

/// The route of the description itself.
pub(super) fn document_route(document: &utoipa::openapi::OpenApi) -> (&'static str, MethodRouter<State>) {
    let json = document.to_json().map_err(|error| tracing::error!(%error, "the API cannot be described")).ok();
    let json: Option<Bytes> = json.map(Into::into);
    let serve = async move || -> Response {
        match json {
            Some(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
            None => axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    };
    (DOCUMENT, get(serve))
}

/// What a handler of the API answers.
pub(super) type Answer<T> = Result<Json<T>, Problem>;

/// The body of a message of another program, which is refused where it cannot be read.
fn message(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Problem> {
    body.map_err(|rejection| {
        let limit = size(MAX_MESSAGE_BYTES as u64);
        Problem::new(rejection.status(), format!("The body cannot be read, or is larger than the limit of {limit}."))
    })
}
