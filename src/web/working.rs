//! The directories of jobs, for Java's daemons: `/ingestqueue/BATCH/JOB/{producer,system}/..`, on a listener of its
//! own.
//!
//! There is no login: every client of an allowed network reads the files of all jobs. Nothing is listed,
//! nothing is written, and only what a manifest may name is opened, beneath the working storage and through no link.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State as FromState};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use percent_encoding::percent_decode_str;
use queuekeeper_ingest::working::WorkingStorage;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use super::http::attachment::{MEDIA_TYPE, POLICY};
use super::http::connection::{self, MAX_CONNECTIONS, ServeOptions};
use super::http::layers;
use crate::config::Network;

/// The path of the working storage, as Merritt's programs know it.
pub const PATH: &str = "/ingestqueue/";

/// How much of a file is read at once, in bytes.
const PIECE: usize = 64 * 1024;

/// Serves the files of jobs on a listener until `shutdown`, to clients of these networks; of any where there are none.
/// Transfers in flight have `grace` to end then.
///
/// # Errors
/// When the task of the listener panicked.
pub async fn run(
    listener: TcpListener,
    working: WorkingStorage,
    networks: Vec<Network>,
    grace: Duration,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let options = ServeOptions { tls: None, networks, max_connections: MAX_CONNECTIONS, grace, shutdown };
    connection::serve(vec![listener], router(working), options).await
}

/// What is served, to every client that may connect.
pub fn router(working: WorkingStorage) -> Router {
    Router::new()
        .route(&format!("{PATH}{{*file}}"), get(answer))
        .layer(middleware::from_fn(layers::limit_head))
        .layer(CatchPanicLayer::custom(layers::on_panic))
        .with_state(Arc::new(working))
}

/// `GET` and `HEAD /ingestqueue/BATCH/JOB/{producer,system}/..`
async fn answer(FromState(working): FromState<Arc<WorkingStorage>>, request: Request) -> Response {
    let path = request.uri().path().strip_prefix(PATH).filter(|_| request.uri().query().is_none());
    let path = path.and_then(|path| percent_decode_str(path).decode_utf8().ok());
    let Some(path) = path.map(std::borrow::Cow::into_owned) else { return StatusCode::NOT_FOUND.into_response() };
    let opened = tokio::task::spawn_blocking(move || working.served_file(&path)).await.map_err(io::Error::other);
    let sent = opened.flatten().and_then(|opened| opened.map(|file| send(file, &request)).transpose());
    match sent {
        Ok(Some(response)) => response,
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot read a file of the working storage");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// A file, or a range of it.
fn send(mut file: File, request: &Request) -> io::Result<Response> {
    let facts = file.metadata()?;
    let size = facts.len();
    // A file appears whole, and another one in its place has another number or time.
    let tag = format!("\"{:x}-{:x}-{:x}-{size:x}\"", facts.ino(), facts.mtime(), facts.mtime_nsec());
    let mut response = Response::new(Body::empty());
    let (status, start, end) = match range(request.headers(), &tag, size) {
        None => (StatusCode::OK, 0, size),
        Some(Some((start, end))) => (StatusCode::PARTIAL_CONTENT, start, end),
        Some(None) => (StatusCode::RANGE_NOT_SATISFIABLE, 0, 0),
    };
    *response.status_mut() = status;
    let range = match status {
        StatusCode::PARTIAL_CONTENT => Some(format!("bytes {start}-{}/{size}", end - 1)),
        StatusCode::RANGE_NOT_SATISFIABLE => Some(format!("bytes */{size}")),
        _ => None,
    };
    let headers = [
        (header::CONTENT_TYPE, Some(MEDIA_TYPE.to_owned())),
        (header::CONTENT_SECURITY_POLICY, Some(POLICY.to_owned())),
        (header::X_CONTENT_TYPE_OPTIONS, Some("nosniff".to_owned())),
        (header::ACCEPT_RANGES, Some("bytes".to_owned())),
        (header::CONTENT_LENGTH, Some((end - start).to_string())),
        (header::ETAG, Some(tag)),
        (header::CONTENT_RANGE, range),
    ];
    for (name, value) in headers {
        if let Some(value) = value {
            response.headers_mut().insert(name, HeaderValue::try_from(value).map_err(io::Error::other)?);
        }
    }
    if request.method() == Method::GET && start < end {
        file.seek(SeekFrom::Start(start))?;
        *response.body_mut() = Body::from_stream(pieces(file, end - start));
    }
    Ok(response)
}

/// The range of bytes that is requested: `None` for all of it, which also answers what is in no form that is known
/// here; `Some(None)` where there is no such range.
#[expect(clippy::option_option, reason = "there are three answers")]
fn range(headers: &HeaderMap, tag: &str, size: u64) -> Option<Option<(u64, u64)>> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let (first, last) = text(header::RANGE)?.strip_prefix("bytes=")?.split_once('-')?;
    if text(header::IF_RANGE).is_some_and(|known| known != tag) {
        return None;
    }
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    let (start, end) = match (first, last) {
        ("", last) => (size.saturating_sub(number(last)?), size),
        (first, "") => (number(first)?, size),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            (first, last.saturating_add(1).min(size))
        }
    };
    Some((start < end).then_some((start, end)))
}

/// The next bytes of a file, a piece at a time. A file that is cut meanwhile ends the connection: fewer bytes were
/// promised to come.
fn pieces(file: File, bytes: u64) -> impl Stream<Item = io::Result<Bytes>> {
    let file = tokio::fs::File::from_std(file).take(bytes);
    stream::try_unfold(file, |mut file| async {
        let mut piece = BytesMut::with_capacity(PIECE);
        let read = file.read_buf(&mut piece).await?;
        Ok((read > 0).then(|| (piece.freeze(), file)))
    })
}

#[cfg(test)]
mod tests;
