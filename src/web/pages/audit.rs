//! Who did what.

use askama::Template;
use jiff::Timestamp;

use super::action::state_name;
use super::actions::{Outcome, action_title, named, outcome, took};
use super::frame::{Frame, Section};
use super::listing::{Choice, choices_of};
use crate::actions::{ActionKind, Source};
use crate::views::audit::{AuditFilter, AuditItem, AuditPageQuery};
use crate::views::page::Limit;
use crate::views::parameter::{Instant, Labelled as _, Text};
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
    limit: Limit,
    actions: Vec<Choice>,
    sources: Vec<Choice>,
    outcomes: Vec<Choice>,
    summary: String,
    /// The ends of the period that is asked for, as a form of a browser takes them; empty for none.
    since: String,
    until: String,
    /// Whether a filter holds.
    is_filtered: bool,
    clear: String,
    json: String,
    csv: String,
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
    /// How many targets there are beyond those named; empty for none.
    more: String,
    /// Those of them that are kept in memory.
    rest: Vec<(String, String)>,
    /// How many there are beyond these; empty for none.
    beyond: String,
    actor: String,
    by: String,
    reason: String,
    change: String,
    took: String,
}

impl AuditPage {
    pub(super) fn new(
        state: &State,
        filter: AuditFilter,
        page: AuditPageQuery,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let frame = Frame::new(&state.view(now), "./".to_owned(), Section::Audit);
        let list = api::audit_list(state, &filter, &page)?;
        let AuditPageQuery { before, limit } = page;
        let (filters, is_filtered) = (filter.pairs(), filter.is_filtered());
        let all = [filters.clone(), AuditPageQuery { before: None, limit }.pairs()].concat();
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
        let is_first = before.is_none();
        Ok(Self {
            actions: choices_of(filter.action, ActionKind::title),
            sources: choices_of(filter.source, Source::label),
            outcomes: choices_of(filter.outcome, |outcome| outcome.label().replace('_', " ")),
            summary,
            since: local_input(filter.since),
            until: local_input(filter.until),
            is_filtered,
            clear: base.clone(),
            json: address(&format!("{}api/v1/audit", frame.root), &all),
            csv: address(&format!("{}api/v1/audit.csv", frame.root), &filters),
            rows: list.items.iter().map(|item| Row::new(item, &frame.root, now)).collect(),
            first: if is_first { String::new() } else { address(&base, &all) },
            next: next.unwrap_or_default(),
            filter,
            limit,
            frame,
        })
    }
}

impl Row {
    fn new(item: &AuditItem, root: &str, now: Timestamp) -> Self {
        let mut targets = item.targets.iter().map(|on| named(on, root));
        let on: Vec<_> = targets.by_ref().take(NAMED).collect();
        let rest: Vec<_> = targets.collect();
        let left_out = item.count.saturating_sub(on.len() as u64);
        let beyond = left_out.saturating_sub(rest.len() as u64);
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
            beyond: if beyond > 0 { format!("and {} more", Count(beyond)) } else { String::new() },
            on,
            rest,
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

/// An instant in UTC as a form of a browser takes it.
fn local_input(instant: Option<Text<Instant>>) -> String {
    instant.map(|Text(Instant(at))| at.strftime("%Y-%m-%dT%H:%M:%S").to_string()).unwrap_or_default()
}

/// What stood against it or was done of it, and who ended it.
fn detail(item: &AuditItem) -> String {
    let cancelled = item.cancelled_by.as_ref().map(|by| format!("cancelled by {}", brief(by, LONG)));
    let detail = item.detail.as_ref().map(|detail| brief(detail, LONG));
    cancelled.into_iter().chain(detail).collect::<Vec<_>>().join("; ")
}
