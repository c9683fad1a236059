//! What is done about alerts, and what keeps it from being done.

use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use jiff::Timestamp;

use super::Answer;
use super::actions::ReasonBody;
use crate::actions::{Role, Source};
use crate::alerts::NotChanged;
use crate::views::rules::RulesView;
use crate::web::State;
use crate::web::actions::reason;
use crate::web::actions::sentence;
use crate::web::http::identity::Identity;
use crate::web::http::json::Json;
use crate::web::http::params::Body;
use crate::web::http::problem::Problem;

/// `GET /api/v1/rules`: what may be done about alerts, what was, and why not.
#[utoipa::path(
    get, path = "/rules",
    responses(
        (status = 200, body = RulesView),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "This server takes no alerts"),
    ),
)]
pub(super) async fn rules(FromState(state): FromState<State>) -> Answer<RulesView> {
    let now = Timestamp::now();
    Ok(Json(RulesView::new(state.alerts()?.overview(now))))
}

/// `POST /api/v1/rules/{rule}/reset`: closes a rule's breaker.
#[utoipa::path(
    post, path = "/rules/{rule}/reset",
    params(("rule" = String, Path, description = "The rule's name", example = "make-room")),
    request_body = ReasonBody,
    responses(
        (status = 200, body = RulesView),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "There is no reason"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such rule"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "Its breaker is not open"),
    ),
)]
pub(super) async fn reset(
    FromState(state): FromState<State>,
    identity: Identity,
    Path(rule): Path<String>,
    Body(body): Body<ReasonBody>,
) -> Answer<RulesView> {
    let actor = state.authorize(&identity, Role::Operator, Source::Api)?;
    let now = Timestamp::now();
    let alerts = state.alerts()?;
    alerts.reset(&rule, &actor, &reason(&body.reason)?, now).await?;
    Ok(Json(RulesView::new(alerts.overview(now))))
}

/// `POST /api/v1/rules/pause`: stops all automatic action, of all processes, until it is unpaused.
#[utoipa::path(
    post, path = "/rules/pause",
    request_body = ReasonBody,
    responses(
        (status = 200, body = RulesView),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "There is no reason"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "This server has no rules"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "It is paused already"),
    ),
)]
pub(super) async fn pause(
    FromState(state): FromState<State>,
    identity: Identity,
    Body(body): Body<ReasonBody>,
) -> Answer<RulesView> {
    let actor = state.authorize(&identity, Role::Operator, Source::Api)?;
    let now = Timestamp::now();
    let alerts = state.alerts()?;
    alerts.pause(&actor, &reason(&body.reason)?, now).await?;
    Ok(Json(RulesView::new(alerts.overview(now))))
}

/// `POST /api/v1/rules/unpause`: lets automatic action go on.
#[utoipa::path(
    post, path = "/rules/unpause",
    request_body = ReasonBody,
    responses(
        (status = 200, body = RulesView),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "There is no reason"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "This server has no rules"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "It is not paused"),
    ),
)]
pub(super) async fn unpause(
    FromState(state): FromState<State>,
    identity: Identity,
    Body(body): Body<ReasonBody>,
) -> Answer<RulesView> {
    let actor = state.authorize(&identity, Role::Operator, Source::Api)?;
    let now = Timestamp::now();
    let alerts = state.alerts()?;
    alerts.unpause(&actor, &reason(&body.reason)?, now).await?;
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
