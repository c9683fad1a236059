//! What a text leads to: the one thing that it names, or a list of what contains it.

use askama::Template;
use axum::extract::State as FromState;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use queuekeeper_ingest::ark::Ark;

use super::action::see_other;
use super::frame::Frame;
use super::listing::SHORT;
use super::render;
use crate::actions::audit::{ActionId, AuditQuery};
use crate::views::search::{Found, Matches, SearchQuery};
use crate::views::show::{brief, counted};
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair};
use crate::web::state::State as Server;
use queuekeeper_queue::state::{AccessState, BatchState, JobState, State};

/// The matches, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "search.html")]
struct SearchPage {
    frame: Frame,
    text: String,
    kinds: Vec<FoundKind>,
    /// Where stored objects are looked for, and what the link says; empty where this server knows none.
    objects: (String, String),
}

/// The matches of one kind.
#[derive(Debug)]
struct FoundKind {
    title: String,
    rows: Vec<FoundRow>,
    /// The list of all of them, and what the link says.
    all: (String, String),
}

/// One match.
#[derive(Debug)]
struct FoundRow {
    name: String,
    href: String,
    state: String,
    text: String,
}

/// `GET /search`: redirects to the one thing that the text names, else lists what contains it.
pub(super) async fn search(
    FromState(state): FromState<Server>,
    Params(query): Params<SearchQuery>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    // Without a text, the list of jobs is where one looks for something.
    let Some(text) = query.text.filter(|text| text.text().is_some()) else { return Ok(see_other("jobs".to_owned())) };
    if let Some(address) = in_the_audit_trail(&state, &text.to_string()) {
        return Ok(see_other(address));
    }
    Ok(match state.source().search(&text, now)? {
        Found::Job(id) => see_other(format!("jobs/{id}")),
        Found::Batch(id) => see_other(format!("batches/{id}")),
        Found::Session(id) => see_other(address("locks", &[pair("session", id)])),
        Found::Group(key) => see_other(address("jobs", &[pair("group", key.to_string())])),
        Found::Request(queue, id) => see_other(request_address(queue, &id)),
        Found::Collection(name) => see_other(address("jobs", &[pair("collection", name)])),
        Found::Several(matches) => {
            let frame = Frame::new(&state.view(now), "./".to_owned(), None);
            let has_objects = state.objects().is_ok();
            render(StatusCode::OK, &SearchPage::new(frame, &text.to_string(), &matches, has_objects))
        }
    })
}

/// The address of the action that a text names, or of the actions of the decision that it names. No id of something
/// else is one of these.
fn in_the_audit_trail(state: &Server, text: &str) -> Option<String> {
    let id: ActionId = text.parse().ok()?;
    let actions = state.actions().ok()?;
    if actions.execution(id).is_some() || actions.audit().entry(id).is_some() {
        return Some(format!("actions/{id}"));
    }
    let query = AuditQuery { decision: Some(id), limit: 1, ..AuditQuery::default() };
    let is_decision = actions.audit().find(&query).total > 0;
    is_decision.then(|| address("audit", &[pair("decision", id.to_string())]))
}

/// Where a request is shown: it has no page of its own.
fn request_address(queue: &str, id: &str) -> String {
    address("access", &[pair("queue", queue), pair("text", id)])
}

impl SearchPage {
    fn new(frame: Frame, text: &str, matches: &Matches, has_objects: bool) -> Self {
        let root = frame.root.clone();
        let all = |list: &str| address(&format!("{root}{list}"), &[pair("text", text)]);
        let jobs = matches.jobs.items.iter().map(|job| FoundRow {
            name: job.id.clone(),
            href: format!("{root}jobs/{}", job.id),
            state: named::<JobState>(job.state),
            text: first_of([&job.title, &job.filename, &job.ark]),
        });
        let batches = matches.batches.items.iter().map(|batch| FoundRow {
            name: batch.id.clone(),
            href: format!("{root}batches/{}", batch.id),
            state: named::<BatchState>(batch.state),
            text: first_of([&batch.title, &batch.filename, &batch.uuid]),
        });
        let requests = matches.requests.items.iter().map(|request| FoundRow {
            name: request.id.clone(),
            href: format!("{root}{}", request_address(request.queue, &request.id)),
            state: named::<AccessState>(request.state),
            text: brief(&request.token, SHORT),
        });
        let kinds = [
            (matches.jobs.total as u64, ["job", "jobs"], "jobs", jobs.collect::<Vec<_>>()),
            (matches.batches.total, ["batch", "batches"], "batches", batches.collect()),
            (matches.requests.total, ["access request", "access requests"], "access", requests.collect()),
        ];
        let mut kinds: Vec<_> = kinds
            .into_iter()
            .filter(|(total, ..)| *total > 0)
            .map(|(total, [one, many], list, rows)| FoundKind {
                title: counted(total, one, many),
                all: (all(list), format!("Show in the list of {many}")),
                rows,
            })
            .collect();
        if matches.is_collection {
            let href = address(&format!("{root}jobs"), &[pair("collection", text)]);
            let all = (href, "Show its jobs".to_owned());
            kinds.insert(
                0,
                FoundKind { title: format!("The collection {}", brief(text, SHORT)), rows: Vec::new(), all },
            );
        }
        let objects = if has_objects { of_objects(&root, text) } else { (String::new(), String::new()) };
        Self { text: brief(text, SHORT), kinds, objects, frame }
    }
}

/// Where stored objects are looked for by a text, and in which way.
fn of_objects(root: &str, text: &str) -> (String, String) {
    let shown = brief(text, SHORT);
    if let Ok(ark) = text.trim().parse::<Ark>() {
        return (format!("{root}objects/{ark}"), format!("The stored object {shown}"));
    }
    let href = address(&format!("{root}objects"), &[pair("title", text)]);
    (href, format!("Stored objects whose titles begin with “{shown}”"))
}

/// The name of a state of this label.
fn named<S: State>(label: &str) -> String {
    S::ALL.iter().find(|state| state.label() == label).map_or("Other", |state| state.name()).to_owned()
}

/// The first of these texts that is not empty, as far as there is room for it.
fn first_of(texts: [&String; 3]) -> String {
    texts.into_iter().find(|text| !text.is_empty()).map(|text| brief(text, SHORT)).unwrap_or_default()
}
