//! A service of identifiers that behaves as EZID's API, version 2: ANVL over HTTP with Basic authentication.
//!
//! It is strict: a body that a sloppy writer would make is refused. Faults wait in a queue, and each meets one request
//! that changes something.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// The names and values of an identifier.
pub type Metadata = BTreeMap<String, String>;

/// What happens to one request that changes something.
#[derive(Clone, Debug)]
pub enum EzidFault {
    /// Nothing: it is done and answered, and the next fault meets the next request.
    None,
    /// The answer is an error with this status, and nothing is done.
    Status(u16),
    /// It is done, and there is never an answer.
    NoAnswer,
    /// Just before, another client creates the identifier with this metadata.
    Taken(Metadata),
}

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EzidRequest {
    /// The method.
    pub method: Method,
    /// The path with its query.
    pub path: String,
    /// The status of its answer.
    pub status: u16,
}

struct State {
    /// What `Authorization` must be.
    login: String,
    identifiers: BTreeMap<String, Metadata>,
    faults: VecDeque<EzidFault>,
    requests: Vec<EzidRequest>,
    /// How many names it has made.
    minted: u64,
    /// Whether it takes no names of others.
    mints_only: bool,
}

/// A running service; it ends when dropped, with all its connections.
pub struct Ezid {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _task: AbortOnDropHandle<()>,
}

impl Ezid {
    /// Starts a service without identifiers on the loopback interface, for one user.
    pub async fn start(username: &str, password: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let login = format!("Basic {}", STANDARD.encode(format!("{username}:{password}")));
        let (identifiers, faults, requests) = (BTreeMap::new(), VecDeque::new(), Vec::new());
        let state = Arc::new(Mutex::new(State { login, identifiers, faults, requests, minted: 0, mints_only: false }));
        let task = tokio::spawn(accept(listener, Arc::clone(&state)));
        Self { address, state, _task: AbortOnDropHandle::new(task) }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its identifiers with their metadata.
    #[must_use]
    pub fn identifiers(&self) -> BTreeMap<String, Metadata> {
        self.state.lock().identifiers.clone()
    }

    /// Lets faults meet the next requests that change something, one each.
    pub fn fail(&self, faults: impl IntoIterator<Item = EzidFault>) {
        self.state.lock().faults.extend(faults);
    }

    /// From now on it makes names itself, and takes none of others.
    pub fn mint_only(&self) {
        self.state.lock().mints_only = true;
    }

    /// The requests so far, which are forgotten.
    #[must_use]
    pub fn take_requests(&self) -> Vec<EzidRequest> {
        std::mem::take(&mut self.state.lock().requests)
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    loop {
        // A client may be gone before it is accepted, which says nothing of the listener.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let state = Arc::clone(&state);
        let each = service_fn(move |request| {
            let state = Arc::clone(&state);
            async move { Ok::<_, Infallible>(answer(request, &state).await) }
        });
        connections.spawn(async move {
            // What ends a connection is the client's leaving.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), each).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(request: Request<Incoming>, state: &Mutex<State>) -> Response<String> {
    let (head, mut body) = request.into_parts();
    let mut content = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await {
        content.extend(frame.ok().and_then(|frame| frame.into_data().ok()).unwrap_or_default());
    }
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let is_change = head.method != Method::GET;
    let fault = if is_change { state.lock().faults.pop_front() } else { None };
    let (status, text) = {
        let state = &mut *state.lock();
        let is_known = head.headers.get(AUTHORIZATION).is_some_and(|login| login.as_bytes() == state.login.as_bytes());
        match &fault {
            Some(EzidFault::Status(status)) => (*status, "error: out of order, on purpose".to_owned()),
            _ if is_change && !is_known => (401, "error: unauthorized".to_owned()),
            fault => {
                if let (Some(EzidFault::Taken(metadata)), Some(ark)) = (fault, path.strip_prefix("/id/")) {
                    state.identifiers.insert(ark.to_owned(), metadata.clone());
                }
                let is_text = head
                    .headers
                    .get(CONTENT_TYPE)
                    .is_some_and(|found| found.as_bytes().eq_ignore_ascii_case(b"text/plain; charset=utf-8"));
                if is_change && !is_text {
                    (400, "error: bad request - unsupported content type".to_owned())
                } else {
                    done(state, &head.method, &path, &content)
                }
            }
        }
    };
    state.lock().requests.push(EzidRequest { method: head.method, path, status });
    if matches!(fault, Some(EzidFault::NoAnswer)) {
        return pending().await;
    }
    let mut answer = Response::new(text);
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=UTF-8"));
    answer
}

/// What is done, with the status and the text of the answer.
fn done(state: &mut State, method: &Method, path: &str, content: &[u8]) -> (u16, String) {
    let bad = |why: &str| (400, format!("error: bad request - {why}"));
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let metadata = if *method == Method::GET { Some(Metadata::new()) } else { parse(content) };
    let Some(metadata) = metadata else { return bad("ANVL parse error") };
    if let Some(why) = wrong(&metadata) {
        return bad(why);
    }
    if let Some(shoulder) = path.strip_prefix("/shoulder/") {
        if *method != Method::POST {
            return (405, "error: method not allowed".to_owned());
        }
        if !is_ark(shoulder) {
            return bad("invalid shoulder");
        }
        state.minted += 1;
        let ark = format!("{shoulder}{}", state.minted);
        state.identifiers.insert(ark.clone(), metadata);
        return (201, format!("success: {ark}"));
    }
    let Some(ark) = path.strip_prefix("/id/") else { return (404, "error: not found".to_owned()) };
    if !is_ark(ark) {
        return bad("invalid identifier");
    }
    let is_there = state.identifiers.contains_key(ark);
    match *method {
        Method::PUT if is_there && query != "update_if_exists=yes" => bad("identifier already exists"),
        // What is public stays so.
        Method::PUT | Method::POST if is_there && is_reserved(&metadata) && !is_reserved(&state.identifiers[ark]) => {
            bad("invalid identifier status change")
        }
        Method::PUT | Method::POST if is_there => {
            state.identifiers.entry(ark.to_owned()).or_default().extend(metadata);
            (200, format!("success: {ark}"))
        }
        Method::PUT if state.mints_only => (403, "error: forbidden".to_owned()),
        Method::PUT => {
            state.identifiers.insert(ark.to_owned(), metadata);
            (201, format!("success: {ark}"))
        }
        Method::GET | Method::POST if !is_there => bad("no such identifier"),
        Method::GET => {
            let lines = state.identifiers[ark]
                .iter()
                .map(|(name, value)| format!("{}: {}\n", escape(name, true), escape(value, false)));
            (200, format!("success: {ark}\n{}", lines.collect::<String>()))
        }
        _ => (405, "error: method not allowed".to_owned()),
    }
}

/// What is wrong with the elements that EZID itself reads, those that begin with a low line; nothing of most.
fn wrong(metadata: &Metadata) -> Option<&'static str> {
    metadata.iter().find_map(|(name, value)| match name.as_str() {
        "_target" => {
            let is_url = value.parse::<http::Uri>().is_ok_and(|url| url.scheme().is_some() && url.host().is_some());
            (!is_url).then_some("invalid target URL")
        }
        "_owner" => (value.is_empty() || value.contains(char::is_whitespace)).then_some("no such user"),
        "_status" => (!["public", "reserved"].contains(&value.as_str())).then_some("invalid identifier status"),
        "_profile" => (value != "erc").then_some("no such profile"),
        other => other.starts_with('_').then_some("element is not known, or cannot be set"),
    })
}

fn is_reserved(metadata: &Metadata) -> bool {
    metadata.get("_status").is_some_and(|status| status == "reserved")
}

/// `ark:/NAAN/NAME` in normal form, or the beginning of one.
fn is_ark(text: &str) -> bool {
    let has_parts = text.strip_prefix("ark:/").and_then(|rest| rest.split_once('/'));
    has_parts.is_some_and(|(naan, name)| naan.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty())
        && !text.contains(['%', '-'])
}

/// Reads ANVL as EZID does, and nothing that it would have to guess at.
fn parse(content: &[u8]) -> Option<Metadata> {
    let text = std::str::from_utf8(content).ok()?;
    let mut metadata = Metadata::new();
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        if line.contains('\r') || line.starts_with([' ', '#']) || name.trim().is_empty() {
            return None;
        }
        if metadata.insert(unescape(name.trim())?, unescape(value.trim())?).is_some() {
            return None;
        }
    }
    Some(metadata)
}

/// A percent sign stands before two digits, or it is refused.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

fn escape(text: &str, is_name: bool) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    if is_name { text.replace(':', "%3A") } else { text }
}
