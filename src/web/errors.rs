//! The bodies of error responses.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State as FromState};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::http::accept::wants_page;
use super::http::context::HttpContext;
use super::http::problem::{HasMessage, Problem};
use super::routes::{API_ROOT, POSTER_ROOT};
use super::{pages, poster};

/// Gives every error a body that says what to do: a problem document below the API, the state of a batch for programs
/// that deposit to Merritt, a page for browsers, one line for all other clients.
pub(super) async fn describe(
    FromState(context): FromState<Arc<HttpContext>>,
    request: Request,
    next: Next,
) -> Response {
    let (wants_page, accepts_xml) = (wants_page(request.headers()), poster::accepts_xml(request.headers()));
    let path = request.uri().path().to_owned();
    let query = request.uri().query().filter(|_| request.method() == Method::GET).unwrap_or_default().to_owned();
    let mut response = next.run(request).await;
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) || response.extensions().get::<HasMessage>().is_some() {
        return response;
    }
    let problem = response.extensions_mut().remove::<Problem>().unwrap_or_else(|| Problem::new(status, advice(status)));
    let below = context.strip_prefix(&path);
    let mut described = if below.is_some_and(|below| below.starts_with(API_ROOT)) {
        problem.document()
    } else if below.is_some_and(|below| below.starts_with(POSTER_ROOT)) {
        poster::failed(&problem, accepts_xml, "")
    } else if wants_page {
        pages::error::error(&problem, &context.config, (below, &path), &query)
    } else {
        let body = Body::from(problem.line());
        (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response()
    };
    *described.extensions_mut() = std::mem::take(response.extensions_mut());
    // Other headers, such as the methods that are allowed, stay valid.
    for (name, value) in response.headers() {
        if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
            described.headers_mut().append(name, value.clone());
        }
    }
    described
}

/// What happened and what to do, in a sentence or two that hold nothing of the request.
fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "There is no page at this address.",
        StatusCode::METHOD_NOT_ALLOWED => {
            "This address does not support that method. The Allow header lists the methods that it supports."
        }
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "The request head is larger than 32 KiB. Send less.",
        StatusCode::PAYLOAD_TOO_LARGE => "The request body is too large. Send less.",
        StatusCode::SERVICE_UNAVAILABLE => "The request timed out. Try again in a moment.",
        status if status.is_server_error() => "Internal error. See the server's log, or try again in a moment.",
        _ => "The request is malformed. Check its address, headers and body.",
    }
}
