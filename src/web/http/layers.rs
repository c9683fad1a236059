//! The layers around every route: counting, limits, compression, panics.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State as FromState};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::Limited;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use super::context::HttpContext;
use super::problem::Refused;
use crate::alerts::MAX_MESSAGE_BYTES;
use crate::metrics::http::REFUSED;
use crate::web::routes::{ALERTS, DEPOSITS, POSTER_ROOT, STORE_EVENTS, SUBMIT};

/// The largest request head, in bytes. One read may return more, so that [`limit_head`] measures it again.
pub(super) const HEAD_BYTES: usize = 32 * 1024;

/// The largest body of a request, in bytes; a message from Alertmanager or a store may carry many alerts or changes, up
/// to [`MAX_MESSAGE_BYTES`].
const BODY_LIMIT: usize = 64 * 1024;

/// How long a handler may take until the request is answered with 503.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Bodies below this size are not worth compressing, in bytes.
const COMPRESS_ABOVE: u64 = 4 * 1024;

/// Counts the request and times it.
pub(in crate::web) async fn count(
    FromState(context): FromState<Arc<HttpContext>>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let response = next.run(request).await;
    let (code, duration) = (response.status().as_u16(), started.elapsed());
    let route = if response.extensions().get::<Refused>().is_some() {
        Some(REFUSED)
    } else {
        // Redirects to the prefix count as their targets.
        let below = |path| match context.strip_prefix(path) {
            Some("") | None => "/",
            Some(route) => route,
        };
        route.as_ref().map(MatchedPath::as_str).map(below)
    };
    context.server.metrics.observe(route, method.as_str(), code, duration);
    tracing::debug!(route, %method, code, duration_ms = duration.as_secs_f64() * 1000.0, "handled a request");
    response
}

/// Refuses a request head above the limit, measured without optional white space.
pub(in crate::web) async fn limit_head(request: Request, next: Next) -> Response {
    let (line, empty) = (" ".len() + " HTTP/1.1\r\n".len(), "\r\n".len());
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let bytes =
        request.method().as_str().len() + request.uri().to_string().len() + line + fields.sum::<usize>() + empty;
    if bytes > HEAD_BYTES {
        return StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response();
    }
    next.run(request).await
}

/// Limits the time and the body of a request, but of one that uploads content: that has limits of its own.
pub(in crate::web) async fn limit(
    FromState(context): FromState<Arc<HttpContext>>,
    request: Request,
    next: Next,
) -> Response {
    if uploads(&context, &request) {
        return next.run(request).await;
    }
    let Some(request) = limited(&context, request) else { return StatusCode::PAYLOAD_TOO_LARGE.into_response() };
    let answered = tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await;
    answered.unwrap_or_else(|_| StatusCode::SERVICE_UNAVAILABLE.into_response())
}

/// Whether a request may carry content of any size.
pub(super) fn uploads(context: &HttpContext, request: &Request) -> bool {
    let Some(path) = context.strip_prefix(request.uri().path()) else { return false };
    match *request.method() {
        Method::POST => path == SUBMIT || path.starts_with(POSTER_ROOT),
        Method::PATCH => {
            let id = path.strip_prefix(DEPOSITS).and_then(|rest| rest.strip_prefix('/'));
            id.is_some_and(|id| !id.contains('/'))
        }
        _ => false,
    }
}

/// A request with its limit; `None` for one whose `Content-Length` is above it. Chunked bodies are limited while they
/// are read.
fn limited(context: &HttpContext, request: Request) -> Option<Request> {
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let is_message = matches!(context.strip_prefix(request.uri().path()), Some(ALERTS | STORE_EVENTS));
    let limit = if is_message { MAX_MESSAGE_BYTES } else { BODY_LIMIT };
    if length.is_some_and(|length: u64| length > limit as u64) {
        return None;
    }
    Some(request.map(|body| Body::new(Limited::new(body, limit))))
}

/// Passes requests whose host is a name of this server.
pub(in crate::web) async fn check_host(
    FromState(context): FromState<Arc<HttpContext>>,
    request: Request,
    next: Next,
) -> Response {
    match context.server.hosts.refusal(&request) {
        None => next.run(request).await,
        Some(problem) => problem.refuse(),
    }
}

/// Compresses large responses for clients that accept it, as fast as possible, since a scrape waits for it. Event
/// streams are not compressed: the compressor would hold events back until it has enough of them. Nor are downloads:
/// their length, by which a client sees that they are whole, would be lost.
pub(in crate::web) fn compression() -> CompressionLayer<impl Predicate> {
    let is_download = NotForContentType::const_new("application/octet-stream");
    let is_worth_it = SizeAbove::new(COMPRESS_ABOVE).and(NotForContentType::SSE).and(is_download);
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(is_worth_it)
}

/// Logs a panic of a handler and answers 500 without a detail.
#[expect(clippy::needless_pass_by_value, reason = "the layer hands the payload over")]
pub(in crate::web) fn on_panic(payload: Box<dyn Any + Send>) -> Response {
    let message = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    tracing::error!(panic = message, "a handler panicked");
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}
