//! The links of access requests: archives, for any client with the link, until it expires.

use axum::body::Body;
use axum::extract::{Path, State as FromState};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use futures::TryStreamExt as _;
use jiff::Timestamp;
use queuekeeper_ingest::access::{LinkError, OpenedDelivery};

use super::http::attachment::{MEDIA_TYPE, POLICY, disposition};
use super::http::problem::Problem;
use super::routes::DELIVERY;
use super::state::State;
use crate::config::RepositoryParts;

/// Behind the end of any archive.
const END: u64 = i64::MAX as u64;

/// The route of a server that answers links.
pub(super) fn routes(has: RepositoryParts) -> impl Iterator<Item = (&'static str, MethodRouter<State>)> {
    has.deliveries.then(|| (DELIVERY, get(download))).into_iter()
}

/// `GET /access/download/EXPIRES/SIGNATURE/NAME`: an archive, or the rest of it from a byte on.
async fn download(
    FromState(state): FromState<State>,
    Path((expires, signature, name)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let deliveries = state.deliveries()?;
    let from = rest_from(&headers, &name);
    let opened = deliveries.open((&expires, &signature, &name), from.map(|from| from..END), Timestamp::now()).await;
    Ok(response(opened.map_err(problem)?, from, &name))
}

/// Where a client that has the beginning wants to go on. What else `Range` may say is answered with all of it.
fn rest_from(headers: &HeaderMap, name: &str) -> Option<u64> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let from = text(header::RANGE)?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()?;
    // An archive is never another one under the same name.
    let is_same = text(header::IF_RANGE).is_none_or(|tag| tag == entity_tag(name));
    Some(from).filter(|from| is_same && *from < END)
}

fn entity_tag(name: &str) -> String {
    format!("\"{name}\"")
}

fn response(opened: OpenedDelivery, from: Option<u64>, name: &str) -> Response {
    let OpenedDelivery { name: shown, content } = opened;
    let (size, from_byte) = (content.properties.size, from.unwrap_or(0));
    let chunks = content.chunks.inspect_err(|error| tracing::error!("a download ends early: {error}"));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE)),
        (header::CONTENT_LENGTH, HeaderValue::from(size.saturating_sub(from_byte))),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
    ];
    let status = if from.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut response = (status, headers, Body::from_stream(chunks)).into_response();
    let range = from.map(|from| format!("bytes {from}-{}/{size}", size.saturating_sub(1)));
    let more = [
        (header::CONTENT_DISPOSITION, Some(disposition(&shown))),
        (header::ETAG, Some(entity_tag(name))),
        (header::CONTENT_RANGE, range),
    ];
    for (header, value) in more {
        // They are ASCII by how they are made.
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            response.headers_mut().insert(header, value);
        }
    }
    response
}

fn problem(error: LinkError) -> Problem {
    let why = error.to_string();
    match error {
        LinkError::Invalid => Problem::missing(why),
        LinkError::Expired => Problem::new(StatusCode::GONE, why),
        LinkError::Range(size) => {
            let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, why);
            match HeaderValue::from_str(&format!("bytes */{size}")) {
                Ok(value) => problem.with(header::CONTENT_RANGE, value),
                Err(_) => problem,
            }
        }
        LinkError::Store(error) => {
            tracing::error!("cannot read a delivered archive: {error}");
            let why = "The archive cannot be read from its store; the server's log has the cause.";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, why)
        }
    }
}
