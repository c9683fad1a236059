//! What every request and response passes.

use std::any::Any;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State as FromState};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use super::connection::HEAD_BYTES;
use super::problem::Problem;
use crate::metrics::http::REFUSED;
use crate::web::pages;
use crate::web::{ALERTS_LIMIT, BODY_LIMIT, State, api};

/// Bodies below this size are not worth compressing, in bytes.
const COMPRESS_ABOVE: u64 = 4 * 1024;

/// A page may use our own scripts, style sheets and pictures, and nothing from anywhere else or written into the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What is sent with every answer, whatever it is. Of the referrer nobody else hears anything; with none at all, browsers
/// would not say of a form's request that it comes from our own page (Fetch, "append a request Origin header").
const SAFE: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Below this, errors are problem documents.
const API: &str = "/api/";

/// Marks a response whose body already says what went wrong.
#[derive(Clone, Copy, Debug)]
pub(in crate::web) struct HasMessage;

/// Marks a response to a request that was refused before its route had anything to say.
#[derive(Clone, Copy, Debug)]
pub(in crate::web) struct Refused;

/// Counts the request and times it.
pub(in crate::web) async fn count(FromState(state): FromState<State>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let is_alert = method == Method::POST && is_at(&state, request.uri().path(), api::ALERTS);
    let response = next.run(request).await;
    let (code, duration) = (response.status().as_u16(), started.elapsed());
    let route = if response.extensions().get::<Refused>().is_some() {
        Some(REFUSED)
    } else {
        let prefix = state.shared.config.web.route_prefix.as_str();
        // The redirects to the prefix count as what they lead to.
        let below = |path| match strip(prefix, path) {
            Some("") | None => "/",
            Some(route) => route,
        };
        route.as_ref().map(MatchedPath::as_str).map(below)
    };
    if is_alert
        && matches!(code, 401 | 403 | 421)
        && let Some(alerts) = state.shared.alerts.get()
    {
        alerts.count_unauthorized();
    }
    state.shared.http.observe(route, method.as_str(), code, duration);
    tracing::debug!(route, %method, code, duration_ms = duration.as_secs_f64() * 1000.0, "a request was answered");
    response
}

/// Adds the headers that keep a browser from doing more with a response than showing it.
pub(in crate::web) async fn secure(FromState(state): FromState<State>, mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in SAFE {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Some(value) = state.web_file().as_ref().and_then(|file| file.strict_transport_security()) {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, value.clone());
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A path without the prefix before it; `None` for one that is not below it.
fn strip<'a>(prefix: &str, path: &'a str) -> Option<&'a str> {
    path.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path is below the API.
pub(in crate::web) fn is_api(state: &State, path: &str) -> bool {
    strip(state.shared.config.web.route_prefix.as_str(), path).is_some_and(|below| below.starts_with(API))
}

/// Refuses a head that is longer than any may be, as it would be written without optional spaces.
pub(in crate::web) async fn head(request: Request, next: Next) -> Response {
    let (line, empty) = (" ".len() + " HTTP/1.1\r\n".len(), "\r\n".len());
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let bytes =
        request.method().as_str().len() + request.uri().to_string().len() + line + fields.sum::<usize>() + empty;
    if bytes > HEAD_BYTES {
        return StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response();
    }
    next.run(request).await
}

/// Refuses a body that says itself that it is larger than its route takes. What says nothing of its size is cut by whoever
/// reads it.
pub(in crate::web) async fn limit(FromState(state): FromState<State>, request: Request, next: Next) -> Response {
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let most = if is_at(&state, request.uri().path(), api::ALERTS) { ALERTS_LIMIT } else { BODY_LIMIT };
    if length.is_some_and(|length: u64| length > most as u64) {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    }
    next.run(request).await
}

/// Whether a path is this one, below the prefix.
pub(in crate::web) fn is_at(state: &State, path: &str, route: &str) -> bool {
    strip(state.shared.config.web.route_prefix.as_str(), path) == Some(route)
}

/// Compresses what is large enough, for those who ask for it. A scrape is waited for, so speed counts more than size.
/// An event is waited for too, and would stay in the compressor until more come.
pub(in crate::web) fn compression() -> CompressionLayer<impl Predicate> {
    let is_worth_it = SizeAbove::new(COMPRESS_ABOVE).and(NotForContentType::SSE);
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(is_worth_it)
}

/// A handler that panics is logged here, and whoever asked is told no more than that it failed.
#[expect(clippy::needless_pass_by_value, reason = "the layer hands the payload over")]
pub(in crate::web) fn on_panic(payload: Box<dyn Any + Send>) -> Response {
    let message = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("without a message");
    tracing::error!(panic = message, "a handler panicked");
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

/// Gives every error a body that says what to do: a problem document below the API, a page for browsers, one line for
/// everything else.
pub(in crate::web) async fn describe_errors(
    FromState(state): FromState<State>,
    request: Request,
    next: Next,
) -> Response {
    let wants_page = request
        .headers()
        .get_all(header::ACCEPT)
        .iter()
        .any(|accept| accept.to_str().is_ok_and(|accept| accept.contains("text/html")));
    let path = request.uri().path().to_owned();
    let mut response = next.run(request).await;
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) || response.extensions().get::<HasMessage>().is_some() {
        return response;
    }
    let problem = response.extensions_mut().remove::<Problem>().unwrap_or_else(|| Problem::new(status, advice(status)));
    let prefix = state.shared.config.web.route_prefix.as_str();
    let below = strip(prefix, &path);
    let mut described = if below.is_some_and(|below| below.starts_with(API)) {
        problem.document()
    } else if wants_page {
        pages::error(&problem, below.unwrap_or(&path), below.is_none().then_some(prefix))
    } else {
        let body = Body::from(problem.line());
        (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response()
    };
    *described.extensions_mut() = std::mem::take(response.extensions_mut());
    // What the answer says besides, such as the methods that are allowed, is as true as before.
    for (name, value) in response.headers() {
        if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
            described.headers_mut().append(name, value.clone());
        }
    }
    described
}

/// What happened and what to do, in a sentence or two that holds nothing of the request.
fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "There is nothing at this address. The overview leads on to everything there is.",
        StatusCode::METHOD_NOT_ALLOWED => {
            "This address does not take that method. The header Allow of this answer says which it takes."
        }
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "The head of the request is longer than 32 KiB. Send less.",
        StatusCode::PAYLOAD_TOO_LARGE => "The request is larger than anything that is taken here. Send less.",
        StatusCode::SERVICE_UNAVAILABLE => "The answer took too long. Try again in a moment.",
        status if status.is_server_error() => {
            "Something failed here. The server's log says what; try again in a moment."
        }
        _ => "The request cannot be understood. Check its address and what it carries.",
    }
}
