//! The mill: queues, what waits for an operator, spaces and items, policies.

mod checks;
mod comparisons;
mod errors;
mod reports;

use axum::extract::{Path, State as FromState};
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::actions::Source;
use crate::actions::mill::{Decided, MillActionKind, PauseChange, TaskDecision, TaskState, pause_scope};
use crate::views::actions::ActionView;
use crate::views::mill::{
    DeadFilter, DeadList, HeldFilter, HeldList, ItemDetail, ItemFilter, ItemList, ItemName, MillOverview,
    NewPolicyView, PlanView, PolicyDetail, PolicyList, SpaceFilter, SpaceList,
};
use crate::web::actions::reason;
use crate::web::http::identity::Identity;
use crate::web::http::json::Json;
use crate::web::http::params::{Body, Params};
use crate::web::state::State;

/// All of it.
pub(super) fn router() -> OpenApiRouter<State> {
    OpenApiRouter::new()
        .routes(routes!(mill_overview))
        .routes(routes!(pause_mill))
        .routes(routes!(resume_mill))
        .routes(routes!(mill_held))
        .routes(routes!(decide_mill_held))
        .routes(routes!(mill_dead_letters))
        .routes(routes!(decide_mill_dead_letters))
        .merge(checks::router())
        .merge(comparisons::router())
        .merge(errors::router())
        .merge(reports::router())
        .routes(routes!(mill_spaces))
        .routes(routes!(mill_items))
        .routes(routes!(mill_item))
        .routes(routes!(mill_policies))
        .routes(routes!(mill_policy, save_mill_policy))
        .routes(routes!(plan_mill_policy))
}

/// What becomes of tasks.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// They wait for a worker again. A held task may then exceed the limit once.
    Retry,
    /// They are removed: what they would do is not done.
    Drop,
}

/// A decision on tasks that wait for one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionBody {
    /// The decision: `retry`, which lets them wait for a worker again and permits a held task once; or `drop`, which
    /// removes them.
    #[schema(value_type = String, example = "retry")]
    decision: What,
    /// Their numbers, at most a thousand.
    #[schema(example = json!([4711]))]
    tasks: Vec<u64>,
    /// Why, in a few words.
    #[schema(example = "the source was emptied on purpose")]
    reason: String,
}

/// What is paused, or resumed: an account, a store, or an account in a store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PauseBody {
    /// The account; without it, all accounts.
    #[serde(default)]
    #[schema(example = "account1")]
    account: String,
    /// The store; without it, all stores of the account.
    #[serde(default)]
    #[schema(example = "replica")]
    store: String,
    /// Why, in a few words.
    #[schema(example = "the store moves to another rack")]
    reason: String,
}

/// A policy to save.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyChange {
    /// The version that the change is made to: `version` of the policy.
    #[schema(example = "4f1c")]
    version: String,
    /// The new policy.
    new: NewPolicyView,
    /// Why, in a few words.
    #[schema(example = "a second copy for theses")]
    reason: String,
}

/// `GET /api/v1/mill`: queues, loops and workers, and what is stalled.
#[utoipa::path(
    get, path = "/mill",
    responses((status = 200, body = MillOverview)),
)]
pub(super) async fn mill_overview(FromState(state): FromState<State>) -> Answer<MillOverview> {
    Ok(Json(state.mill()?.overview(Timestamp::now()).await?))
}

/// `POST /api/v1/mill/pause`: pauses the work for an account, a store, or an account in a store.
///
/// No task that reads from it or writes to it is started; tasks in progress are finished. `pauses` of `GET
/// /api/v1/mill` lists what is paused.
#[utoipa::path(
    post, path = "/mill/pause",
    request_body = PauseBody,
    responses(
        (status = 200, body = ActionView),
        (status = 400, description = "Neither an account nor a store is named"),
        (status = 404, description = "There is no such account or store"),
        (status = 409, description = "It is already paused; nothing was done"),
    ),
)]
pub(super) async fn pause_mill(
    FromState(state): FromState<State>,
    who: Identity,
    Body(body): Body<PauseBody>,
) -> Answer<ActionView> {
    change_pause(&state, &who, PauseChange::Pause, &body).await
}

/// `POST /api/v1/mill/resume`: ends a pause; waiting tasks then run.
#[utoipa::path(
    post, path = "/mill/resume",
    request_body = PauseBody,
    responses(
        (status = 200, body = ActionView),
        (status = 400, description = "Neither an account nor a store is named"),
        (status = 409, description = "There is no pause of exactly this account and store; nothing was done"),
    ),
)]
pub(super) async fn resume_mill(
    FromState(state): FromState<State>,
    who: Identity,
    Body(body): Body<PauseBody>,
) -> Answer<ActionView> {
    change_pause(&state, &who, PauseChange::Resume, &body).await
}

async fn change_pause(state: &State, who: &Identity, change: PauseChange, body: &PauseBody) -> Answer<ActionView> {
    let actor = state.authorize(who, change.role(), Source::Api)?;
    let (scope, reason) = (pause_scope(&body.account, &body.store)?, reason(&body.reason)?);
    let entry = state.mill_actions()?.change_pause(change, &scope, &actor, &reason).await?;
    Ok(Json(ActionView::remembered(entry)))
}

/// `GET /api/v1/mill/held`: what the brake holds.
#[utoipa::path(
    get, path = "/mill/held",
    params(HeldFilter),
    responses((status = 200, body = HeldList)),
)]
pub(super) async fn mill_held(
    FromState(state): FromState<State>,
    Params(filter): Params<HeldFilter>,
) -> Answer<HeldList> {
    Ok(Json(state.mill()?.held(&filter).await?))
}

/// `POST /api/v1/mill/held/decide`: releases or drops what the brake holds, as an admin.
///
/// Released tasks are executed regardless of the limit, and count towards it. Tasks that are no longer held are in
/// `not_done_items`.
#[utoipa::path(
    post, path = "/mill/held/decide",
    request_body = DecisionBody,
    responses(
        (status = 200, body = ActionView),
        (status = 400, description = "There are too many tasks"),
        (status = 409, description = "None of the tasks is waiting for this decision any longer; or a part was done, as `detail` describes"),
    ),
)]
pub(super) async fn decide_mill_held(
    FromState(state): FromState<State>,
    who: Identity,
    Body(body): Body<DecisionBody>,
) -> Answer<ActionView> {
    decide(&state, &who, TaskState::Held, &body).await
}

/// `GET /api/v1/mill/dead-letters`: tasks that failed in every attempt, by error.
#[utoipa::path(
    get, path = "/mill/dead-letters",
    params(DeadFilter),
    responses((status = 200, body = DeadList)),
)]
pub(super) async fn mill_dead_letters(
    FromState(state): FromState<State>,
    Params(filter): Params<DeadFilter>,
) -> Answer<DeadList> {
    Ok(Json(state.mill()?.dead_letters(&filter).await?))
}

/// `POST /api/v1/mill/dead-letters/decide`: retries or drops dead letters.
///
/// Tasks that are no longer dead letters are in `not_done_items`.
#[utoipa::path(
    post, path = "/mill/dead-letters/decide",
    request_body = DecisionBody,
    responses(
        (status = 200, body = ActionView),
        (status = 400, description = "There are too many tasks"),
        (status = 409, description = "None of the tasks is waiting for this decision any longer; or a part was done, as `detail` describes"),
    ),
)]
pub(super) async fn decide_mill_dead_letters(
    FromState(state): FromState<State>,
    who: Identity,
    Body(body): Body<DecisionBody>,
) -> Answer<ActionView> {
    decide(&state, &who, TaskState::Dead, &body).await
}

async fn decide(state: &State, who: &Identity, of: TaskState, body: &DecisionBody) -> Answer<ActionView> {
    let decided = match body.decision {
        What::Retry => Decided::Retry,
        What::Drop => Decided::Drop,
    };
    let decision = TaskDecision { decided, of };
    let actor = state.authorize(who, decision.role(), Source::Api)?;
    let reason = reason(&body.reason)?;
    let entry = state.mill_actions()?.decide(decision, &body.tasks, &actor, &reason).await?;
    Ok(Json(ActionView::remembered(entry)))
}

/// `GET /api/v1/mill/spaces`: every space and the state of its copies.
#[utoipa::path(
    get, path = "/mill/spaces",
    params(SpaceFilter),
    responses((status = 200, body = SpaceList)),
)]
pub(super) async fn mill_spaces(
    FromState(state): FromState<State>,
    Params(filter): Params<SpaceFilter>,
) -> Answer<SpaceList> {
    Ok(Json(state.mill()?.spaces(&filter).await?))
}

/// `GET /api/v1/mill/spaces/{account}/{space}`: the items of a space, in the byte order of their keys.
#[utoipa::path(
    get, path = "/mill/spaces/{account}/{space}",
    params(
        ("account" = String, Path, description = "The account", example = "account1"),
        ("space" = String, Path, description = "The space, as the account names it", example = "theses"),
        ItemFilter,
    ),
    responses((status = 200, body = ItemList)),
)]
pub(super) async fn mill_items(
    FromState(state): FromState<State>,
    Path((account, space)): Path<(String, String)>,
    Params(filter): Params<ItemFilter>,
) -> Answer<ItemList> {
    Ok(Json(state.mill()?.items(&account, &space, &filter).await?))
}

/// `GET /api/v1/mill/spaces/{account}/{space}/item`: an item with its copies, and why they are not up to date.
#[utoipa::path(
    get, path = "/mill/spaces/{account}/{space}/item",
    params(
        ("account" = String, Path, description = "The account", example = "account1"),
        ("space" = String, Path, description = "The space, as the account names it", example = "theses"),
        ItemName,
    ),
    responses(
        (status = 200, body = ItemDetail),
    ),
)]
pub(super) async fn mill_item(
    FromState(state): FromState<State>,
    Path((account, space)): Path<(String, String)>,
    Params(name): Params<ItemName>,
) -> Answer<ItemDetail> {
    Ok(Json(state.mill()?.item(&account, &space, &name).await?))
}

/// `GET /api/v1/mill/policies`: the policies of all accounts.
#[utoipa::path(
    get, path = "/mill/policies",
    responses((status = 200, body = PolicyList)),
)]
pub(super) async fn mill_policies(FromState(state): FromState<State>) -> Answer<PolicyList> {
    Ok(Json(state.mill()?.policies().await?))
}

/// `GET /api/v1/mill/policies/{account}`: the policy of an account, with its history.
#[utoipa::path(
    get, path = "/mill/policies/{account}",
    params(("account" = String, Path, description = "The account", example = "account1")),
    responses((status = 200, body = PolicyDetail)),
)]
pub(super) async fn mill_policy(
    FromState(state): FromState<State>,
    Path(account): Path<String>,
) -> Answer<PolicyDetail> {
    Ok(Json(state.mill()?.policy(&account).await?))
}

/// `POST /api/v1/mill/policies/{account}/plan`: what a policy would do in place of the one in force.
#[utoipa::path(
    post, path = "/mill/policies/{account}/plan",
    params(("account" = String, Path, description = "The account", example = "account1")),
    request_body = NewPolicyView,
    responses((status = 200, body = PlanView)),
)]
pub(super) async fn plan_mill_policy(
    FromState(state): FromState<State>,
    who: Identity,
    Path(account): Path<String>,
    Body(new): Body<NewPolicyView>,
) -> Answer<PlanView> {
    state.authorize(&who, MillActionKind::SavePolicy.role(), Source::Api)?;
    Ok(Json(state.mill()?.plan(&account, &new).await?))
}

/// `POST /api/v1/mill/policies/{account}`: saves a policy and puts it into force, as an admin.
///
/// No copy is deleted: one that is no longer maintained stays as it is. The previous policy is in the history, and
/// saving it again undoes the change.
#[utoipa::path(
    post, path = "/mill/policies/{account}",
    params(("account" = String, Path, description = "The account", example = "account1")),
    request_body = PolicyChange,
    responses(
        (status = 200, body = ActionView),
        (status = 400, description = "The policy cannot be carried out"),
        (status = 409, description = "The policy was changed since that version; nothing was saved"),
        (status = 503, description = "A policy file, the catalogue or the audit file cannot be written"),
    ),
)]
pub(super) async fn save_mill_policy(
    FromState(state): FromState<State>,
    who: Identity,
    Path(account): Path<String>,
    Body(change): Body<PolicyChange>,
) -> Answer<ActionView> {
    let actor = state.authorize(&who, MillActionKind::SavePolicy.role(), Source::Api)?;
    let (reason, new) = (reason(&change.reason)?, change.new.parse()?);
    let entry = state.mill_actions()?.save_policy(&account, &change.version, new, &actor, &reason).await?;
    Ok(Json(ActionView::remembered(entry)))
}
