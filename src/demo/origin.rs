//! The depositors' servers, one for each collection: they have the files and manifests that deposits name, are slow,
//! and sometimes faulty. They are called back, too.

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, RANGE, RETRY_AFTER};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::collections::{self, Collection, FILMS, Form};
use super::content::{Content, DemoObject};
use super::dice::Dice;
use super::fate::{self, Answer, FileFault};
use super::pace::Pace;
use super::scenario::{Submission, object_manifest};

/// How many manifests of batches are kept: those that no daemon has fetched yet are among the last.
const MANIFESTS: usize = 200;

/// How many faulty files are known.
const MOST_FAULTY: usize = 20_000;

/// In how many pieces a slow file is sent.
const PIECES: u32 = 24;

/// The largest piece, in bytes.
const MOST_PIECE: u64 = 1 << 20;

/// For how many seconds a large file is sent, at the natural rate; several are at a time.
const LARGE_SECONDS: f64 = 30.0;

/// The same with alerts: longer than the alert waits.
const LARGE_SECONDS_WITH_ALERTS: f64 = 60.0;

/// For how long at least, at any rate: a stall is to be seen.
const LEAST_LARGE: Duration = Duration::from_secs(8);

/// How many workers download what is not large.
pub(super) const WORKERS: usize = 4;

/// The running servers; they end when dropped.
pub(super) struct Origins {
    shared: Arc<Shared>,
    addresses: HashMap<&'static str, SocketAddr>,
    _servers: Vec<AbortOnDropHandle<()>>,
}

struct Shared {
    seed: u64,
    pace: Pace,
    alerts: bool,
    manifests: Mutex<VecDeque<(String, Vec<u8>)>>,
    /// How many requests came for each file that is faulty, or called back for.
    requests: Mutex<HashMap<String, u32>>,
    /// Until when the server of a collection is away.
    away: Mutex<Option<(&'static str, Instant)>>,
}

/// The server of one collection.
#[derive(Clone)]
struct Origin {
    shared: Arc<Shared>,
    collection: &'static Collection,
    address: SocketAddr,
}

impl Origins {
    /// Starts the servers on the loopback interface.
    ///
    /// # Errors
    /// When there is no port.
    pub(super) async fn start(seed: u64, pace: Pace, alerts: bool) -> std::io::Result<Self> {
        let (manifests, requests, away) = Default::default();
        let shared = Arc::new(Shared { seed, pace, alerts, manifests, requests, away });
        let (mut addresses, mut servers) = (HashMap::new(), Vec::new());
        for collection in collections::all() {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let address = listener.local_addr()?;
            let origin = Origin { shared: Arc::clone(&shared), collection, address };
            let routes = Router::new()
                .route("/{manifest}", get(manifest))
                .route("/{submission}/{object}", get(object))
                .route("/{submission}/{object}/{*file}", get(file))
                .route("/callbacks/mc/{job}", post(callback))
                .with_state(origin);
            let serve = axum::serve(listener, routes).into_future();
            servers.push(AbortOnDropHandle::new(tokio::spawn(async move {
                if let Err(error) = serve.await {
                    tracing::warn!(%error, collection = collection.mnemonic, "the server of a simulated depositor ended");
                }
            })));
            addresses.insert(collection.mnemonic, address);
        }
        Ok(Self { shared, addresses, _servers: servers })
    }

    /// The address of a collection's server.
    pub(super) fn address(&self, collection: &Collection) -> SocketAddr {
        self.addresses[collection.mnemonic]
    }

    /// Keeps the manifest of a submission for the daemon that fetches it.
    pub(super) fn keep(&self, submission: &Submission) {
        let origin = self.address(submission.of());
        let text = submission.manifest(self.shared.seed, origin).expect("the rows of the demo can be written");
        let mut manifests = self.shared.manifests.lock();
        manifests.push_back((format!("{}/{}", submission.collection, submission.manifest_name()), text));
        while manifests.len() > MANIFESTS {
            manifests.pop_front();
        }
    }

    /// Makes the server of a collection answer nothing but that it is busy, for a while.
    pub(super) fn go_away(&self, collection: &'static str, time: Duration) {
        *self.shared.away.lock() = Some((collection, Instant::now() + time));
    }
}

impl Origin {
    fn is_away(&self) -> bool {
        let away = *self.shared.away.lock();
        away.is_some_and(|(collection, until)| collection == self.collection.mnemonic && Instant::now() < until)
    }

    fn place<'a>(&self, submission: &'a str, object: &'a str) -> DemoObject<'a> {
        DemoObject { seed: self.shared.seed, collection: self.collection, submission, object }
    }

    /// How many requests came for it before, this one not counted.
    ///
    /// Counts are lost when there are too many: a fault that was over may then come again.
    fn count(&self, path: &str) -> u32 {
        let mut requests = self.shared.requests.lock();
        if requests.len() >= MOST_FAULTY {
            requests.clear();
        }
        let count = requests.entry(format!("{}{path}", self.collection.mnemonic)).or_default();
        *count += 1;
        *count - 1
    }

    /// For how long a file is sent.
    fn time(&self, path: &str) -> Duration {
        let Shared { seed, pace, alerts, .. } = *self.shared;
        let mut dice = Dice::new(seed, ("time", path));
        if self.collection.mnemonic != FILMS.mnemonic {
            return pace.work(WORKERS).mul_f64(dice.float(0.4, 1.6));
        }
        // They end soon one after the other, so that a stall ends once.
        let seconds = if alerts { LARGE_SECONDS_WITH_ALERTS } else { LARGE_SECONDS };
        pace.time(seconds).max(LEAST_LARGE).mul_f64(dice.float(0.95, 1.05))
    }

    /// Sends a file, or what is in its place while it has a fault.
    fn send(&self, submission: &str, path: &str, content: Content, request: &Request) -> Response {
        let fault = fate::of_file(self.shared.seed, submission, path).filter(|_| request.method() == Method::GET);
        let fault = fault.filter(|fate| self.count(path) < fate.requests).map(|fate| fate.fault);
        let (content, tag) = match fault {
            Some(FileFault::Gone) => return (StatusCode::NOT_FOUND, "there is no such file\n").into_response(),
            Some(FileFault::Expired) => return (StatusCode::FORBIDDEN, "this link has expired\n").into_response(),
            Some(FileFault::Busy) => return busy("1"),
            Some(FileFault::Damaged) => (content.damaged(), "\"damaged\""),
            Some(FileFault::Cut) | None => (content, "\"whole\""),
        };
        let cut = (fault == Some(FileFault::Cut)).then_some(content.size / 2);
        let from = range_start(request.headers()).filter(|from| *from < content.size);
        let (offset, size) = (from.unwrap_or(0), content.size);
        let mut response = Response::builder()
            .header(CONTENT_TYPE, "application/octet-stream")
            .header(CONTENT_LENGTH, size - offset)
            .header(ACCEPT_RANGES, "bytes")
            .header(ETAG, tag);
        if from.is_some() {
            response = response
                .status(StatusCode::PARTIAL_CONTENT)
                .header(CONTENT_RANGE, format!("bytes {offset}-{}/{size}", size - 1));
        }
        let pause = self.time(path) / PIECES;
        response.body(body(content, (offset, cut), pause)).expect("these headers are valid")
    }
}

/// What is left of a file from an offset on, in pieces with a pause before each; it breaks off where it is to be cut.
fn body(content: Content, (offset, cut): (u64, Option<u64>), pause: Duration) -> Body {
    let each = content.size.div_ceil(u64::from(PIECES)).clamp(1, MOST_PIECE);
    Body::from_stream(stream::unfold(offset, move |offset| {
        let content = content.clone();
        async move {
            if offset >= content.size {
                return None;
            }
            if cut.is_some_and(|cut| offset >= cut) {
                return Some((Err(std::io::Error::other("it is cut here on purpose")), content.size));
            }
            sleep(pause).await;
            let mut piece = Vec::new();
            while (piece.len() as u64) < each {
                let next = content.piece(offset + piece.len() as u64, each - piece.len() as u64);
                if next.is_empty() {
                    break;
                }
                piece.extend_from_slice(&next);
            }
            let next = offset + piece.len() as u64;
            Some((Ok(piece), next))
        }
    }))
}

/// The offset of `Range: bytes=N-`, which is the only form that the daemons send.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    headers.get(RANGE)?.to_str().ok()?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}

fn busy(seconds: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, seconds)], "come back later\n").into_response()
}

fn text(text: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

fn unknown() -> Response {
    (StatusCode::NOT_FOUND, "there is no such file\n").into_response()
}

/// The manifest of a submission.
async fn manifest(State(origin): State<Origin>, Path(name): Path<String>) -> Response {
    let name = format!("{}/{name}", origin.collection.mnemonic);
    let manifests = origin.shared.manifests.lock();
    let found = manifests.iter().rev().find(|(known, _)| *known == name).map(|(_, text)| text.clone());
    found.map_or_else(unknown, text)
}

/// An object: its file, container, or manifest.
async fn object(
    State(origin): State<Origin>,
    Path((submission, object)): Path<(String, String)>,
    request: Request,
) -> Response {
    if origin.is_away() {
        return busy("2");
    }
    let place = origin.place(&submission, &object);
    let content = match origin.collection.form {
        Form::File => place.files().pop().map(|(_, content)| content),
        Form::Container => Some(place.container()),
        Form::Manifest => return object_manifest(place, origin.address).map_or_else(|_| unknown(), text),
    };
    content.map_or_else(unknown, |content| origin.send(&submission, &place.path(), content, &request))
}

/// A file of an object that is a manifest.
async fn file(
    State(origin): State<Origin>,
    Path((submission, object, file)): Path<(String, String, String)>,
    request: Request,
) -> Response {
    if origin.is_away() {
        return busy("2");
    }
    let place = origin.place(&submission, &object);
    let content = place.files().into_iter().find(|(name, _)| *name == file).map(|(_, content)| content);
    let path = format!("{}/{file}", place.path());
    content.map_or_else(unknown, |content| origin.send(&submission, &path, content, &request))
}

/// A job has ended.
async fn callback(State(origin): State<Origin>, Path(job): Path<String>) -> Response {
    let path = format!("/callbacks/{job}");
    let answer = fate::of_callback(origin.shared.seed, &path);
    let before = if answer == Answer::Taken { 0 } else { origin.count(&path) };
    let status = match (answer, before) {
        (Answer::RefusedOnce, 0) => StatusCode::FORBIDDEN,
        (Answer::AwayTwice, 0..2) => StatusCode::BAD_GATEWAY,
        (Answer::RefusedOnce | Answer::AwayTwice | Answer::Taken, _) => StatusCode::NO_CONTENT,
    };
    status.into_response()
}
