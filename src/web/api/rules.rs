//! The rules for alerts: their state, the reset of a breaker, and the pause of automatic actions.

use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use jiff::Timestamp;

use super::Answer;
use super::actions::ReasonBody;
use crate::actions::{Role, Source};
use crate::alerts::NotChanged;
use crate::views::rules::RulesView;
use crate::web::actions::reason;
use crate::web::actions::sentence;
use crate::web::http::identity::Identity;
use crate::web::http::json::Json;
use crate::web::http::params::Body;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// `GET /api/v1/rules`: the rules for alerts, their state and their recent decisions.
#[utoipa::path(
    get, path = "/rules",
    responses(
        (status = 200, body = RulesView),
        (status = 404, description = "This server accepts no alerts"),
    ),
)]
pub(super) async fn rules(FromState(state): FromState<State>) -> Answer<RulesView> {
    let now = Timestamp::now();
    Ok(Json(RulesView::new(state.alerts()?.overview(now))))
}

/// `POST /api/v1/rules/{rule}/reset`: resets the breaker of a rule.
#[utoipa::path(
    post, path = "/rules/{rule}/reset",
    params(("rule" = String, Path, description = "The rule's name", example = "make-room")),
    request_body = ReasonBody,
    responses(
        (status = 200, body = RulesView),
        (status = 404, description = "Unknown rule"),
        (status = 409, description = "Its breaker is not open"),
    ),
)]
pub(super) async fn reset(
    FromState(state): FromState<State>,
    identity: Identity,
    Path(rule): Path<String>,
    Body(body): Body<ReasonBody>,
) -> Answer<RulesView> {
    change(&state, &identity, &body, Change::Reset(&rule)).await
}

/// `POST /api/v1/rules/pause`: pauses automatic actions of all processes.
#[utoipa::path(
    post, path = "/rules/pause",
    request_body = ReasonBody,
    responses(
        (status = 200, body = RulesView),
        (status = 404, description = "This server has no rules"),
        (status = 409, description = "Automatic actions are already paused"),
    ),
)]
pub(super) async fn pause(
    FromState(state): FromState<State>,
    identity: Identity,
    Body(body): Body<ReasonBody>,
) -> Answer<RulesView> {
    change(&state, &identity, &body, Change::Pause).await
}

/// `POST /api/v1/rules/unpause`: resumes automatic actions.
#[utoipa::path(
    post, path = "/rules/unpause",
    request_body = ReasonBody,
    responses(
        (status = 200, body = RulesView),
        (status = 404, description = "This server has no rules"),
        (status = 409, description = "Automatic actions are not paused"),
    ),
)]
pub(super) async fn unpause(
    FromState(state): FromState<State>,
    identity: Identity,
    Body(body): Body<ReasonBody>,
) -> Answer<RulesView> {
    change(&state, &identity, &body, Change::Unpause).await
}

/// A change of how rules act.
enum Change<'a> {
    Reset(&'a str),
    Pause,
    Unpause,
}

/// Changes how rules act, and responds with the state after the change.
async fn change(state: &State, identity: &Identity, body: &ReasonBody, change: Change<'_>) -> Answer<RulesView> {
    let actor = state.authorize(identity, Role::Operator, Source::Api)?;
    let now = Timestamp::now();
    let (alerts, reason) = (state.alerts()?, reason(&body.reason)?);
    match change {
        Change::Reset(rule) => alerts.reset(rule, &actor, &reason, now).await?,
        Change::Pause => alerts.pause(&actor, &reason, now).await?,
        Change::Unpause => alerts.unpause(&actor, &reason, now).await?,
    }
    Ok(Json(RulesView::new(alerts.overview(now))))
}

impl From<NotChanged> for Problem {
    fn from(error: NotChanged) -> Self {
        let why = sentence(&error.to_string());
        match error {
            NotChanged::Refused(refusal) => refusal.into(),
            NotChanged::Already(_) => Self::new(StatusCode::CONFLICT, why),
            NotChanged::Coordination(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, why),
        }
    }
}
