//! An origin: an HTTP server with files, for tests of what fetches them, with faults on purpose.
//!
//! It serves ranges, conditional ones too, and `HEAD`. Faults wait in a queue for each path, and each meets one
//! request.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, LOCATION, RANGE,
    RETRY_AFTER,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};
use tokio_util::task::AbortOnDropHandle;

use crate::flush::{Flushes, Flushing};

/// How large the pieces of a body are, in bytes.
const PIECE: usize = 16 * 1024;

/// What happens to one request.
#[derive(Clone, Debug)]
pub enum OriginFault {
    /// The connection is cut after so many bytes of the body.
    Cut(usize),
    /// The answer is an error with this status, and with `Retry-After` where there is one.
    Status(u16, Option<&'static str>),
    /// The answer leads to another URL; `None` leaves the header out.
    Redirect(Option<String>),
    /// `Content-Length` is off by so many bytes.
    LengthOffBy(i64),
    /// All is sent, whatever part was requested.
    IgnoreRange,
    /// Another part than the requested one is sent.
    WrongRange,
    /// There is a wait before each piece of the body.
    Slow(Duration),
    /// The body never ends, nor goes on, after so many bytes.
    Stall(usize),
    /// There is no `Content-Length`, and the body has so many bytes more than the file.
    Chunked(usize),
    /// The answer says that it is compressed.
    Encoded,
    /// The content is another one from this request on.
    Replace(Bytes),
}

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginRequest {
    /// The method.
    pub method: Method,
    /// The path with its query.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
}

#[derive(Default)]
struct State {
    files: HashMap<String, (Bytes, bool)>,
    faults: HashMap<String, VecDeque<OriginFault>>,
    requests: Vec<OriginRequest>,
}

/// A running origin; it ends when dropped, with all its connections.
pub struct Origin {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _task: AbortOnDropHandle<()>,
}

impl Origin {
    /// Starts an origin without files on the loopback interface.
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let task = tokio::spawn(accept(listener, Arc::clone(&state)));
        Self { address, state, _task: AbortOnDropHandle::new(task) }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path, which begins with a slash.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Serves a file; its entity tag is made of its content.
    pub fn serve(&self, path: &str, content: impl Into<Bytes>) {
        self.state.lock().files.insert(path.to_owned(), (content.into(), true));
    }

    /// Serves a file without an entity tag.
    pub fn serve_without_tag(&self, path: &str, content: impl Into<Bytes>) {
        self.state.lock().files.insert(path.to_owned(), (content.into(), false));
    }

    /// Lets faults meet the next requests for a path, one each.
    pub fn fail(&self, path: &str, faults: impl IntoIterator<Item = OriginFault>) {
        self.state.lock().faults.entry(path.to_owned()).or_default().extend(faults);
    }

    /// The requests so far, which are forgotten.
    #[must_use]
    pub fn take_requests(&self) -> Vec<OriginRequest> {
        std::mem::take(&mut self.state.lock().requests)
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    loop {
        // A client may be gone before it is accepted, which says nothing of the listener.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let flushes = Arc::new(Flushes::default());
        let stream = TokioIo::new(Flushing::new(stream, Arc::clone(&flushes)));
        let state = Arc::clone(&state);
        let each = service_fn(move |request| {
            let mut answer = answer(&request, &mut state.lock());
            answer.body_mut().watch(Arc::clone(&flushes));
            async move { Ok::<_, Infallible>(answer) }
        });
        connections.spawn(async move {
            // What ends a connection is a fault on purpose or the client's leaving.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(stream, each).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

fn answer(request: &Request<Incoming>, state: &mut State) -> Response<OriginBody> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let headers = request.headers().clone();
    state.requests.push(OriginRequest { method: request.method().clone(), path: path.clone(), headers });
    let fault = state.faults.get_mut(&path).and_then(VecDeque::pop_front);
    if let Some(OriginFault::Replace(content)) = &fault
        && let Some(file) = state.files.get_mut(&path)
    {
        file.0 = content.clone();
    }
    match &fault {
        Some(OriginFault::Status(status, retry_after)) => {
            let mut answer = empty(StatusCode::from_u16(*status).unwrap());
            answer.headers_mut().extend(retry_after.map(|text| (RETRY_AFTER, HeaderValue::from_static(text))));
            return answer;
        }
        Some(OriginFault::Redirect(to)) => {
            let mut answer = empty(StatusCode::FOUND);
            answer.headers_mut().extend(to.as_ref().map(|to| (LOCATION, HeaderValue::from_str(to).unwrap())));
            return answer;
        }
        _ => {}
    }
    let Some((content, has_tag)) = state.files.get(&path) else { return empty(StatusCode::NOT_FOUND) };
    file(request, content, *has_tag, fault.as_ref())
}

fn empty(status: StatusCode) -> Response<OriginBody> {
    let mut answer = Response::new(OriginBody::default());
    *answer.status_mut() = status;
    answer
}

fn file(
    request: &Request<Incoming>,
    content: &Bytes,
    has_tag: bool,
    fault: Option<&OriginFault>,
) -> Response<OriginBody> {
    let tag = format!("\"{:08x}\"", crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, content));
    let header = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let is_same = header(IF_RANGE).is_none_or(|known| has_tag && known == tag);
    let range = header(RANGE).filter(|_| is_same && !matches!(fault, Some(OriginFault::IgnoreRange)));
    let range = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let mut answer = empty(StatusCode::OK);
    let mut body = content.clone();
    if let Some((start, end)) = range {
        let start: usize = start.parse().unwrap();
        if start >= content.len() {
            let mut answer = empty(StatusCode::RANGE_NOT_SATISFIABLE);
            answer.headers_mut().insert(CONTENT_RANGE, format!("bytes */{}", content.len()).try_into().unwrap());
            return answer;
        }
        let end = end.parse().map_or(content.len(), |end: usize| (end + 1).min(content.len()));
        let start = if matches!(fault, Some(OriginFault::WrongRange)) { start - 1 } else { start };
        body = content.slice(start..end);
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
        let range = format!("bytes {start}-{}/{}", end - 1, content.len());
        answer.headers_mut().insert(CONTENT_RANGE, range.try_into().unwrap());
    }
    let mut length = Some(i64::try_from(body.len()).unwrap());
    let mut sent = OriginBody::default();
    match fault {
        Some(OriginFault::Cut(after)) => {
            body.truncate(*after);
            sent.end = End::Cut;
        }
        Some(OriginFault::Stall(after)) => {
            body.truncate(*after);
            sent.end = End::Never;
        }
        Some(OriginFault::LengthOffBy(by)) => {
            length = length.map(|length| length + *by);
            // The server's library ends a connection whose body is too short.
            sent.end = if *by > 0 { End::Cut } else { End::Whole };
            body.truncate(usize::try_from(length.unwrap_or_default()).unwrap());
        }
        Some(OriginFault::Chunked(more)) => {
            length = None;
            body = [&body[..], &vec![b'+'; *more]].concat().into();
        }
        Some(OriginFault::Encoded) => {
            answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        Some(OriginFault::Slow(pause)) => sent.pause = Some(*pause),
        _ => {}
    }
    if let Some(length) = length {
        answer.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    if has_tag {
        answer.headers_mut().insert(ETAG, tag.try_into().unwrap());
    }
    answer.headers_mut().insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if request.method() != Method::HEAD {
        sent.rest = body;
        *answer.body_mut() = sent;
    }
    answer
}

#[derive(Clone, Copy, Default)]
enum End {
    #[default]
    Whole,
    Cut,
    Never,
}

/// A body that is sent in pieces, and may end badly.
#[derive(Default)]
struct OriginBody {
    rest: Bytes,
    end: End,
    pause: Option<Duration>,
    sleeping: Option<Pin<Box<Sleep>>>,
    /// What came before a cut has to be on its way before the connection ends.
    flushes: Arc<Flushes>,
    /// How often was flushed when the last piece went through.
    flushed: u64,
}

impl OriginBody {
    fn watch(&mut self, flushes: Arc<Flushes>) {
        (self.flushed, self.flushes) = (flushes.count(), flushes);
    }
}

impl Body for OriginBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(pause) = self.pause {
            let sleeping = self.sleeping.get_or_insert_with(|| Box::pin(sleep(pause)));
            ready!(sleeping.as_mut().poll(cx));
            self.sleeping = None;
        }
        if !self.rest.is_empty() {
            let piece = self.rest.len().min(PIECE);
            self.flushed = self.flushes.count();
            return Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(piece)))));
        }
        match self.end {
            End::Whole => Poll::Ready(None),
            End::Cut => {
                ready!(self.flushes.poll_more(self.flushed, cx));
                Poll::Ready(Some(Err(io::Error::other("the connection is cut on purpose"))))
            }
            End::Never => Poll::Pending,
        }
    }
}
