//! The page of one job.

use askama::Template;
use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;

use super::buttons::{Button, Buttons};
use super::frame::{Frame, Section};
use super::listing::with;
use super::{View, log, render};
use crate::actions::Role;
use crate::insight;
use crate::insight::CauseKind;
use crate::mirror::{self, NodeStat};
use crate::views::Session;
use crate::views::job::{Download, Fetching, JobDetail};
use crate::views::show::{Moment, Shown, Size, shown, visible};
use crate::web::http::identity::Identity;
use crate::web::http::problem::Problem;
use crate::web::links;
use crate::web::state::State;
use queuekeeper_queue::path::Path as Znode;

mod timeline;

/// The maximum size, in bytes of HTML, of all znodes together and of one of them.
const NODES_LIMITS: (usize, usize) = (40 << 10, 6 << 10);

/// `GET /jobs/{jid}`: what is with this job?
pub(super) async fn job(FromState(state): FromState<State>, who: Identity, Path(jid): Path<String>) -> Response {
    let now = Timestamp::now();
    match state.job(&jid, now).await {
        Ok(detail) => {
            let actions = log::actions(&state, &detail.id, "../", now);
            render(StatusCode::OK, &Page::new(&state.view(now), &detail, actions, state.rights(&who)))
        }
        Err(error) => Problem::from(error).into_response(),
    }
}

#[derive(Debug, Template)]
#[template(path = "job.html")]
struct Page {
    frame: Frame,
    id: String,
    title: String,
    state: String,
    /// `bad`, `warn`, `good` or nothing.
    class: &'static str,
    entered: Option<Moment>,
    batch: Option<(String, String)>,
    collection: String,
    collection_href: String,
    json: String,
    buttons: Vec<Button>,
    why: DiagnosisPanel,
    /// How far its download is.
    download: Option<DownloadView>,
    timeline: timeline::Timeline,
    about: Vec<DetailRow>,
    standing: Vec<DetailRow>,
    nodes: Vec<Node>,
    nodes_problem: Option<String>,
}

/// Why it is not moving.
#[derive(Debug)]
pub(super) struct DiagnosisPanel {
    title: &'static str,
    class: &'static str,
    headline: String,
    causes: Vec<CauseRow>,
}

#[derive(Debug)]
struct CauseRow {
    /// What the fault is called, where it is one; empty otherwise.
    fault: &'static str,
    sentence: String,
    evidence: String,
    fix: &'static str,
    since: Option<Moment>,
    /// The word before that: what is over was at an instant.
    since_word: &'static str,
    items: Vec<Link>,
    more: u64,
}

/// How far a download is.
#[derive(Debug)]
struct DownloadView {
    whole: String,
    fetching: Vec<FileRow>,
}

/// A file that is on its way.
#[derive(Debug)]
struct FileRow {
    name: String,
    words: String,
    /// How much of it was written, in percent; `None` where its size is unknown.
    width: Option<String>,
}

/// A znode to look at.
#[derive(Debug)]
struct Link {
    text: String,
    href: String,
    /// What stands behind it.
    after: String,
}

/// A line of a table.
#[derive(Debug)]
struct DetailRow {
    name: &'static str,
    value: String,
    /// What is shown when one points at the value.
    hint: String,
    moment: Option<Moment>,
    links: Vec<Link>,
    /// Ids that can be copied.
    ids: Vec<String>,
}

/// A znode and what it holds.
#[derive(Debug)]
struct Node {
    name: String,
    href: String,
    modified: Moment,
    size: Size,
    version: i32,
    owner: Option<Session>,
    data: Shown,
}

impl Page {
    fn new(view: &View, detail: &JobDetail, actions: Vec<log::Dated>, role: Role) -> Self {
        let known = &detail.known;
        let job = &known.job;
        let root = "../".to_owned();
        let title = [&*job.filename, &*job.title].into_iter().find(|text| !text.trim().is_empty());
        let state = match (job.state, job.status_text.is_empty()) {
            (Some(state), true) => state.to_string(),
            (None, true) => "no status".to_owned(),
            (_, false) => format!("“{}”", visible(&job.status_text)),
        };
        Self {
            frame: Frame::new(view, root, Section::Jobs),
            id: detail.id.clone(),
            title: title.map_or_else(|| detail.id.clone(), headline),
            state,
            class: class(known.diagnosis.verdict),
            entered: job.entered.map(|at| Moment::new(at, view.now)),
            batch: job.batch.map(|batch| (batch.to_string(), format!("batches/{batch}"))),
            collection: visible(&job.collection),
            collection_href: with("jobs", "collection", &job.collection),
            json: format!("api/v1/jobs/{}", detail.id),
            buttons: Buttons::new("../", role).job(job, &known.faults),
            why: DiagnosisPanel::new(&known.diagnosis, &Znode::Job(job.id), view.now),
            download: detail.download.as_ref().map(DownloadView::from),
            timeline: timeline::Timeline::new(known, copied(detail, view.now).chain(actions).collect(), view.now),
            about: about(detail, view.now),
            standing: standing(detail, view.now),
            nodes: nodes(&known.nodes, view.now),
            nodes_problem: detail.nodes_problem.as_deref().map(visible),
        }
    }
}

/// When copies of its object were complete, as events.
fn copied(detail: &JobDetail, now: Timestamp) -> impl Iterator<Item = log::Dated> {
    detail.copies.iter().filter_map(move |copy| {
        let text = format!("all of the object is in the store {}", copy.store);
        Some(log::Event::new(copy.complete_since?, text, now))
    })
}

impl From<&Download> for DownloadView {
    fn from(download: &Download) -> Self {
        let row = |file: &Fetching| {
            let share = |all: u64| (file.bytes as f64 / all.max(1) as f64 * 100.0).min(100.0);
            let width = file.size_bytes.map(|all| format!("{:.2}", share(all)));
            FileRow { name: visible(&file.name), words: file.words(), width }
        };
        Self { whole: download.whole(), fetching: download.fetching.iter().map(row).collect() }
    }
}

impl DiagnosisPanel {
    /// The reasons, whose znodes are links but for `own`, which is on the page itself.
    pub(super) fn new(diagnosis: &insight::Diagnosis, own: &Znode, now: Timestamp) -> Self {
        let cause = |cause: &insight::Cause| CauseRow {
            sentence: cause.sentence.clone(),
            evidence: cause.evidence.clone(),
            fix: cause.fix.unwrap_or_default(),
            since: cause.since.map(|since| Moment::new(since, now)),
            since_word: if cause.kind == CauseKind::Done { "at" } else { "since" },
            fault: fault(cause.kind),
            items: items(cause, own),
            more: cause.more,
        };
        let title = match diagnosis.verdict {
            insight::Verdict::Moving | insight::Verdict::Done => "Status",
            insight::Verdict::Waiting => "Waiting for",
            insight::Verdict::Stopped => "Why it is not moving",
        };
        Self {
            title,
            class: class(diagnosis.verdict),
            headline: diagnosis.headline.clone(),
            causes: diagnosis.causes.iter().map(cause).collect(),
        }
    }
}

fn fault(kind: CauseKind) -> &'static str {
    if let CauseKind::Fault(fault) = kind { fault.title() } else { "" }
}

/// The znodes to look at. Those of the item itself are on the page, and only a fault has to name them.
fn items(cause: &insight::Cause, own: &Znode) -> Vec<Link> {
    match cause.kind {
        CauseKind::Fault(_) => cause.items.iter().map(tree_link).collect(),
        _ => cause.items.iter().filter(|item| !is_of(item, own)).map(link).collect(),
    }
}

fn class(verdict: insight::Verdict) -> &'static str {
    match verdict {
        insight::Verdict::Moving => "good",
        insight::Verdict::Waiting => "warn",
        insight::Verdict::Stopped => "bad",
        insight::Verdict::Done => "done",
    }
}

/// Whether a znode is the item itself or one of its children.
fn is_of(path: &Znode, own: &Znode) -> bool {
    path == own || matches!((path, own), (Znode::JobNode(job, _), Znode::Job(own)) if job == own)
}

fn link(path: &Znode) -> Link {
    let text = match path {
        Znode::Job(job) | Znode::JobNode(job, _) => job.to_string(),
        Znode::Batch(batch) => batch.to_string(),
        other => visible(&other.to_string()),
    };
    Link { text, href: links::best(path), after: String::new() }
}

/// A link to a znode itself, whatever it belongs to.
fn tree_link(path: &Znode) -> Link {
    Link { text: visible(&path.to_string()), href: links::tree(&path.into()), after: String::new() }
}

impl DetailRow {
    fn new(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into(), hint: String::new(), moment: None, links: Vec::new(), ids: Vec::new() }
    }

    /// Ids out of a text of a znode, with semicolons between them; `none` where there are none.
    fn ids(name: &'static str, text: &str, none: &'static str) -> Self {
        let ids: Vec<_> = text.split(';').map(str::trim).filter(|id| !id.is_empty()).map(visible).collect();
        let value = if ids.is_empty() { none } else { "" };
        Self { ids, ..Self::new(name, value) }
    }

    /// A text of a znode; `none` where it is empty.
    fn text(name: &'static str, text: &str, none: &'static str) -> Self {
        Self::new(name, if text.trim().is_empty() { none.to_owned() } else { visible(text) })
    }
}

/// A text of a depositor as the title of a page.
fn headline(text: &str) -> String {
    const MOST: usize = 100;
    let cut: String = text.trim().chars().take(MOST).collect();
    let ellipsis = if text.trim().chars().nth(MOST).is_some() { "…" } else { "" };
    format!("{}{ellipsis}", visible(&cut))
}

/// The deposit.
fn about(detail: &JobDetail, now: Timestamp) -> Vec<DetailRow> {
    let job = &detail.known.job;
    let mut lines = vec![DetailRow::ids("ARK", &job.ark, "not minted yet")];
    if let Some(made) = &detail.object {
        let href = with(&format!("objects/{}", made.ark), "version", &made.version.to_string());
        let link = Link { text: visible(&made.ark), href, after: String::new() };
        lines.push(DetailRow { links: vec![link], ..DetailRow::new("Object", format!("version {} of", made.version)) });
    } else if let Some(problem) = &detail.object_problem {
        lines.push(DetailRow::new("Object", visible(problem)));
    }
    lines.extend([
        DetailRow::ids("Local id", &job.local_ids, "none"),
        DetailRow::text("Title", &job.title, "none"),
        DetailRow::text("File", &job.filename, "none"),
        DetailRow::text("Collection", &job.collection, "none"),
        DetailRow::text("Submitter", &job.submitter, "unknown"),
    ]);
    let submitted = job.submitted.map(|at| Moment::new(at, now));
    let value = if submitted.is_some() { "" } else { "unknown" };
    lines.push(DetailRow { moment: submitted, ..DetailRow::new("Submitted", value) });
    lines
}

/// The state in the queue.
fn standing(detail: &JobDetail, now: Timestamp) -> Vec<DetailRow> {
    let job = &detail.known.job;
    let priority = job.priority.map_or_else(|| "unreadable".to_owned(), |priority| priority.number().to_string());
    let size = Size::new(job.space_needed_bytes);
    let space = if job.space_needed_bytes == 0 {
        DetailRow::new("Space needed", "unknown")
    } else {
        DetailRow { hint: size.exact, ..DetailRow::new("Space needed", size.short) }
    };
    let retries = job.retry_count.map_or_else(|| "unknown".to_owned(), |retries| retries.to_string());
    let last = job.last_successful.map_or_else(|| "none".to_owned(), |state| state.to_string());
    let lock = match &detail.lock {
        None => DetailRow::new("Lock", "none"),
        Some(lock) => {
            let holder = if lock.session.is_some() { "held for" } else { "persistent lock, for" };
            let link = |session: Session| {
                let address = detail.known.addresses.get(&session.id());
                let after = address.map(|address| format!("at {address}")).unwrap_or_default();
                let session = session.to_string();
                Link { href: with("locks", "session", &session), text: session, after }
            };
            let links = lock.session.map(link).into_iter().collect();
            DetailRow { moment: Some(Moment::new(lock.created, now)), links, ..DetailRow::new("Lock", holder) }
        }
    };
    let entries = job.entries.iter().map(|(folder, entry)| tree_link(&Znode::Entry(folder.clone(), *entry)));
    let references =
        job.references.iter().map(|(batch, outcome)| tree_link(&Znode::Reference(*batch, *outcome, job.id)));
    let created = job.created.map(|at| Moment::new(at, now));
    let mut lines = vec![
        DetailRow::new("Priority", priority),
        space,
        DetailRow::new("Retries", retries),
        DetailRow::new("Last success", last),
        DetailRow::text("Message", &job.message, "none"),
        lock,
        links_or_none("Queue entry", entries.collect()),
        links_or_none("In its batch", references.collect()),
        DetailRow { moment: created, ..DetailRow::new("Created", "") },
    ];
    if !detail.unreadable.is_empty() {
        lines.push(DetailRow::new("Unreadable", detail.unreadable.join(", ")));
    }
    lines
}

fn links_or_none(name: &'static str, links: Vec<Link>) -> DetailRow {
    let value = if links.is_empty() { "none" } else { "" };
    DetailRow { links, ..DetailRow::new(name, value) }
}

/// The znodes, up to that limit.
fn nodes(nodes: &[mirror::Node], now: Timestamp) -> Vec<Node> {
    let (mut left, most) = NODES_LIMITS;
    let node = |node: &mirror::Node| {
        let NodeStat { data_length, modified, version, ephemeral_owner, .. } = node.stat;
        let data = shown(&node.data, data_length, left.min(most));
        left = left.saturating_sub(data.text.len());
        Node {
            name: visible(node.path.as_str()),
            href: links::tree(&node.path),
            modified: Moment::new(modified, now),
            size: Size::new(data_length),
            version,
            owner: Session::of(ephemeral_owner),
            data,
        }
    };
    nodes.iter().map(node).collect()
}
