//! How many rows a page has.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::web::http::params::pairs_of;
use crate::web::http::problem::Problem;

/// The most rows of a page: with texts as they are found in production it is below 60 KB.
pub(super) const MOST: usize = 50;

/// Refuses a page of more rows than a browser should be sent at once; the API takes more.
pub(super) async fn few(request: Request, next: Next) -> Response {
    // As the page itself will read it: its name may be written in escapes. What is no query, the page refuses.
    let pairs = pairs_of(request.uri().query().unwrap_or_default()).unwrap_or_default();
    let limit = pairs.iter().filter(|(name, _)| name == "limit").find_map(|(_, limit)| limit.parse::<usize>().ok());
    match limit {
        Some(limit) if limit > MOST => {
            let detail = format!("A page has at most {MOST} rows; the API returns 1 to 500 at once.");
            Problem::bad(detail).allowing([format!("1 to {MOST}")]).into_response()
        }
        Some(_) | None => next.run(request).await,
    }
}
