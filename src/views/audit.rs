//! What was requested lately, by whom, and what came of it.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::actions::audit::{Entry, EntryPage};

mod filter;

pub(crate) use filter::AuditFilter;

/// An action as the audit trail has it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct AuditItem {
    /// Its id.
    #[schema(example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")]
    pub(crate) id: String,
    /// When it was given.
    pub(crate) at: Timestamp,
    /// Who gave it: a user, a token, a rule, or `user@host`.
    #[schema(example = "alice")]
    pub(crate) actor: String,
    /// With what role.
    #[schema(example = "operator")]
    pub(crate) role: String,
    /// By what means: `web`, `api`, `alert` or `cli`.
    #[schema(example = "web")]
    pub(crate) source: String,
    /// The address that he asked from; null where that is not known.
    pub(crate) from: Option<String>,
    /// What was to be done.
    #[schema(example = "resume")]
    pub(crate) action: String,
    /// To what; of many, the first twenty.
    pub(crate) targets: Vec<String>,
    /// To how many.
    pub(crate) count: u64,
    /// Why.
    pub(crate) reason: String,
    /// The state before; null where there is none.
    pub(crate) before: Option<String>,
    /// The state after, as it was meant or as it came; null where there is none.
    pub(crate) after: Option<String>,
    /// What came of it: `done`, `cancelled`, `in_part`, why not, or `running`.
    #[schema(example = "done")]
    pub(crate) outcome: String,
    /// What stood against it, or what was done in figures; null for neither.
    pub(crate) detail: Option<String>,
    /// Who ended it before it was whole; null where nobody did.
    pub(crate) cancelled_by: Option<String>,
    /// How long it took; null where it is going on.
    pub(crate) duration_seconds: Option<f64>,
}

/// A page of actions, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct AuditList {
    /// How many match on all pages, of those that are remembered.
    pub(crate) total: usize,
    /// What `before` has to be for the page behind; null on the last one.
    pub(crate) next: Option<String>,
    /// The actions of this page.
    pub(crate) items: Vec<AuditItem>,
}

impl AuditItem {
    fn new(entry: Entry) -> Self {
        Self {
            id: entry.id.to_string(),
            at: entry.at,
            actor: entry.actor,
            role: entry.role,
            source: entry.source,
            from: entry.from,
            action: entry.action,
            targets: entry.targets,
            count: entry.count,
            reason: entry.reason,
            before: entry.before,
            after: entry.after,
            outcome: entry.outcome.unwrap_or_else(|| RUNNING.to_owned()),
            detail: entry.detail,
            cancelled_by: entry.cancelled_by,
            duration_seconds: entry.duration_seconds,
        }
    }
}

/// The outcome of a running action.
const RUNNING: &str = "running";

/// The outcomes that an action which is in the audit trail may have.
pub(crate) const OUTCOMES: [&str; 9] =
    ["done", RUNNING, "cancelled", "in_part", "conflict", "missing", "unavailable", "failed", "unknown"];

impl AuditList {
    pub(crate) fn new(page: EntryPage) -> Self {
        let last = page.entries.last().filter(|_| page.has_more).map(|entry| entry.id.to_string());
        Self { total: page.total, next: last, items: page.entries.into_iter().map(AuditItem::new).collect() }
    }
}
