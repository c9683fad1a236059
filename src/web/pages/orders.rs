//! What came of an order, or how far it is.

use askama::Template;
use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;

use super::frame::{Frame, Section};
use super::listing::with;
use super::order::{see_other, state_name, subject_in_words};
use super::progress::Part;
use super::render;
use crate::actions::audit::OrderId;
use crate::actions::{Action, Role, Source, Subject};
use crate::web::State;
use crate::web::api::orders::find_order;
use crate::web::identity::Identity;
use crate::web::problem::Problem;
use crate::web::query::{Pairs, address};
use crate::web::show::{Count, Moment, counted, percent, visible};
use crate::web::views::orders::OrderView;
use queuekeeper_queue::state::BatchState;

/// `GET /orders/{id}`: what came of an order, or how far it is.
pub(super) async fn show(
    FromState(state): FromState<State>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let order = find_order(&state, &id)?;
    Ok(render(StatusCode::OK, &Page::new(&state, &order, state.rights(&who), Timestamp::now())))
}

/// `POST /orders/{id}/cancel`: ends an order over many, and leads back to it.
pub(super) async fn cancel(
    FromState(state): FromState<State>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let actor = state.authorize(&who, Role::Operator, Source::Web)?;
    let id: OrderId = id.parse().map_err(|_| Problem::missing("There is no such order going on."))?;
    state.actions()?.cancel(id, &actor)?;
    Ok(see_other(format!("../{id}")))
}

#[derive(Debug, Template)]
#[template(path = "order_done.html")]
struct Page {
    frame: Frame,
    id: String,
    title: String,
    on: String,
    on_href: String,
    outcome: Outcome,
    given: Option<Given>,
    reason: String,
    before: String,
    after: String,
    detail: String,
    warnings: Vec<String>,
    operations: Vec<String>,
    /// How far it is, of an order over many.
    reached: Option<Reached>,
    undone: Vec<Undone>,
    more_undone: String,
    written: Vec<Undone>,
    more_written: String,
    is_going_on: bool,
    may_cancel: bool,
    /// What to look at next; the way there is empty for nothing.
    next: (&'static str, String),
    audit_href: String,
    json: String,
}

/// What came of it, in words.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) name: &'static str,
    pub(super) class: &'static str,
    means: &'static str,
}

/// Who gave it, and when.
#[derive(Debug)]
struct Given {
    actor: String,
    role: String,
    source: String,
    from: String,
    at: Moment,
    /// Empty where nobody did.
    cancelled_by: String,
    took: String,
}

#[derive(Debug)]
struct Reached {
    text: String,
    percent: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Undone {
    on: String,
    href: String,
    why: String,
}

/// An outcome by its label.
pub(super) fn outcome(label: &str) -> Outcome {
    let (name, class, means) = match label {
        "done" => ("Done", "good", "It is done."),
        "going_on" => ("Going on", "work", "It is going on, also when this page is closed."),
        "cancelled" => {
            ("Cancelled", "warn", "It was cancelled: what was under way was finished, and the rest not begun.")
        }
        "in_part" => ("In part", "warn", "A part of it was done, and something stood against the rest."),
        "conflict" => ("Refused", "warn", "Nothing was done: the queue stood against it."),
        "unknown" => (
            "Not known",
            "bad",
            "Whether all of it was done is not known: the connection was lost, or the server ended meanwhile. Look at what \
             it is about before ordering it again.",
        ),
        "failed" | "unavailable" => ("Failed", "bad", "Nothing was done, or not all of it."),
        _ => ("Refused", "bad", "Nothing was done."),
    };
    Outcome { name, class, means }
}

/// What was ordered, by its label.
pub(super) fn action_title(label: &str) -> String {
    label.parse::<Action>().map_or_else(|_| visible(label), |action| action.title().to_owned())
}

/// Something that was ordered on, in words, and its page; that is empty where it has none.
pub(super) fn named(on: &str, root: &str) -> (String, String) {
    match on.parse::<Subject>() {
        Ok(subject) => {
            let href = subject.page().map(|page| format!("{root}{page}")).unwrap_or_default();
            (subject_in_words(&subject), href)
        }
        Err(_) => (visible(on), String::new()),
    }
}

impl Page {
    fn new(state: &State, order: &OrderView, role: Role, now: Timestamp) -> Self {
        let frame = Frame::new(&state.view(now), "../".to_owned(), Section::Audit);
        let id = order.id.clone().unwrap_or_default();
        let entry = id.parse().ok().and_then(|id| state.actions().ok()?.audit().entry(id));
        let given = entry.map(|entry| Given {
            actor: visible(&entry.actor),
            role: entry.role,
            source: entry.source,
            from: entry.from.unwrap_or_default(),
            at: Moment::new(entry.at, now),
            cancelled_by: entry.cancelled_by.as_deref().map(visible).unwrap_or_default(),
            took: entry.duration_seconds.map(took).unwrap_or_default(),
        });
        let (on, on_href) = named(&order.on, &frame.root);
        let is_going_on = order.outcome == "going_on";
        let undone = order.undone.iter().map(|undone| {
            let (on, href) = named(&undone.on, &frame.root);
            Undone { on, href, why: visible(&undone.why) }
        });
        let left_out = (order.not_done + order.unknown).saturating_sub(order.undone.len() as u64);
        let written = order.written.iter().map(|item| {
            let (on, href) = named(&item.on, &frame.root);
            Undone { on, href, why: visible(&item.what) }
        });
        let unlisted = if order.written.is_empty() { 0 } else { order.done.saturating_sub(order.written.len() as u64) };
        let name = |label: &Option<String>| label.as_deref().map(state_name).unwrap_or_default();
        Self {
            title: format!("{}: {on}", action_title(&order.action)),
            outcome: outcome(&order.outcome),
            reason: visible(&order.reason),
            before: name(&order.before),
            after: name(&order.after),
            detail: order.detail.as_deref().map(visible).unwrap_or_default(),
            warnings: order.warnings.iter().map(|warning| visible(warning)).collect(),
            operations: order.operations.iter().map(|line| visible(line)).collect(),
            reached: Reached::new(order),
            undone: undone.collect(),
            more_undone: if left_out > 0 { format!("and {} more", Count(left_out)) } else { String::new() },
            written: written.collect(),
            more_written: if unlisted > 0 {
                format!("and {} more, in the audit file", Count(unlisted))
            } else {
                String::new()
            },
            may_cancel: is_going_on && order.count > 1 && role >= Role::Operator,
            is_going_on,
            next: next(state, order, &frame.root),
            audit_href: with(&format!("{}audit", frame.root), "text", &id),
            json: format!("{}api/v1/orders/{id}", frame.root),
            given,
            on,
            on_href,
            id,
            frame,
        }
    }
}

impl Reached {
    fn new(order: &OrderView) -> Option<Self> {
        if order.count < 2 {
            return None;
        }
        let (done, not_done, unknown, of) = (order.done, order.not_done, order.unknown, order.count);
        let width = |part: u64| part as f64 / of as f64 * 100.0;
        let parts = [("done", 0, done), ("failed", done, not_done + unknown)];
        let parts = parts.into_iter().filter(|(.., count)| *count > 0).map(|(class, before, count)| Part {
            class,
            x: format!("{:.2}", width(before)),
            width: format!("{:.2}", width(count)),
        });
        // What is left keeps it from being called whole.
        let ended = done + not_done + unknown;
        let left = of.saturating_sub(ended);
        let ended = if left == 0 { 1.0 } else { (ended as f64 / of as f64).min(0.99) };
        Some(Self {
            text: format!(
                "{}: {} done, {} not done, {} unknown, {} left",
                counted(of, "item", "items"),
                Count(done),
                Count(not_done),
                Count(unknown),
                Count(left)
            ),
            percent: percent(ended),
            parts: parts.collect(),
        })
    }
}

/// How long something took.
pub(super) fn took(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1_000.0) } else { format!("{seconds:.2} s") }
}

/// What to look at after an order that is done.
fn next(state: &State, order: &OrderView, root: &str) -> (&'static str, String) {
    let nothing = ("", String::new());
    if order.outcome != "done" {
        return nothing;
    }
    let store = &state.shared.store;
    match (order.action.parse(), order.on.parse()) {
        // No report follows by itself then.
        (Ok(Action::Resume), Ok(Subject::Job(job))) => {
            let batch = store.job(job).and_then(|job| job.batch);
            let failed = batch
                .filter(|batch| store.batch(*batch).is_some_and(|found| found.batch.state == Some(BatchState::Failed)));
            failed.map_or(nothing, |batch| {
                let pairs = [("action", Action::ReportAgain.label().to_owned()), ("on", batch.to_string())];
                let pairs: Pairs = pairs.map(|(name, value)| (name.to_owned(), value)).into();
                ("Report its batch again, when the job is done", address(&format!("{root}order"), &pairs))
            })
        }
        (Ok(Action::Release), Ok(Subject::Collection(mnemonic))) => {
            let pairs = [("state", "held"), ("collection", &*mnemonic)];
            let pairs: Pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            ("Its jobs that are still held", address(&format!("{root}jobs"), &pairs))
        }
        (Ok(_) | Err(_), _) => nothing,
    }
}
