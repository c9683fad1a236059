//! An item of a space, with all that is known of it.

use askama::Template;
use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;

use super::super::frame::Frame;
use super::super::render;
use super::checks::{RequestedRow, request_at};
use super::overview::DecisionRow;
use super::tasks::TaskRow;
use super::{Due, errors_of, frame};
use crate::actions::mill::MillActionKind;
use crate::views::mill::{
    AsideItem, CheckItem, CopyItem, EventItem, ItemDetail, ItemName, ItemTask, SpaceItem, proof_words,
};
use crate::views::show::{Moment, Size, visible};
use crate::web::http::identity::Identity;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair};
use crate::web::state::State;

#[derive(Debug, Template)]
#[template(path = "mill_item.html")]
struct ItemPage {
    frame: Frame,
    name: String,
    space: String,
    space_href: String,
    is_done: bool,
    /// How many copies have an open bit error.
    wrong: usize,
    /// Where bit errors are listed.
    wrong_href: String,
    causes: Vec<String>,
    copies: Vec<CopyRow>,
    may_check: bool,
    requested: Vec<RequestedRow>,
    tasks: Vec<(TaskRow, &'static str)>,
    decisions: Vec<DecisionRow>,
    asides: Vec<AsideRow>,
    timelines: Vec<Timeline>,
    events: Vec<EventRow>,
}

#[derive(Debug)]
pub(super) struct CopyRow {
    pub(super) store: String,
    pub(super) size: Size,
    digest: String,
    pub(super) is_deleted: bool,
    /// Whether it has an open bit error.
    pub(super) is_wrong: bool,
    proven: Option<Moment>,
    /// How; empty where it was not.
    proof: String,
    links: CopyLinks,
}

/// Where there is more about a copy.
#[derive(Debug, Default)]
struct CopyLinks {
    /// Where a check of it is requested.
    check: String,
    /// Its decisions in the audit trail.
    trail: String,
}

/// What was put aside before a copy was changed.
#[derive(Debug)]
struct AsideRow {
    store: String,
    before: String,
    kept_as: String,
    since: Moment,
    until: Due,
    /// When and how it ended, where it has.
    ended: Option<(Moment, &'static str)>,
}

/// The checks of a copy, the newest first.
#[derive(Debug)]
struct Timeline {
    store: String,
    checks: Vec<CheckRow>,
}

#[derive(Debug)]
struct CheckRow {
    at: Moment,
    what: String,
    detail: String,
    /// The colour of its dot.
    class: &'static str,
}

#[derive(Debug)]
struct EventRow {
    store: String,
    change: &'static str,
    user: String,
    size: String,
    why: String,
    at: Moment,
}

/// `GET /mill/spaces/{account}/{space}/item`: one item, and why it is not done.
pub(in crate::web::pages) async fn show(
    FromState(state): FromState<State>,
    who: Identity,
    Path((account, space)): Path<(String, String)>,
    Params(name): Params<ItemName>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let ItemDetail {
        account,
        space,
        item,
        is_done,
        causes,
        tasks,
        decisions,
        asides,
        checks,
        requested_checks,
        events,
    } = state.mill()?.item(&account, &space, &name).await?;
    let frame = frame(&state, "../../../../", now);
    let task = |task: &ItemTask| (TaskRow::new(&task.task, &frame.root, now), task.state);
    let event = |event: EventItem| EventRow {
        store: event.store,
        change: event.change,
        user: visible(&event.user),
        size: event.size_bytes.map(|size| Size::new(size).short).unwrap_or_default(),
        why: event.why.as_deref().map(visible).unwrap_or_default(),
        at: Moment::new(event.time, now),
    };
    let key = name.key.0.as_ref().map(ToString::to_string).unwrap_or_default();
    let links = |store: &str| CopyLinks {
        check: request_at(&frame.root, &account, store, &space, &item.key_encoded),
        trail: address(
            &format!("{}audit", frame.root),
            &[pair("target", format!("copy:{account}/{store}/{space}/{key}"))],
        ),
    };
    let page = ItemPage {
        wrong: item.copies.iter().filter(|copy| copy.bit_error.is_some()).count(),
        wrong_href: errors_of(&frame.root, &account),
        space_href: format!("{}mill/spaces/{account}/{space}", frame.root),
        space: format!("{account}/{space}"),
        tasks: tasks.iter().map(task).collect(),
        decisions: decisions.iter().map(|decision| DecisionRow::new(decision, now)).collect(),
        asides: asides.into_iter().map(|aside| AsideRow::new(aside, now)).collect(),
        events: events.into_iter().map(event).collect(),
        causes: causes.iter().map(|cause| visible(cause)).collect(),
        timelines: item.copies.iter().map(|copy| Timeline::new(copy, &checks, now)).collect(),
        may_check: state.rights(&who) >= MillActionKind::CheckContent.role(),
        requested: requested_checks.iter().map(|check| RequestedRow::new(check, &frame.root, now)).collect(),
        copies: copies(&item, now, links),
        name: item.key,
        is_done,
        frame,
    };
    Ok(render(StatusCode::OK, &page))
}

/// The copies of an item as lists show them.
pub(super) fn listed(item: &SpaceItem) -> Vec<CopyRow> {
    copies(item, Timestamp::UNIX_EPOCH, |_store| CopyLinks::default())
}

fn copies(item: &SpaceItem, now: Timestamp, links: impl Fn(&str) -> CopyLinks) -> Vec<CopyRow> {
    let row = |copy: &CopyItem| CopyRow {
        store: copy.store.clone(),
        size: Size::new(copy.size_bytes),
        digest: copy.digest.clone(),
        is_deleted: copy.is_deleted,
        is_wrong: copy.bit_error.is_some(),
        proven: copy.proven.map(|proven| Moment::new(proven, now)),
        proof: copy.proof.as_deref().map(|proof| format!("by {}", proof_words(proof))).unwrap_or_default(),
        links: links(&copy.store),
    };
    item.copies.iter().map(row).collect()
}

impl Timeline {
    fn new(copy: &CopyItem, checks: &[CheckItem], now: Timestamp) -> Self {
        let row = |check: &CheckItem| CheckRow {
            at: Moment::new(check.time, now),
            what: check.words(),
            detail: check.detail.as_deref().map(visible).unwrap_or_default(),
            class: match (check.is_success(), check.findings.is_empty()) {
                (true, _) => "good",
                (false, true) => "warn",
                (false, false) => "bad",
            },
        };
        let of_copy = checks.iter().filter(|check| check.store == copy.store);
        Self { store: copy.store.clone(), checks: of_copy.map(row).collect() }
    }
}

impl AsideRow {
    fn new(aside: AsideItem, now: Timestamp) -> Self {
        let AsideItem { store, kept_as, before, since, until, ended, outcome } = aside;
        Self {
            store,
            before,
            kept_as,
            since: Moment::new(since, now),
            until: Due::new(until, now),
            ended: ended.zip(outcome).map(|(at, outcome)| (Moment::new(at, now), outcome)),
        }
    }
}
