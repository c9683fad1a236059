//! The audit trail: recent actions, who requested them, and their outcome.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::actions::audit::{Entry, EntryPage};
use crate::actions::outcome::RUNNING;

mod filter;

pub(crate) use filter::{AuditFilter, RecordedKind};

/// An action in the audit trail, or all actions of one decision of a rule that match.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct AuditItem {
    /// Its id; of several actions of a decision, that of the first in the order of the list.
    #[schema(example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")]
    pub(crate) id: String,
    /// The decision of a rule that it belongs to; null for none.
    pub(crate) decision: Option<String>,
    /// How many actions this is. A rule acts on each item on its own: with `decision`, they are listed one by one.
    pub(crate) actions: u64,
    /// When it was requested.
    pub(crate) at: Timestamp,
    /// Who requested it: a user, a token, a rule, or `user@host`.
    #[schema(example = "alice")]
    pub(crate) actor: String,
    /// The role of the actor.
    #[schema(example = "operator")]
    pub(crate) role: String,
    /// How it was requested: `web`, `api`, `alert` or `cli`.
    #[schema(example = "web")]
    pub(crate) source: String,
    /// The address of the client; null if unknown.
    pub(crate) from: Option<String>,
    /// Which action.
    #[schema(example = "resume")]
    pub(crate) action: String,
    /// Its targets; of many, the first twenty.
    pub(crate) targets: Vec<String>,
    /// How many targets there are.
    pub(crate) count: u64,
    /// The reason given by the actor.
    pub(crate) reason: String,
    /// The state before; null for none.
    pub(crate) before: Option<String>,
    /// The state after, intended or actual; null for none.
    pub(crate) after: Option<String>,
    /// The outcome: `done`, `cancelled`, `in_part`, `running`, or why it was refused or failed.
    #[schema(example = "done")]
    pub(crate) outcome: String,
    /// What was done, in figures, or why it was refused; null for neither.
    pub(crate) detail: Option<String>,
    /// Who cancelled it; null if it was not cancelled.
    pub(crate) cancelled_by: Option<String>,
    /// How long it took; null while it is running.
    pub(crate) duration_seconds: Option<f64>,
}

/// A page of actions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct AuditList {
    /// How many match on all pages, of those in memory; the actions of a decision of a rule count as one.
    pub(crate) total: usize,
    /// How many of them come before this page.
    pub(crate) before: usize,
    /// The cursor of the next page; null on the last one.
    pub(crate) next: Option<String>,
    /// The actions of this page.
    pub(crate) items: Vec<AuditItem>,
}

impl AuditItem {
    fn new(entry: Entry) -> Self {
        Self {
            id: entry.id.to_string(),
            decision: entry.decision.map(|decision| decision.to_string()),
            actions: entry.actions,
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

impl AuditList {
    pub(crate) fn new(page: EntryPage) -> Self {
        let last = page.entries.last().filter(|_| page.has_more).map(|entry| entry.id.to_string());
        let items = page.entries.into_iter().map(AuditItem::new).collect();
        Self { total: page.total, before: page.before, next: last, items }
    }
}
