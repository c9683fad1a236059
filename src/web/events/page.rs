//! Rendering a page as a browser would get it.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use tower::ServiceExt as _;
use tower_http::catch_panic::CatchPanicLayer;

use super::regions::Snapshot;
use crate::actions::Role;
use crate::web::http::identity::Identity;
use crate::web::http::layers;
use crate::web::http::problem::Problem;
use crate::web::pages;
use crate::web::state::State;

/// The largest page, in bytes.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Marks the response to an address that is not a page.
#[derive(Clone, Copy, Debug)]
struct NotAPage;

/// A page as readers of one role see it: the role decides which buttons there are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageView {
    /// Its path with its query.
    pub(super) address: String,
    /// The role of its readers.
    pub(super) role: Role,
}

/// Why a page was not rendered.
#[derive(Debug)]
pub(super) enum RenderError {
    /// There is no such page, or the address is invalid.
    NotAPage,
    /// The page answered with an error, as for an unknown job.
    ByPage(StatusCode, Option<Problem>),
}

impl RenderError {
    /// Whether the subject of the page does not exist any more.
    pub(super) fn is_gone(&self) -> bool {
        match self {
            Self::NotAPage => true,
            Self::ByPage(status, _) => status.is_client_error(),
        }
    }

    pub(super) fn response(self) -> Response {
        match self {
            Self::NotAPage => Problem::bad(
                "This is not a live page. `page` is the path and query of a page, relative to the overview, as in \
                 /events?page=jobs.",
            )
            .into_response(),
            Self::ByPage(_, Some(problem)) => problem.into_response(),
            Self::ByPage(status, None) => status.into_response(),
        }
    }
}

/// The router of the live pages only.
pub(super) fn router(state: &State) -> Router {
    let no_page = || async {
        let mut response = StatusCode::NOT_FOUND.into_response();
        response.extensions_mut().insert(NotAPage);
        response
    };
    let pages =
        pages::followed().into_iter().fold(Router::new(), |router, (pattern, route)| router.route(pattern, route));
    pages.fallback(no_page).layer(CatchPanicLayer::custom(layers::on_panic)).with_state(state.clone())
}

/// Renders a page and takes its regions. `last` is its rendering before this one.
pub(super) async fn render(router: &Router, view: &PageView, last: Option<&Snapshot>) -> Result<Snapshot, RenderError> {
    let PageView { address, role } = view;
    let request = Request::builder().method(Method::GET).uri(address).extension(Identity::of_role(*role));
    let request = request.body(Body::empty()).map_err(|_| RenderError::NotAPage)?;
    let response = router.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
    let (mut parts, body) = response.into_parts();
    if parts.extensions.get::<NotAPage>().is_some() {
        return Err(RenderError::NotAPage);
    }
    if parts.status != StatusCode::OK {
        return Err(RenderError::ByPage(parts.status, parts.extensions.remove()));
    }
    let html = to_bytes(body, MAX_BYTES).await.map_err(|error| {
        tracing::warn!(address, %error, "a live page is too large");
        RenderError::ByPage(StatusCode::INTERNAL_SERVER_ERROR, None)
    })?;
    Ok(Snapshot::new(&String::from_utf8_lossy(&html), last))
}
