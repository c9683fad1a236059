//! Who did what.

use askama::Template;
use jiff::Timestamp;

use super::action::state_name;
use super::actions::{Outcome, action_title, named, outcome, took};
use super::frame::{Frame, Section};
use super::listing::{Choice, choices_of};
use crate::actions::{ActionKind, Source};
use crate::views::audit::{AuditFilter, AuditItem};
use crate::views::page::Limit;
use crate::views::parameter::Labelled as _;
use crate::views::query::Parameters as _;
use crate::views::show::{Count, Moment, brief, counted, visible};
use crate::web::api;
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair};
use crate::web::state::State;

/// How many characters of a text stand in the list.
const LONG: usize = 240;

/// How many targets of an action are named.
const NAMED: usize = 3;

/// The audit trail, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "audit.html")]
pub(super) struct AuditPage {
    frame: Frame,
    filter: AuditFilter,
    actions: Vec<Choice>,
    sources: Vec<Choice>,
    outcomes: Vec<Choice>,
    summary: String,
    /// Whether a filter holds.
    is_filtered: bool,
    clear: String,
    json: String,
    rows: Vec<Row>,
    /// The newest actions; empty where those are shown.
    first: String,
    /// The page behind; empty on the last one.
    next: String,
}

/// An action as the list shows it.
#[derive(Debug)]
struct Row {
    id: String,
    href: String,
    at: Moment,
    action: String,
    outcome: Outcome,
    detail: String,
    on: Vec<(String, String)>,
    more: String,
    actor: String,
    by: String,
    reason: String,
    change: String,
    took: String,
}

impl AuditPage {
    pub(super) fn new(state: &State, filter: AuditFilter, now: Timestamp) -> Result<Self, Problem> {
        let frame = Frame::new(&state.view(now), "./".to_owned(), Section::Audit);
        let list = api::audit_list(state, &filter)?;
        let first = AuditFilter { before: None, ..filter.clone() };
        let (all, is_filtered) =
            (first.pairs(), AuditFilter { limit: Limit::default(), ..first.clone() }.is_filtered());
        let base = format!("{}audit", frame.root);
        let next = list.next.as_ref().map(|next| address(&base, all.iter().chain([&pair("before", next)])));
        let total = list.total as u64;
        let summary = match (total, is_filtered) {
            (0, false) => "No action has been requested yet.".to_owned(),
            (0, true) => "No action matches.".to_owned(),
            (1, true) => "1 action matches.".to_owned(),
            (total, true) => format!("{} actions match.", Count(total)),
            (total, false) => format!("{}, the newest first.", counted(total, "action", "actions")),
        };
        let is_first = filter.before.is_none();
        Ok(Self {
            actions: choices_of(filter.action, ActionKind::title),
            sources: choices_of(filter.source, Source::label),
            outcomes: choices_of(filter.outcome, |outcome| outcome.label().replace('_', " ")),
            summary,
            is_filtered,
            clear: base.clone(),
            json: address(&format!("{}api/v1/audit", frame.root), &all),
            rows: list.items.iter().map(|item| Row::new(item, &frame.root, now)).collect(),
            first: if is_first { String::new() } else { address(&base, &all) },
            next: next.unwrap_or_default(),
            filter,
            frame,
        })
    }
}

impl Row {
    fn new(item: &AuditItem, root: &str, now: Timestamp) -> Self {
        let on: Vec<_> = item.targets.iter().take(NAMED).map(|on| named(on, root)).collect();
        let left_out = item.count.saturating_sub(on.len() as u64);
        let from = item.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
        let name = |label: &Option<String>, none: &str| label.as_deref().map_or_else(|| none.to_owned(), state_name);
        let is_change = item.before.is_some() || item.after.is_some();
        Self {
            href: format!("{root}actions/{}", item.id),
            at: Moment::new(item.at, now),
            action: action_title(&item.action),
            outcome: outcome(&item.outcome),
            detail: detail(item),
            more: if left_out > 0 { format!("and {} more", Count(left_out)) } else { String::new() },
            on,
            actor: visible(&item.actor),
            by: format!("{}, by {}{from}", item.role, item.source),
            reason: brief(&item.reason, LONG),
            change: if is_change {
                format!("{} → {}", name(&item.before, "none"), name(&item.after, "gone"))
            } else {
                String::new()
            },
            took: item.duration_seconds.map(|seconds| format!("in {}", took(seconds))).unwrap_or_default(),
            id: item.id.clone(),
        }
    }
}

/// What stood against it or was done of it, and who ended it.
fn detail(item: &AuditItem) -> String {
    let cancelled = item.cancelled_by.as_ref().map(|by| format!("cancelled by {}", brief(by, LONG)));
    let detail = item.detail.as_ref().map(|detail| brief(detail, LONG));
    cancelled.into_iter().chain(detail).collect::<Vec<_>>().join("; ")
}
