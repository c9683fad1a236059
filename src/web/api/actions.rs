//! Actions: what operators have done to the queue.

use axum::extract::{Path, State as FromState};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Answer;
use crate::actions::audit::ActionId;
use crate::actions::{ActionParameters, BulkAction, ListOf, Precondition, Role, Source};
use crate::views::actions::{ActionView, FrozenList};
use crate::web::State;
use crate::web::actions::{
    ActionRequest, action_kind, find_action, job_state, no_action, plan, priority, reason, target,
};
use crate::web::http::identity::Identity;
use crate::web::http::json::Json;
use crate::web::http::params::{Body, pairs_of};
use crate::web::http::problem::Problem;

/// The header by which an action that is sent twice is done once.
const KEY: &str = "idempotency-key";

/// The longest key, in bytes.
const LONGEST_KEY: usize = 200;

/// An action.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ActionBody {
    /// What is to be done: `resume`, `hold`, `release`, `fail`, `set_priority`, `report_again`, `delete`, `purge`,
    /// `clean_up`, `break_lock`, `pause`, `unpause` or `repair`.
    #[schema(example = "resume")]
    action: String,
    /// To what: `jid0000000042`, `bid0000000042`, `small/qid0000000042`, `queue:ingest`, `collection:MNEMONIC`,
    /// `lock:PATH`, `fault:NAME:PATH` or `batches`.
    #[schema(example = "jid0000000042")]
    on: String,
    /// Why, in a few words.
    #[schema(example = "storage node is back")]
    pub(super) reason: String,
    /// What was seen of it: refused, 409, where that has changed.
    precondition: Option<SeenBody>,
    /// The state to resume a job in; the one after its last successful state, unless it is given.
    #[schema(example = "downloading")]
    to: Option<String>,
    /// The priority to set: 0, the most urgent, to 99.
    #[schema(minimum = 0, maximum = 99)]
    priority: Option<u8>,
    /// Breaks a lock that is no fault; releases a batch whose collection is held.
    #[serde(default)]
    force: bool,
    /// Releases the held jobs of a collection with it.
    #[serde(default)]
    with_jobs: bool,
    /// Shows what would be done, and does nothing.
    #[serde(default)]
    dry_run: bool,
}

/// What an operator saw of a target.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SeenBody {
    /// Its state.
    #[schema(example = "failed")]
    state: Option<String>,
    /// The version of its status, `status_version` in its view.
    version: Option<i32>,
    /// Of a lock: the transaction that made it, `czxid` in its view.
    czxid: Option<i64>,
    /// Of a fault, or of all batches that are done with: `plan` of the `precondition` that a dry run answers with.
    plan: Option<String>,
}

/// A list to freeze.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListBody {
    /// What is to be done to each item.
    #[schema(example = "resume")]
    action: String,
    /// The items, each as in an order; not beside `jobs`.
    #[serde(default)]
    items: Vec<String>,
    /// All jobs that this query string of `/api/v1/jobs` finds now; not beside `items`.
    #[schema(example = "state=failed&collection=merritt_demo_content")]
    jobs: Option<String>,
    /// The state to resume jobs in.
    to: Option<String>,
    /// The priority to set.
    #[schema(minimum = 0, maximum = 99)]
    priority: Option<u8>,
}

/// Why a frozen list is carried out.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReasonBody {
    /// Why, in a few words.
    #[schema(example = "storage node is back")]
    pub(super) reason: String,
}

/// `POST /api/v1/actions`: requests something, or shows what it would do.
///
/// It happens whole or says why not. What takes longer than five seconds goes on: the answer is 202 then, and its `id`
/// leads to how far it is. With the header `Idempotency-Key`, an action that is sent twice is done once, and the second
/// gets the answer of the first.
#[utoipa::path(
    post, path = "/actions",
    request_body = ActionBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "Any text of up to 200 characters, the same for each time that the same action is sent")),
    responses(
        (status = 200, body = ActionView, description = "It is done, or this is what it would do"),
        (status = 202, body = ActionView, description = "It is going on"),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "It cannot be done as it was requested"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "What it is about is not there"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "The queue stands against it: `state` and `version` say how its target is now; or against the rest of it, which is said then"),
        (status = 502, body = Problem, content_type = "application/problem+json", description = "ZooKeeper refused it; nothing was done"),
        (status = 504, body = Problem, content_type = "application/problem+json", description = "Whether all of it was done is not known: the connection was lost"),
    ),
)]
pub(super) async fn action(
    FromState(state): FromState<State>,
    identity: Identity,
    headers: HeaderMap,
    Body(body): Body<ActionBody>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let (actor, action) = state.requested(&identity, body.read()?, Source::Api)?;
    if body.dry_run {
        let prepared = state.actions()?.plan(&action, &actor, body.reason.trim(), now).await?;
        return Ok(Json(ActionView::planned(&prepared, body.reason.trim())).into_response());
    }
    let reason = reason(&body.reason)?;
    let actions = state.actions()?;
    let taken = actions.execute(action, actor, reason, key(&headers)?, now).await?;
    let status = if taken.outcome.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let view = ActionView::of(&taken.execution).with(actions.audit().entry(taken.execution.id));
    Ok((status, Json(view)).into_response())
}

/// `GET /api/v1/actions/{id}`: how far an action is, or what came of it.
#[utoipa::path(
    get, path = "/actions/{id}",
    params(("id" = String, Path, description = "The action's id", example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")),
    responses(
        (status = 200, body = ActionView),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such action, or it is too long ago"),
    ),
)]
pub(super) async fn action_by_id(FromState(state): FromState<State>, Path(id): Path<String>) -> Answer<ActionView> {
    find_action(&state, &id).map(Json)
}

/// `POST /api/v1/actions/{id}/cancel`: ends an action over many. What is under way is finished, and nothing more is begun.
#[utoipa::path(
    post, path = "/actions/{id}/cancel",
    params(("id" = String, Path, description = "The action's id", example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")),
    responses(
        (status = 200, body = ActionView),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such action going on"),
    ),
)]
pub(super) async fn cancel(
    FromState(state): FromState<State>,
    identity: Identity,
    Path(id): Path<String>,
) -> Answer<ActionView> {
    let actor = state.authorize(&identity, Role::Operator, Source::Api)?;
    let id: ActionId = id.parse().map_err(|_| no_action())?;
    let work = state.actions()?.cancel(id, &actor)?;
    Ok(Json(ActionView::of(&work)))
}

/// `POST /api/v1/lists`: freezes a list of items, to look at it before anything is done to each of them.
#[utoipa::path(
    post, path = "/lists",
    request_body = ListBody,
    responses(
        (status = 201, body = FrozenList),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "It cannot be done to such a list"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "No such collection or group"),
    ),
)]
pub(super) async fn freeze(
    FromState(state): FromState<State>,
    identity: Identity,
    Body(body): Body<ListBody>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let actor = state.authorize(&identity, Role::Operator, Source::Api)?;
    let bulk = BulkAction {
        kind: action_kind(&body.action)?,
        parameters: ActionParameters {
            to: job_state(body.to.as_deref())?,
            priority: priority(body.priority)?,
            ..ActionParameters::default()
        },
    };
    let (of, items) = match (&body.jobs, body.items.is_empty()) {
        (Some(jobs), true) if jobs.is_empty() => {
            return Err(Problem::bad("“jobs” is empty, which would be every job. Name a state or another filter."));
        }
        (Some(jobs), true) => state.matching(&pairs_of(jobs)?, now)?,
        (None, _) => {
            let targets = body.items.iter().map(|item| target(item)).collect::<Result<Vec<_>, _>>()?;
            (ListOf::ChosenItems, state.seen_now(targets))
        }
        (Some(_), false) => return Err(Problem::bad("“items” and “jobs” cannot stand beside each other.")),
    };
    let frozen = state.actions()?.freeze(bulk, of, items, &actor, now)?;
    Ok((StatusCode::CREATED, Json(FrozenList::new(&frozen))).into_response())
}

/// `POST /api/v1/lists/{id}/execute`: carries out what a frozen list says, item by item. It goes on by itself.
#[utoipa::path(
    post, path = "/lists/{id}/execute",
    params(("id" = String, Path, description = "The list's id, which becomes that of the action", example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")),
    request_body = ReasonBody,
    responses(
        (status = 202, body = ActionView),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "There is no reason"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such list: it is older than half an hour, or another's"),
    ),
)]
pub(super) async fn execute(
    FromState(state): FromState<State>,
    identity: Identity,
    Path(id): Path<String>,
    Body(body): Body<ReasonBody>,
) -> Result<Response, Problem> {
    let actor = state.authorize(&identity, Role::Operator, Source::Api)?;
    let id: ActionId = id.parse().map_err(|_| Problem::missing("There is no such list. Freeze one first."))?;
    let work = state.actions()?.execute_frozen(id, actor, reason(&body.reason)?, Timestamp::now())?;
    Ok((StatusCode::ACCEPTED, Json(ActionView::of(&work))).into_response())
}

impl ActionBody {
    fn read(&self) -> Result<ActionRequest, Problem> {
        let precondition = self.precondition.as_ref().map(|seen| {
            Ok::<_, Problem>(Precondition {
                state: seen.state.as_deref().map(Into::into),
                version: seen.version,
                czxid: seen.czxid,
                plan: seen.plan.as_deref().map(plan).transpose()?,
                hold: None,
            })
        });
        Ok(ActionRequest {
            kind: action_kind(&self.action)?,
            target: target(&self.on)?,
            parameters: ActionParameters {
                to: job_state(self.to.as_deref())?,
                priority: priority(self.priority)?,
                force: self.force,
                with_jobs: self.with_jobs,
            },
            precondition: precondition.transpose()?,
        })
    }
}

fn key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let wrong = || Problem::bad(format!("An Idempotency-Key has 1 to {LONGEST_KEY} visible characters."));
    let mut values = headers.get_all(KEY).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| wrong())?;
            if text.is_empty() || text.len() > LONGEST_KEY { Err(wrong()) } else { Ok(Some(text)) }
        }
        (Some(_), Some(_)) => Err(wrong()),
    }
}
