//! Which entries of the audit trail.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::actions::audit::{ActionId, AuditOrder, AuditQuery};
use crate::actions::mill::MillActionKind;
use crate::actions::outcome::OUTCOMES;
use crate::actions::{ActionKind, Source};
use crate::mirror::find::InvalidCursor;
use crate::views::error::ViewError;
use crate::views::page::PageQuery;
use crate::views::parameter::{Instant, OneOf, SearchFor, Text, labelled};

/// What came of an action, as an index of [`OUTCOMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutcomeFilter(usize);

/// The kind of an action, on the queue or on the mill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordedKind {
    Queue(ActionKind),
    Mill(MillActionKind),
}

impl RecordedKind {
    fn all() -> Vec<Self> {
        let of_mill = MillActionKind::ALL.into_iter().map(Self::Mill);
        ActionKind::ALL.into_iter().map(Self::Queue).chain(of_mill).collect()
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Queue(kind) => kind.label(),
            Self::Mill(kind) => kind.label(),
        }
    }
}

labelled! {
    RecordedKind: RecordedKind::all(), RecordedKind::label;
    Source: Source::ALL, Source::label;
    AuditOrder: AuditOrder::ALL, AuditOrder::label, Self::default();
    OutcomeFilter: (0..OUTCOMES.len()).map(OutcomeFilter).collect::<Vec<_>>(), |outcome: OutcomeFilter| OUTCOMES[outcome.0].label;
}

// The derived parameter descriptions resolve aliases, but not type arguments.
type Action = OneOf<RecordedKind>;
type SourceParameter = OneOf<Source>;
type OutcomeName = OneOf<OutcomeFilter>;
type Sort = OneOf<AuditOrder>;

/// Which actions, and in which order; all filters must match.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct AuditFilter {
    /// With this text in actor, targets, reason, outcome, id or decision, case-insensitive.
    #[param(inline)]
    pub(crate) text: Option<SearchFor>,

    /// Requested by this actor.
    #[param(example = "alice")]
    pub(crate) actor: Option<String>,

    /// Of this action.
    #[param(inline)]
    pub(crate) action: Option<Action>,

    /// On this target: an id, or the name of a collection, queue or lock, with or without its kind before a colon. A
    /// batch stands for its jobs too, those that exist. Of bulk actions on more than twenty targets, the last million
    /// targets are found.
    #[param(example = "jid0000000042")]
    pub(crate) target: Option<String>,

    /// Of this decision of a rule, its actions one by one.
    #[param(value_type = Option<String>, example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")]
    pub(crate) decision: Option<Text<ActionId>>,

    /// Requested at this time or later; UTC unless an offset is given.
    #[param(value_type = Option<String>, example = "2026-11-22T08:00Z")]
    pub(crate) since: Option<Text<Instant>>,

    /// Requested before this time; UTC unless an offset is given.
    #[param(value_type = Option<String>, example = "2026-11-23T08:00Z")]
    pub(crate) until: Option<Text<Instant>>,

    /// Requested this way.
    #[param(inline)]
    pub(crate) source: Option<SourceParameter>,

    /// With this outcome; `running` for actions that have not finished.
    #[param(inline)]
    pub(crate) outcome: Option<OutcomeName>,

    /// The sort order: the newest or the oldest first.
    #[param(inline)]
    pub(crate) sort: Sort,
}

/// The last action of a page, as its cursor.
struct Last(ActionId);

impl FromStr for Last {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        text.parse().map(Self).map_err(|_| InvalidCursor)
    }
}

impl AuditFilter {
    /// The target, without white space around it.
    pub(crate) fn target(&self) -> Option<&str> {
        self.target.as_deref().map(str::trim).filter(|target| !target.is_empty())
    }

    /// The query of the audit trail. `with_it` are further targets for which the requested one stands.
    ///
    /// # Errors
    /// For a cursor of another list.
    pub(crate) fn query(&self, with_it: Vec<String>, page: &PageQuery) -> Result<AuditQuery, ViewError> {
        let Self { text, actor, action, decision, since, until, source, outcome, sort, .. } = self;
        Ok(AuditQuery {
            text: text.as_ref().and_then(SearchFor::owned),
            actor: actor.clone(),
            action: action.map(|action| action.to_string()),
            targets: self.target().map(str::to_owned).into_iter().chain(with_it).collect(),
            decision: decision.map(|Text(decision)| decision),
            since: since.map(|since| since.0.0),
            until: until.map(|until| until.0.0),
            source: source.map(|source| source.to_string()),
            outcome: outcome.map(|outcome| outcome.to_string()),
            order: sort.0,
            after: page.after()?.map(|Last(id)| id),
            limit: page.limit.get(),
        })
    }
}
