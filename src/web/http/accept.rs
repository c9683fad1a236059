//! What kind of response a client takes.

use axum::http::{HeaderMap, header};

/// Whether the client is a browser, which takes pages.
pub(in crate::web) fn wants_page(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    accepted.any(|accept| accept.to_str().is_ok_and(|accept| accept.contains("text/html")))
}
