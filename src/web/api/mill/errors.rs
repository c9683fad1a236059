//! Bit errors, and what is decided about them.

use axum::extract::State as FromState;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::actions::Source;
use crate::actions::mill::{Resolution, StopChange, WrongCopy};
use crate::views::actions::ActionView;
use crate::views::mill::{ErrorFilter, ErrorList};
use crate::web::actions::reason;
use crate::web::http::identity::Identity;
use crate::web::http::json::Json;
use crate::web::http::params::{Body, Params};
use crate::web::state::State;

/// All of them.
pub(super) fn router() -> OpenApiRouter<State> {
    OpenApiRouter::new()
        .routes(routes!(mill_errors))
        .routes(routes!(repair_mill_copy))
        .routes(routes!(resolve_mill_error))
        .routes(routes!(stop_mill_repairs))
        .routes(routes!(resume_mill_repairs))
}

/// A repair to request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RepairBody {
    /// The number of the bit error.
    #[schema(example = 4711)]
    number: u64,
    /// Why, in a few words.
    #[schema(example = "the disk was replaced")]
    reason: String,
}

/// What is decided about a bit error.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResolveBody {
    /// The number of the bit error.
    #[schema(example = 4711)]
    number: u64,
    /// What resolves it.
    resolution: Resolution,
    /// Why, in a few words.
    #[schema(example = "the file was replaced by its owner")]
    reason: String,
}

/// Where automatic repairs are stopped, or resumed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopBody {
    /// The store; without it, all stores.
    #[serde(default)]
    #[schema(example = "replica")]
    store: String,
    /// Why, in a few words.
    #[schema(example = "the disks are being replaced")]
    reason: String,
}

/// `POST /api/v1/mill/repairs/stop`: stops automatic repairs in a store or in all of them, as an operator.
#[utoipa::path(
    post, path = "/mill/repairs/stop",
    request_body = StopBody,
    responses(
        (status = 200, body = ActionView),
        (status = 404, description = "No account has such a store"),
        (status = 409, description = "They are already stopped; nothing was done"),
    ),
)]
pub(super) async fn stop_mill_repairs(
    FromState(state): FromState<State>,
    who: Identity,
    Body(body): Body<StopBody>,
) -> Answer<ActionView> {
    change_stop(&state, &who, StopChange::Stop, &body).await
}

/// `POST /api/v1/mill/repairs/resume`: resumes automatic repairs, as an admin.
#[utoipa::path(
    post, path = "/mill/repairs/resume",
    request_body = StopBody,
    responses(
        (status = 200, body = ActionView),
        (status = 404, description = "No account has such a store"),
        (status = 409, description = "They are not stopped; nothing was done"),
    ),
)]
pub(super) async fn resume_mill_repairs(
    FromState(state): FromState<State>,
    who: Identity,
    Body(body): Body<StopBody>,
) -> Answer<ActionView> {
    change_stop(&state, &who, StopChange::Resume, &body).await
}

async fn change_stop(state: &State, who: &Identity, change: StopChange, body: &StopBody) -> Answer<ActionView> {
    let actor = state.authorize(who, change.role(), Source::Api)?;
    let reason = reason(&body.reason)?;
    let entry = state.mill_actions()?.change_stop(change, &body.store, &actor, &reason).await?;
    Ok(Json(ActionView::remembered(entry)))
}

/// `GET /api/v1/mill/errors`: bit errors, and what can be done about them.
#[utoipa::path(
    get, path = "/mill/errors",
    params(ErrorFilter),
    responses((status = 200, body = ErrorList)),
)]
pub(super) async fn mill_errors(
    FromState(state): FromState<State>,
    Params(filter): Params<ErrorFilter>,
) -> Answer<ErrorList> {
    Ok(Json(state.mill()?.errors(&filter).await?))
}

/// `POST /api/v1/mill/errors/repair`: has a copy repaired from another one, as an operator.
///
/// A worker reads another copy, and writes its content if content index and audit log agree on both copies; the damaged
/// content is kept aside.
#[utoipa::path(
    post, path = "/mill/errors/repair",
    request_body = RepairBody,
    responses(
        (status = 200, body = ActionView),
        (status = 404, description = "There is no such open bit error"),
        (status = 409, description = "A repair of the copy has not ended, or another copy cannot repair it; nothing was done"),
    ),
)]
pub(super) async fn repair_mill_copy(
    FromState(state): FromState<State>,
    who: Identity,
    Body(body): Body<RepairBody>,
) -> Answer<ActionView> {
    let actor = state.authorize(&who, Resolution::Repair.role(), Source::Api)?;
    let reason = reason(&body.reason)?;
    let actions = state.mill_actions()?;
    let entry = actions.resolve(&WrongCopy::Error(body.number), Resolution::Repair, &actor, &reason).await?;
    Ok(Json(ActionView::remembered(entry)))
}

/// `POST /api/v1/mill/errors/resolve`: has a bit error resolved, as an operator; as an admin if the record is changed.
///
/// A worker reads the copy, and carries out the resolution if it still fits what it finds. `resolutions` of a bit error
/// lists the possible ones.
#[utoipa::path(
    post, path = "/mill/errors/resolve",
    request_body = ResolveBody,
    responses(
        (status = 200, body = ActionView),
        (status = 404, description = "There is no such open bit error"),
        (status = 409, description = "An earlier decision is still being executed, or this resolution is not possible; nothing was done"),
    ),
)]
pub(super) async fn resolve_mill_error(
    FromState(state): FromState<State>,
    who: Identity,
    Body(body): Body<ResolveBody>,
) -> Answer<ActionView> {
    let actor = state.authorize(&who, body.resolution.role(), Source::Api)?;
    let reason = reason(&body.reason)?;
    let actions = state.mill_actions()?;
    let entry = actions.resolve(&WrongCopy::Error(body.number), body.resolution, &actor, &reason).await?;
    Ok(Json(ActionView::remembered(entry)))
}
