//! The directories of jobs, for Java's daemons: `/ingestqueue/BATCH/JOB/{producer,system}/..`, on a listener of its own.
//!
//! There is no login: every client of an allowed network reads the files of all jobs. Nothing is listed,
//! nothing is written, and only what a manifest may name is opened, beneath the working storage and through no link.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use queuekeeper_ingest::directory::WorkingStorage;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::http::attachment::{MEDIA_TYPE, POLICY};
use super::http::connection::write_timeout::WriteTimeout;
use crate::config::Network;

/// The path of the working storage, as Merritt's programs know it.
pub const PATH: &str = "/ingestqueue/";

/// How many connections are open at once; more wait in the kernel's accept queue.
const MAX_CONNECTIONS: usize = 64;

/// How long a connection may take to send a complete request head, the first one or the next.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest request head, in bytes.
const HEAD_BYTES: usize = 32 * 1024;

/// How long requests in flight may take after shutdown was requested.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// How long a listener waits after it could not accept a connection.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// How much of a file is read at once, in bytes.
const PIECE: usize = 64 * 1024;

/// Serves the files of jobs on a listener until `shutdown`, to clients of these networks; of any where there are none.
pub async fn run(listener: TcpListener, working: WorkingStorage, networks: Vec<Network>, shutdown: CancellationToken) {
    let (working, slots) = (Arc::new(working), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
    let is_allowed = |peer: IpAddr| networks.is_empty() || networks.iter().any(|network| network.contains(peer));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = async {
            let slot = Arc::clone(&slots).acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((listener.accept().await?, slot))
        };
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok(((stream, peer), slot)) if is_allowed(peer.ip().to_canonical()) => {
                let (working, shutdown) = (Arc::clone(&working), shutdown.clone());
                connections.spawn(async move {
                    if let Err(error) = serve(stream, working, shutdown).await {
                        // Clients that disconnect or send invalid data are not errors of this server.
                        tracing::debug!(%error, %peer, "a connection to the working storage failed");
                    }
                    drop(slot);
                });
            }
            Ok(((_, peer), _)) => {
                tracing::warn!(%peer, "refused to serve the working storage to a network that is not allowed");
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_BACKOFF).await;
            }
        }
    }
    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    // Those that are left are closed with the set.
    let _ = tokio::time::timeout(SHUTDOWN_GRACE, finished).await;
}

async fn serve(
    stream: TcpStream,
    working: Arc<WorkingStorage>,
    shutdown: CancellationToken,
) -> Result<(), hyper::Error> {
    let service = service_fn(move |request: Request<Incoming>| {
        let working = Arc::clone(&working);
        async move { Ok::<_, Infallible>(answer(&working, &request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(WriteTimeout::new(stream)), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    }
}

/// `GET` and `HEAD /ingestqueue/BATCH/JOB/{producer,system}/..`
async fn answer(working: &Arc<WorkingStorage>, request: &Request<Incoming>) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")]).into_response();
    }
    let path = request.uri().path().strip_prefix(PATH).filter(|_| request.uri().query().is_none());
    let path = path.and_then(|path| percent_decode_str(path).decode_utf8().ok());
    let Some(path) = path.map(std::borrow::Cow::into_owned) else { return StatusCode::NOT_FOUND.into_response() };
    let storage = Arc::clone(working);
    let opened = tokio::task::spawn_blocking(move || storage.served_file(&path)).await.map_err(io::Error::other);
    let sent = opened.flatten().and_then(|opened| opened.map(|file| send(file, request)).transpose());
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
fn send(mut file: File, request: &Request<Incoming>) -> io::Result<Response> {
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

/// The range of bytes that is requested: `None` for all of it, which also answers what is in no form that is known here;
/// `Some(None)` where there is no such range.
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

/// The next bytes of a file, a piece at a time. A file that is cut meanwhile ends the connection: fewer bytes were promised
/// to come.
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
