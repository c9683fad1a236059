//! The progress or outcome of an action.

use askama::Template;
use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;

use super::about::About;
use super::action::{see_other, state_name, target_in_words};
use super::bulk;
use super::frame::{Frame, Section};
use super::listing::with;
use super::progress::Part;
use super::render;
use crate::actions::audit::ActionId;
use crate::actions::outcome::{self, Tone};
use crate::actions::{ActionKind, Role, Source, Target};
use crate::views::actions::ActionView;
use crate::views::show::{Count, Moment, counted, percent, visible};
use crate::web::actions::find_action;
use crate::web::http::identity::Identity;
use crate::web::http::problem::Problem;
use crate::web::http::query::{Pairs, address};
use crate::web::links::segment;
use crate::web::state::State;
use queuekeeper_queue::state::BatchState;

/// `GET /actions/{id}`: the progress or outcome of an action.
pub(super) async fn show(
    FromState(state): FromState<State>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let action = find_action(&state, &id)?;
    Ok(render(StatusCode::OK, &Page::new(&state, &action, state.rights(&who), Timestamp::now())))
}

/// `POST /actions/{id}/cancel`: cancels a bulk action, and redirects to it.
pub(super) async fn cancel(
    FromState(state): FromState<State>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let actor = state.authorize(&who, Role::Operator, Source::Web)?;
    let id: ActionId = id.parse().map_err(|_| Problem::missing("There is no such action in progress."))?;
    state.actions()?.cancel(id, &actor)?;
    Ok(see_other(format!("../{id}")))
}

#[derive(Debug, Template)]
#[template(path = "action_done.html")]
struct Page {
    frame: Frame,
    id: String,
    title: String,
    on: String,
    on_href: String,
    outcome: OutcomeTag,
    request: Option<RequestInfo>,
    reason: String,
    before: String,
    after: String,
    detail: String,
    warnings: Vec<String>,
    operations: Vec<String>,
    /// Whether these are writes to the queue.
    is_on_queue: bool,
    /// The progress of a bulk action.
    reached: Option<Reached>,
    done: Vec<DoneRow>,
    more_done: String,
    not_done: Vec<ItemRow>,
    more_not_done: String,
    written: Vec<ItemRow>,
    more_written: String,
    is_going_on: bool,
    may_cancel: bool,
    /// The list that its items were selected from, or the page of its only one; empty for none.
    back: String,
    /// The page to look at next; its address is empty for none.
    next: (&'static str, String),
    audit_href: String,
    json: String,
}

/// An item that was done, and its change.
#[derive(Debug)]
struct DoneRow {
    on: String,
    href: String,
    about: About,
    before: String,
    after: String,
}

/// The outcome, in words.
#[derive(Debug)]
pub(super) struct OutcomeTag {
    pub(super) name: &'static str,
    pub(super) class: &'static str,
    description: &'static str,
}

/// Who requested it, and when.
#[derive(Debug)]
struct RequestInfo {
    actor: String,
    role: String,
    source: String,
    from: String,
    at: Moment,
    /// Empty if it was not cancelled.
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
struct ItemRow {
    on: String,
    href: String,
    why: String,
}

/// An outcome by its label.
pub(super) fn outcome(label: &str) -> OutcomeTag {
    let Some(spec) = outcome::outcome(label) else {
        return OutcomeTag {
            name: "Other",
            class: "warn",
            description: "An outcome of another version of queuekeeper.",
        };
    };
    let class = match spec.tone {
        Tone::Good => "good",
        Tone::Work => "work",
        Tone::Warn => "warn",
        Tone::Bad => "bad",
    };
    OutcomeTag { name: spec.title, class, description: spec.description }
}

/// The title of an action, by its label.
pub(super) fn action_title(label: &str) -> String {
    label.parse::<ActionKind>().map_or_else(|_| sentence(label), |action| action.title().to_owned())
}

/// A label as a title: the actions on rules are none of those on items.
fn sentence(label: &str) -> String {
    let text = visible(label).replace('_', " ");
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}

/// A target in words, and its page; empty if it has none.
pub(super) fn named(on: &str, root: &str) -> (String, String) {
    match on.parse::<Target>() {
        Ok(target) => {
            let href = target.page().map(|page| format!("{root}{page}")).unwrap_or_default();
            (target_in_words(&target), href)
        }
        Err(_) => match on.strip_prefix("policy:") {
            Some(account) => (visible(on), format!("{root}mill/policies/{}", segment(account))),
            None => (visible(on), String::new()),
        },
    }
}

impl Page {
    fn new(state: &State, action: &ActionView, role: Role, now: Timestamp) -> Self {
        let frame = Frame::new(&state.view(now), "../".to_owned(), Section::Audit);
        let id = action.id.clone().unwrap_or_default();
        let entry = id.parse().ok().and_then(|id| state.actions().ok()?.audit().entry(id));
        let request = entry.map(|entry| RequestInfo {
            actor: visible(&entry.actor),
            role: entry.role,
            source: entry.source,
            from: entry.from.unwrap_or_default(),
            at: Moment::new(entry.at, now),
            cancelled_by: entry.cancelled_by.as_deref().map(visible).unwrap_or_default(),
            took: entry.duration_seconds.map(took).unwrap_or_default(),
        });
        let (on, on_href) = named(&action.on, &frame.root);
        let is_going_on = action.outcome == "running";
        let not_done = action.not_done_items.iter().map(|item| {
            let (on, href) = named(&item.on, &frame.root);
            ItemRow { on, href, why: visible(&item.why) }
        });
        let left_out = (action.not_done + action.unknown).saturating_sub(action.not_done_items.len() as u64);
        let written = action.written.iter().map(|item| {
            let (on, href) = named(&item.on, &frame.root);
            ItemRow { on, href, why: visible(&item.what) }
        });
        let unlisted =
            if action.written.is_empty() { 0 } else { action.done.saturating_sub(action.written.len() as u64) };
        let name = |label: &Option<String>| label.as_deref().map(state_name).unwrap_or_default();
        let done = action.done_items.iter().map(|item| {
            let (on, href) = named(&item.on, &frame.root);
            let about = item.on.parse().map(|target| About::new(state, &target, &frame.root)).unwrap_or_default();
            DoneRow { on, href, about, before: name(&item.before), after: name(&item.after) }
        });
        let done: Vec<_> = done.collect();
        let unnamed = if done.is_empty() { 0 } else { action.done.saturating_sub(done.len() as u64) };
        Self {
            title: format!("{}: {on}", action_title(&action.action)),
            outcome: outcome(&action.outcome),
            reason: visible(&action.reason),
            before: name(&action.before),
            after: name(&action.after),
            detail: action.detail.as_deref().map(visible).unwrap_or_default(),
            warnings: action.warnings.iter().map(|warning| visible(warning)).collect(),
            operations: action.operations.iter().map(|line| visible(line)).collect(),
            is_on_queue: action.action.parse::<ActionKind>().is_ok(),
            reached: Reached::new(action),
            more_done: if unnamed > 0 {
                format!("and {} more, in the audit file", Count(unnamed))
            } else {
                String::new()
            },
            done,
            not_done: not_done.collect(),
            more_not_done: if left_out > 0 { format!("and {} more", Count(left_out)) } else { String::new() },
            written: written.collect(),
            more_written: if unlisted > 0 {
                format!("and {} more, in the audit file", Count(unlisted))
            } else {
                String::new()
            },
            may_cancel: is_going_on && action.count > 1 && role >= Role::Operator,
            is_going_on,
            back: back(state, action, &on_href, &frame.root, now),
            next: next(state, action, &frame.root),
            audit_href: with(&format!("{}audit", frame.root), "text", &id),
            json: format!("{}api/v1/actions/{id}", frame.root),
            request,
            on,
            on_href,
            id,
            frame,
        }
    }
}

impl Reached {
    fn new(action: &ActionView) -> Option<Self> {
        if action.count < 2 {
            return None;
        }
        let (done, not_done, unknown, of) = (action.done, action.not_done, action.unknown, action.count);
        let width = |part: u64| part as f64 / of as f64 * 100.0;
        let parts = [("done", 0, done), ("failed", done, not_done + unknown)];
        let parts = parts.into_iter().filter(|(.., count)| *count > 0).map(|(class, before, count)| Part {
            class,
            x: format!("{:.2}", width(before)),
            width: format!("{:.2}", width(count)),
        });
        // It is not complete while items are left.
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

/// Where an action came from: the list of jobs that its items were selected from, as long as it is kept, and the page
/// of the only item of others.
fn back(state: &State, action: &ActionView, on_href: &str, root: &str, now: Timestamp) -> String {
    if action.count < 2 && !on_href.is_empty() {
        return on_href.to_owned();
    }
    let id = action.id.as_ref().and_then(|id| id.parse().ok());
    let frozen = id.and_then(|id| state.actions().ok()?.frozen(id, now));
    frozen.map(|frozen| bulk::back(root, &frozen.origin.query)).unwrap_or_default()
}

/// How long something took.
pub(super) fn took(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1_000.0) } else { format!("{seconds:.2} s") }
}

/// The page to look at after a finished action.
fn next(state: &State, action: &ActionView, root: &str) -> (&'static str, String) {
    let nothing = ("", String::new());
    if action.outcome != "done" {
        return nothing;
    }
    let store = &state.shared.store;
    match (action.action.parse(), action.on.parse()) {
        // No report follows automatically then.
        (Ok(ActionKind::Resume), Ok(Target::Job(job))) => {
            let batch = store.job(job).and_then(|job| job.batch);
            let failed = batch
                .filter(|batch| store.batch(*batch).is_some_and(|found| found.batch.state == Some(BatchState::Failed)));
            failed.map_or(nothing, |batch| {
                let pairs = [("action", ActionKind::ReportAgain.label().to_owned()), ("on", batch.to_string())];
                let pairs: Pairs = pairs.map(|(name, value)| (name.to_owned(), value)).into();
                ("Report its batch again when the job is completed", address(&format!("{root}action"), &pairs))
            })
        }
        (Ok(ActionKind::Release), Ok(Target::Collection(mnemonic))) => {
            let pairs = [("state", "held"), ("collection", &*mnemonic)];
            let pairs: Pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            ("Its jobs that are still held", address(&format!("{root}jobs"), &pairs))
        }
        (Ok(_) | Err(_), _) => nothing,
    }
}
