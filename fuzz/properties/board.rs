//! A server without a network: the whole router over an image that is made of znodes, a temporary directory for files,
//! and what must hold of every answer.

use std::cell::LazyCell;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::request::Builder;
use axum::http::{Request, StatusCode, header};
use queuekeeper::actions::audit::{Audit, Destination, Rotation};
use queuekeeper::actions::{self, Actions, Role};
use queuekeeper::alerts::{self, Alerts};
use queuekeeper::config::{Config, ConfigFile, Secret, TokenLine};
use queuekeeper::mirror::fuzzing::Mirrored;
use queuekeeper::{metrics, web};
use queuekeeper_queue::fault::Limits;

use queuekeeper_zookeeper::coordination::Coordination;
use tokio::runtime::{Builder as RuntimeBuilder, Runtime};
use tower::ServiceExt as _;

use super::shown;
use super::znodes::znodes;

/// No answer is larger, in bytes.
const LARGEST: usize = 4 * 1024 * 1024;

/// Markup that stands in the corpus and must stand on no page.
pub const MARKUP: &str = "<qk";

/// What the server's rules are, besides its tokens.
const CONFIG: &str = "tokens_file: tokens.yml
alerts:
  allow_destructive: true
  rules:
    - {name: again, alert: JobsFailed, mode: enforce, action: resume_jobs, narrow_by: [state, collection],
       select: {limit: 20}, budget: {items: 20, per: 1h}, max_share: 0.5, cooldown: 30m}
    - {name: full, alert: DiskFull, mode: enforce, action: hold_collections, on_resolved: release,
       narrow_by: [collection], select: {limit: 5}, budget: {items: 5, per: 1h}, cooldown: 1m}
    - {name: would, alert: JobsFailed, action: delete_jobs, select: {limit: 20}, budget: {items: 20, per: 1h}, cooldown: 1s}
    - {name: repairs, alert: QueueFaults, mode: dry-run, action: repair_faults, narrow_by: [fault],
       select: {faults: [orphan_entry, missing_entry], limit: 9}, budget: {items: 9, per: 1h}, cooldown: 30m}
";

thread_local! {
    static DIRECTORY: LazyCell<tempfile::TempDir> =
        const { LazyCell::new(|| tempfile::tempdir().expect("a temporary directory can be made")) };
    static BOARD: LazyCell<Board> = const { LazyCell::new(|| {
        let board = Board::new(b"");
        board.mirrored.walk(&znodes(include_bytes!("../trees/everything.jsonl")));
        board
    }) };
}

/// A file of this thread's with that name, holding that.
///
/// # Panics
/// When it cannot be written.
#[must_use]
pub fn file(name: &str, data: &[u8]) -> PathBuf {
    DIRECTORY.with(|directory| {
        let path = directory.path().join(name);
        std::fs::write(&path, data).expect("a file can be written");
        // As the audit trail wants it.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
            .expect("a file can be kept to its owner");
        path
    })
}

/// Checks an error about a file: one line, that shows nothing of what stands in it.
///
/// # Panics
/// When it is otherwise.
pub fn file_error(error: &impl std::fmt::Display, data: &[u8]) {
    /// Shorter pieces may stand in our own words.
    const PIECE: usize = 16;
    shown::error(error, 2_000);
    let text = error.to_string();
    let own = DIRECTORY.with(|directory| text.replace(&directory.path().display().to_string(), ""));
    let is_shown = |piece: &[u8]| own.as_bytes().windows(PIECE).any(|found| found == piece);
    assert!(!data.windows(PIECE).any(is_shown), "an error shows what stands in the file: {text}");
}

/// A server.
pub struct Board {
    /// Its image.
    pub mirrored: Mirrored,
    /// What acts on alerts.
    pub alerts: Alerts,
    router: Router,
    runtime: Runtime,
    admin: String,
    alertmanager: String,
}

/// What it answers.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The body.
    pub body: String,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Asks this thread's server, whose tree is `everything.jsonl`.
pub fn with<T>(ask: impl FnOnce(&Board) -> T) -> T {
    BOARD.with(|board| ask(board))
}

impl Board {
    /// A server whose audit file held that when it was started.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn new(audit: &[u8]) -> Self {
        let runtime = RuntimeBuilder::new_current_thread().enable_time().build().expect("a runtime can be made");
        let (admin, alertmanager) = (Secret::make(), Secret::make());
        let line = |name, role, secret| TokenLine::new(name, role, None, secret).expect("this is a name");
        let tokens = format!(
            "{}\n{}\n",
            line("admin", Role::Admin, &admin),
            line("alertmanager", Role::Alertmanager, &alertmanager)
        );
        let _ = file("tokens.yml", tokens.as_bytes());
        let config_file = ConfigFile::read(&file("board.yml", CONFIG.as_bytes())).expect("this is a configuration");
        let rules = config_file.rules().clone();
        let mut config =
            Config::new(queuekeeper_zookeeper::Config::new("127.0.0.1:1".parse().expect("this is an address")));
        config.file = Some(config_file);
        config.web.external_url = Some("http://localhost/".parse().expect("this is an address"));
        let mut registry = metrics::registry();
        let mirrored = Mirrored::default();
        let store = mirrored.store();
        let drop_after = config.mirror.drop_after;
        metrics::queue::QueueMetrics { store: store.clone(), storage: None, drop_after, collections: 20 }
            .register(&mut registry);
        let destination = Destination::File(file("audit", audit), Rotation::default());
        let audit = Audit::open(destination).expect("the audit file can be opened");
        let counted = actions::Metrics::register(&mut registry);
        let (actions, _runner) = Actions::new(store.clone(), Limits::default(), audit, counted);
        let (coordination, _keeper) = Coordination::new(Vec::new());
        let counted = alerts::Metrics::register(&mut registry);
        let alerts = Alerts::new(store.clone(), || Some(0), actions.clone(), coordination, rules, counted);
        let state = web::State::new(config, store, None, Some(actions), registry).with_alerts(alerts.clone());
        let (admin, alertmanager) = (bearer(&admin), bearer(&alertmanager));
        Self { mirrored, alerts, router: web::router(state), runtime, admin, alertmanager }
    }

    /// Asks for a page, as an admin. An address that no program could send is not requested.
    pub fn get(&self, address: &str) -> Option<Answer> {
        self.ask(Request::get(address).header(header::HOST, "localhost"), Body::empty())
    }

    /// Sends JSON, as an admin, or as Alertmanager.
    pub fn post(&self, address: &str, body: &[u8], is_alertmanager: bool) -> Option<Answer> {
        let authorization = if is_alertmanager { &self.alertmanager } else { &self.admin };
        let request = Request::post(address)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, authorization);
        self.ask(request, Body::from(body.to_vec()))
    }

    /// Sends a request, and checks what must hold of every answer. `None` for a request that cannot be sent.
    ///
    /// # Panics
    /// When an answer is a failure of ours, is too large, or shows what it should not.
    pub fn ask(&self, request: Builder, body: Body) -> Option<Answer> {
        let has_token = request.headers_ref().is_some_and(|headers| headers.contains_key(header::AUTHORIZATION));
        let request = if has_token { request } else { request.header(header::AUTHORIZATION, &self.admin) };
        let request = request.body(body).ok()?;
        let what = format!("{} {}", request.method(), request.uri());
        let answer = self.runtime.block_on(async {
            let answer = self.router.clone().oneshot(request).await.expect("a router always answers");
            let status = answer.status();
            let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let kind = kind.unwrap_or_default().to_owned();
            if kind.starts_with("text/event-stream") {
                // It has no end.
                return (status, kind, String::new());
            }
            let bytes = to_bytes(answer.into_body(), LARGEST).await;
            let bytes = bytes.unwrap_or_else(|error| panic!("the answer to {what} is too large: {error}"));
            let body = String::from_utf8(bytes.to_vec()).unwrap_or_else(|_| panic!("{what}: the answer is no text"));
            (status, kind, body)
        });
        let (status, kind, body) = answer;
        assert!(!is_failure(status), "{what} was answered with {status}: {body}");
        if kind.starts_with("text/html") || kind.starts_with("text/plain") || kind.contains("openmetrics") {
            // What a form sends back is not shown, and is exact.
            let shown: String =
                body.split("value=\"").map(|part| part.split_once('"').map_or(part, |(_, rest)| rest)).collect();
            // A program does not mind in which direction a label is written.
            let is_page = kind.starts_with("text/html");
            let is_unfit = |found: char| if is_page { shown::is_unfit(found) } else { found.is_control() };
            let unfit = if is_page { &shown } else { &body }.lines().find(|line| line.chars().any(is_unfit));
            let around = unfit.and_then(|line| {
                let at = line.chars().position(is_unfit)?;
                Some(line.chars().skip(at.saturating_sub(90)).take(120).collect::<String>())
            });
            assert_eq!(around, None, "the answer to {what} shows what does not show");
        }
        if kind.starts_with("text/html") {
            let at = body.find(MARKUP);
            let around = at.map(|at| body[at..].chars().take(80).collect::<String>());
            assert_eq!(around, None, "the answer to {what} has foreign markup");
        }
        let answer = Answer { status, body };
        if kind.contains("json") {
            let _ = answer.json();
        }
        Some(answer)
    }
}

/// Whether a status says that we failed, rather than the client or ZooKeeper, to which there is no connection.
fn is_failure(status: StatusCode) -> bool {
    status == StatusCode::INTERNAL_SERVER_ERROR || status == StatusCode::GATEWAY_TIMEOUT
}

fn bearer(secret: &Secret) -> String {
    format!("Bearer {}", secret.reveal())
}
