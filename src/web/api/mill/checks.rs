//! Checks on request.

use axum::extract::State as FromState;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::actions::Source;
use crate::actions::mill::MillActionKind;
use crate::views::ViewError;
use crate::views::actions::ActionView;
use crate::views::mill::{CheckFilter, CheckList, CheckPlan, CheckScope};
use crate::web::actions::reason;
use crate::web::http::identity::Identity;
use crate::web::http::json::Json;
use crate::web::http::params::{Body, Params};
use crate::web::state::State;

/// All of them.
pub(super) fn router() -> OpenApiRouter<State> {
    OpenApiRouter::new().routes(routes!(mill_checks, ask_mill_check)).routes(routes!(plan_mill_check))
}

/// A check to request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckBody {
    /// The account.
    #[schema(example = "account1")]
    account: String,
    /// The store: its name, or its number in policies.
    #[schema(example = "replica")]
    store: String,
    /// The space, as the account names it; without it, all spaces.
    #[serde(default)]
    #[schema(example = "theses")]
    space: String,
    /// The key of the item, percent-encoded: `key_encoded` of a list; without it, all of the space.
    #[serde(default)]
    #[schema(example = "thesis/page-1.tif")]
    key: String,
    /// Why, in a few words.
    #[schema(example = "the disk was replaced")]
    reason: String,
}

/// `GET /api/v1/mill/checks`: requested checks, their progress, and what they found.
#[utoipa::path(
    get, path = "/mill/checks",
    params(CheckFilter),
    responses((status = 200, body = CheckList)),
)]
pub(super) async fn mill_checks(
    FromState(state): FromState<State>,
    Params(filter): Params<CheckFilter>,
) -> Answer<CheckList> {
    Ok(Json(state.mill()?.requested_checks(&filter).await?))
}

/// `GET /api/v1/mill/checks/plan`: what a check would take: items, requests, bytes, and what that costs.
#[utoipa::path(
    get, path = "/mill/checks/plan",
    params(CheckScope),
    responses(
        (status = 200, body = CheckPlan),
        (status = 503, description = "The spaces of the store cannot be listed, or the catalogue cannot be read"),
    ),
)]
pub(super) async fn plan_mill_check(
    FromState(state): FromState<State>,
    Params(scope): Params<CheckScope>,
) -> Answer<CheckPlan> {
    Ok(Json(state.mill()?.plan_check(&scope).await?))
}

/// `POST /api/v1/mill/checks`: requests a check of an item, a space, or all content of an account in a store, as an
/// operator.
///
/// Workers read the content beside the loop of checks, regardless of the proof that is configured for the store. If the
/// same check is already in progress, it continues. `GET /api/v1/mill/checks` shows its progress.
#[utoipa::path(
    post, path = "/mill/checks",
    request_body = CheckBody,
    responses(
        (status = 200, body = ActionView),
        (status = 400, description = "The key is not valid"),
        (status = 404, description = "There is no such account, store, space or item"),
        (status = 503, description = "The store cannot be listed, or the catalogue or the audit file cannot be written"),
    ),
)]
pub(super) async fn ask_mill_check(
    FromState(state): FromState<State>,
    who: Identity,
    Body(body): Body<CheckBody>,
) -> Answer<ActionView> {
    let actor = state.authorize(&who, MillActionKind::CheckContent.role(), Source::Api)?;
    let reason = reason(&body.reason)?;
    let key = body.key.parse().map_err(|error| ViewError::value_because("key", &body.key, error))?;
    let scope = CheckScope { account: body.account, store: body.store, space: body.space, key };
    let plan = state.mill()?.plan_check(&scope).await?;
    let entry = state.mill_actions()?.request_check(&plan.scope, &plan.parts, &actor, &reason).await?;
    Ok(Json(ActionView::remembered(entry)))
}
