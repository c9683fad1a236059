//! Who did what.

use askama::Template;
use jiff::Timestamp;

use super::action::state_name;
use super::actions::{OutcomeTag, action_title, named, outcome, took};
use super::frame::{Frame, Section};
use super::listing::{Choice, ColumnHead, ListRequest, Shown, choices_of, with};
use crate::actions::Source;
use crate::actions::audit::AuditOrder;
use crate::views::PageQuery;
use crate::views::audit::{AuditFilter, AuditItem, RecordedKind};
use crate::views::parameter::{Instant, Labelled as _, OneOf, Text};
use crate::views::query::Parameters as _;
use crate::views::show::{Count, Moment, brief, counted, visible};
use crate::web::api;
use crate::web::http::problem::Problem;
use crate::web::http::query::address;
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
    page: PageQuery,
    actions: Vec<Choice>,
    sources: Vec<Choice>,
    outcomes: Vec<Choice>,
    sorts: Vec<Choice>,
    /// Whether a filter is set that is folded away.
    is_open: bool,
    /// The ends of the period that is requested, as a form of a browser takes them; empty for none.
    since: String,
    until: String,
    shown: Shown,
    heads: Vec<ColumnHead>,
    rows: Vec<AuditRow>,
}

/// An action as the list shows it.
#[derive(Debug)]
struct AuditRow {
    id: String,
    href: String,
    at: Moment,
    action: String,
    outcome: OutcomeTag,
    detail: String,
    on: Vec<(String, String)>,
    /// How many targets there are beyond those named; empty for none.
    more: String,
    /// Those of them that are kept in memory.
    rest: Vec<(String, String)>,
    /// How many there are beyond these; empty for none.
    beyond: String,
    /// How many actions of a decision this is; empty for one action.
    of_decision: String,
    actor: String,
    by: String,
    reason: String,
    change: String,
    took: String,
}

impl AuditPage {
    pub(super) fn new(state: &State, list_query: (AuditFilter, PageQuery), now: Timestamp) -> Result<Self, Problem> {
        let frame = Frame::new(&state.view(now), "./".to_owned(), Section::Audit);
        let list = api::audit_list(state, &list_query.0, &list_query.1)?;
        let counts = [list.total, list.before, list.items.len()].map(|count| count as u64);
        let of = ListRequest::new("audit", ["entry", "entries"], &list_query);
        let shown = Shown::new(of, &frame.root, counts, list.next.as_deref());
        let heads = heads(&list_query, &frame.root);
        let (filter, page) = list_query;
        Ok(Self {
            actions: choices_of(filter.action, |kind: RecordedKind| action_title(kind.label())),
            sources: choices_of(filter.source, Source::label),
            outcomes: choices_of(filter.outcome, |outcome| outcome.label().replace('_', " ")),
            sorts: choices_of(Some(filter.sort), sort_in_words),
            is_open: AuditFilter { text: None, decision: None, ..filter.clone() }.is_filtered(),
            since: local_input(filter.since),
            until: local_input(filter.until),
            shown,
            heads,
            rows: list.items.iter().map(|item| AuditRow::new(item, &frame.root, now)).collect(),
            filter,
            page,
            frame,
        })
    }
}

fn heads((filter, page): &(AuditFilter, PageQuery), root: &str) -> Vec<ColumnHead> {
    let href = |sort| {
        let other = AuditFilter { sort: OneOf(sort), ..filter.clone() };
        address(&format!("{root}audit"), &[other.pairs(), page.size().pairs()].concat())
    };
    let orders = [(AuditOrder::Newest, false), (AuditOrder::Oldest, true)];
    vec![
        ColumnHead::plain("Action, target", ""),
        ColumnHead::by(("When", "num"), &orders, filter.sort.0, href),
        ColumnHead::plain("Actor", ""),
        ColumnHead::plain("State", ""),
        ColumnHead::plain("Reason, outcome", ""),
    ]
}

fn sort_in_words(order: AuditOrder) -> &'static str {
    match order {
        AuditOrder::Newest => "newest first",
        AuditOrder::Oldest => "oldest first",
    }
}

impl AuditRow {
    fn new(item: &AuditItem, root: &str, now: Timestamp) -> Self {
        let mut targets = item.targets.iter().map(|on| named(on, root));
        let on: Vec<_> = targets.by_ref().take(NAMED).collect();
        let rest: Vec<_> = targets.collect();
        let left_out = item.count.saturating_sub(on.len() as u64);
        let beyond = left_out.saturating_sub(rest.len() as u64);
        let from = item.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
        let name = |label: &Option<String>, none: &str| label.as_deref().map_or_else(|| none.to_owned(), state_name);
        let is_change = item.before.is_some() || item.after.is_some();
        let decision = item.decision.as_ref().filter(|_| item.actions > 1);
        Self {
            href: match decision {
                Some(decision) => with(&format!("{root}audit"), "decision", decision),
                None => format!("{root}actions/{}", item.id),
            },
            of_decision: match decision {
                Some(_) => format!("{} from one decision of a rule", counted(item.actions, "action", "actions")),
                None => String::new(),
            },
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
            // What follows it on a live page is the same row.
            id: decision.unwrap_or(&item.id).clone(),
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
