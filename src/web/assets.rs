//! What the pages are made with, served from the binary itself.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Where the style sheet is.
pub(super) const CSS_ROUTE: &str = "/static/queuekeeper.css";

/// Where the script is that keeps pages live.
pub(super) const LIVE_ROUTE: &str = "/static/live.js";

/// Where the icon is.
pub(super) const ICON_ROUTE: &str = "/static/queuekeeper.svg";

/// `GET /static/queuekeeper.css`.
pub(super) async fn css(headers: HeaderMap) -> Response {
    serve(&headers, "text/css; charset=utf-8", include_str!("../../static/queuekeeper.css"))
}

/// `GET /static/live.js`.
pub(super) async fn live(headers: HeaderMap) -> Response {
    serve(&headers, "text/javascript; charset=utf-8", include_str!("../../static/live.js"))
}

/// `GET /static/queuekeeper.svg`.
pub(super) async fn icon(headers: HeaderMap) -> Response {
    serve(&headers, "image/svg+xml", include_str!("../../static/queuekeeper.svg"))
}

fn serve(headers: &HeaderMap, content_type: &'static str, content: &'static str) -> Response {
    // A binary with another content has another tag. It is weak, because the bytes differ when they are compressed.
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    let tag = format!("W/\"{:016x}\"", hasher.finish());
    let known = headers.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let is_known = known.is_some_and(|tags| tags.split(',').any(|known| known.trim() == tag));
    // `no-cache` lets a browser keep it and makes it ask, so that a new binary is never seen in old clothes.
    let caching = [(header::ETAG, tag), (header::CACHE_CONTROL, "no-cache".to_owned())];
    if is_known {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, [(header::CONTENT_TYPE, content_type)], content).into_response()
}
