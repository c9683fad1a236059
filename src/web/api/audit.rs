//! The audit trail.

use axum::extract::State as FromState;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Answer;
use crate::actions::audit::AuditQuery;
use crate::actions::{ActionKind, Source};
use crate::views::audit::{AuditList, OUTCOMES};
use crate::web::State;
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::http::query::{LIMIT, limit, refuse};
use crate::web::lists::{choose, given, text};

/// The filter of the audit trail. All that is given must hold.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct AuditFilter {
    /// With this text in actor, targets, reason, outcome or id, whatever the case of its letters.
    #[param(max_length = 200)]
    pub(in crate::web) text: Option<String>,
    /// Given by this actor.
    #[param(example = "alice")]
    pub(in crate::web) actor: Option<String>,
    /// Of this action.
    pub(in crate::web) action: Option<String>,
    /// That came by these means.
    pub(in crate::web) source: Option<String>,
    /// With this outcome; `running` for actions without one.
    pub(in crate::web) outcome: Option<String>,
    /// Older than this order.
    pub(in crate::web) before: Option<String>,
    /// How many actions the page has at most.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 500, default = 50)]
    pub(in crate::web) limit: Option<String>,
}

impl AuditFilter {
    /// The page that is asked for. A server that takes no actions has none to tell of.
    pub(in crate::web) fn list(&self, of: &State) -> Result<AuditList, Problem> {
        let own = |value: Option<&str>| value.map(str::to_owned);
        let before = given(self.before.as_ref());
        let query = AuditQuery {
            text: text(self.text.as_ref())?,
            action: own(
                choose("action", self.action.as_ref(), &ActionKind::ALL, ActionKind::label)?.map(ActionKind::label)
            ),
            actor: own(given(self.actor.as_ref())),
            source: own(choose("source", self.source.as_ref(), &Source::ALL, Source::label)?.map(Source::label)),
            outcome: own(choose("outcome", self.outcome.as_ref(), &OUTCOMES, |outcome| outcome)?),
            before: before.map(|id| id.parse().map_err(|_| refuse("before", id))).transpose()?,
            limit: given(self.limit.as_ref()).map_or(Ok(LIMIT), limit)?,
        };
        Ok(of.actions().map_or_else(|_| AuditList::default(), |actions| AuditList::new(actions.audit().find(&query))))
    }
}

/// `GET /api/v1/audit`: who requested what lately, the newest first, filtered and paged.
///
/// The newest ten thousand actions are remembered; the audit file has all of them.
#[utoipa::path(
    get, path = "/audit",
    params(AuditFilter),
    responses(
        (status = 200, body = AuditList),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "A parameter is not taken"),
    ),
)]
pub(super) async fn audit(
    FromState(state): FromState<State>,
    Params(filter): Params<AuditFilter>,
) -> Answer<AuditList> {
    Ok(Json(filter.list(&state)?))
}
