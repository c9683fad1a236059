//! Which entries of the audit trail.

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::OUTCOMES;
use crate::actions::audit::{ActionId, AuditQuery};
use crate::actions::{ActionKind, Source};
use crate::views::error::ViewError;
use crate::views::page::Limit;
use crate::views::parameter::{OneOf, SearchFor, labelled};

/// What came of an action, as an index of [`OUTCOMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome(usize);

labelled! {
    ActionKind: ActionKind::ALL, ActionKind::label;
    Source: Source::ALL, Source::label;
    Outcome: (0..OUTCOMES.len()).map(Outcome).collect::<Vec<_>>(), |outcome: Outcome| OUTCOMES[outcome.0];
}

// The derived parameter descriptions resolve aliases, but not type arguments.
type Action = OneOf<ActionKind>;
type SourceParameter = OneOf<Source>;
type OutcomeName = OneOf<Outcome>;

/// Which actions, and which page of them; all filters must match.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct AuditFilter {
    /// With this text in actor, targets, reason, outcome or id, case-insensitive.
    #[param(inline)]
    pub(crate) text: Option<SearchFor>,

    /// Requested by this actor.
    #[param(example = "alice")]
    pub(crate) actor: Option<String>,

    /// Of this action.
    #[param(inline)]
    pub(crate) action: Option<Action>,

    /// Requested this way.
    #[param(inline)]
    pub(crate) source: Option<SourceParameter>,

    /// With this outcome; `running` for actions that have not finished.
    #[param(inline)]
    pub(crate) outcome: Option<OutcomeName>,

    /// Older than the action of this id.
    pub(crate) before: Option<String>,

    /// How many actions the page has at most.
    #[param(inline)]
    pub(crate) limit: Limit,
}

impl AuditFilter {
    /// The question to the audit trail.
    ///
    /// # Errors
    /// When `before` is no action's id.
    pub(crate) fn query(&self) -> Result<AuditQuery, ViewError> {
        let Self { text, actor, action, source, outcome, before, limit } = self;
        let id = |id: &String| id.parse::<ActionId>().map_err(|_| ViewError::value("before", id));
        Ok(AuditQuery {
            text: text.as_ref().and_then(SearchFor::owned),
            actor: actor.clone(),
            action: action.map(|action| action.to_string()),
            source: source.map(|source| source.to_string()),
            outcome: outcome.map(|outcome| outcome.to_string()),
            before: before.as_ref().map(id).transpose()?,
            limit: limit.get(),
        })
    }
}
