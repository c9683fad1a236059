//! The headers of every response that protect its reader.

use std::sync::Arc;

use axum::extract::State as FromState;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;

use super::context::HttpContext;

/// Pages load scripts, style sheets and pictures from this server only; nothing inline runs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Headers of every response, besides the policy, of which a handler may have a stricter one. The referrer goes to this
/// server only; with `no-referrer`, browsers would send the requests of our own forms with `Origin: null` (Fetch,
/// "append a request Origin header").
const SECURITY_HEADERS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Adds security headers.
pub(in crate::web) async fn secure(
    FromState(context): FromState<Arc<HttpContext>>,
    mut response: Response,
) -> Response {
    let headers = response.headers_mut();
    for (name, value) in SECURITY_HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    if let Some(value) = context.web_file().as_ref().and_then(|file| file.strict_transport_security()) {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, value.clone());
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
