//! Rendering a page as a browser would get it.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use tower::ServiceExt as _;
use tower_http::catch_panic::CatchPanicLayer;

use super::regions::Shot;
use crate::actions::Role;
use crate::web::http::identity::Identity;
use crate::web::http::problem::Problem;
use crate::web::{State, layers, pages};

/// No page of ours is larger, in bytes.
const LARGEST: usize = 4 * 1024 * 1024;

/// Marks the answer to an address that is no page's.
#[derive(Clone, Copy, Debug)]
struct NoPage;

/// A page as some readers see it: whoever may request more is offered more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    /// Its path with its query.
    pub(super) address: String,
    /// The role of its readers.
    pub(super) role: Role,
}

/// Why a page was not rendered.
#[derive(Debug)]
pub(super) enum Refused {
    /// There is no such page, or it cannot be an address.
    NoPage,
    /// The page itself says so, as for an unknown job.
    ByPage(StatusCode, Option<Problem>),
}

impl Refused {
    /// Whether what the page was about is not there any more.
    pub(super) fn is_gone(&self) -> bool {
        match self {
            Self::NoPage => true,
            Self::ByPage(status, _) => status.is_client_error(),
        }
    }

    pub(super) fn response(self) -> Response {
        match self {
            Self::NoPage => Problem::bad(
                "This is no page that can be followed. `page` is a page's path with its query, relative to the \
                 overview, as in /events?page=jobs.",
            )
            .into_response(),
            Self::ByPage(_, Some(problem)) => problem.into_response(),
            Self::ByPage(status, None) => status.into_response(),
        }
    }
}

/// The pages, and nothing else: neither metrics nor API nor events.
pub(super) fn router(state: &State) -> Router {
    let no_page = || async {
        let mut response = StatusCode::NOT_FOUND.into_response();
        response.extensions_mut().insert(NoPage);
        response
    };
    let pages =
        pages::followed().into_iter().fold(Router::new(), |router, (pattern, route)| router.route(pattern, route));
    pages.fallback(no_page).layer(CatchPanicLayer::custom(layers::on_panic)).with_state(state.clone())
}

/// Renders a page and takes its regions. `last` is its rendering before this one.
pub(super) async fn render(router: &Router, seen: &Seen, last: Option<&Shot>) -> Result<Shot, Refused> {
    let Seen { address, role } = seen;
    let request = Request::builder().method(Method::GET).uri(address).extension(Identity::of_role(*role));
    let request = request.body(Body::empty()).map_err(|_| Refused::NoPage)?;
    let response = router.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
    let (mut parts, body) = response.into_parts();
    if parts.extensions.get::<NoPage>().is_some() {
        return Err(Refused::NoPage);
    }
    if parts.status != StatusCode::OK {
        return Err(Refused::ByPage(parts.status, parts.extensions.remove()));
    }
    let html = to_bytes(body, LARGEST).await.map_err(|error| {
        tracing::warn!(address, %error, "a live page is larger than any page should be");
        Refused::ByPage(StatusCode::INTERNAL_SERVER_ERROR, None)
    })?;
    Ok(Shot::new(&String::from_utf8_lossy(&html), last))
}
