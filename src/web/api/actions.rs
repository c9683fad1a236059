//! Actions: what operators have done to the queue.

use axum::extract::{Path, State as FromState};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use super::Answer;
use crate::actions::audit::ActionId;
use crate::actions::{
    ActionKind, BulkAction, ListOf, ListOrigin, Precondition, Role, Source, WrittenParameters, action_parameters,
    no_list,
};
use crate::views::actions::{ActionView, FrozenList};
use crate::web::actions::{ActionRequest, action_kind, find_action, no_action, plan, reason, target};
use crate::web::http::identity::Identity;
use crate::web::http::json::Json;
use crate::web::http::key::key;
use crate::web::http::params::{Body, pairs_of};
use crate::web::http::problem::Problem;
use crate::web::state::State;

macro_rules! bodies {
    (
        {
            $(#[$meta:meta])* struct $name:ident { $($first:tt)* } { $($last:tt)* }
            $(#[$list_meta:meta])* struct $list_name:ident { $($list_first:tt)* }
        }
        $(
            $(#[$doc:meta])* $parameter:ident $field:ident: $type:ty as $written:ty {
                body: $schema:tt,
                list: [$($list_doc:tt $list_schema:tt)?],
                $($spec:tt)*
            }
        )+
    ) => {
        $(#[$meta])*
        pub(super) struct $name {
            $($first)*
            $( $(#[$doc])* #[serde(default)] #[schema $schema] $field: $written, )+
            $($last)*
        }

        impl $name {
            fn parameters(&self) -> WrittenParameters {
                WrittenParameters { $($field: Clone::clone(&self.$field),)+ }
            }
        }

        $(#[$list_meta])*
        pub(super) struct $list_name {
            $($list_first)*
            $($( #[doc = $list_doc] #[schema $list_schema] $field: $written, )?)+
        }

        impl $list_name {
            fn parameters(&self) -> WrittenParameters {
                let mut parameters = WrittenParameters::default();
                $($( parameters.$field = bodies!(@of self $field $list_doc); )?)+
                parameters
            }
        }
    };
    (@of $body:ident $field:ident $doc:tt) => {
        Clone::clone(&$body.$field)
    };
}

action_parameters! { bodies! {
    /// An action.
    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    struct ActionBody {
        #[schema(schema_with = action_names)]
        action: String,
        /// Its target: `jid0000000042`, `bid0000000042`, `small/qid0000000042`, `queue:ingest`, `collection:MNEMONIC`,
        /// `store:NAME`, `lock:PATH`, `fault:NAME:PATH` or `batches`.
        #[schema(example = "jid0000000042")]
        on: String,
        /// Why, in a few words.
        #[schema(example = "storage node is back")]
        pub(super) reason: String,
        /// The expected state of the target; the action is refused with 409 if it has changed.
        precondition: Option<PreconditionBody>,
    } {
        /// Shows what would be written, without writing it.
        #[serde(default)]
        dry_run: bool,
    }

    /// A list to freeze.
    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    struct ListBody {
        #[schema(schema_with = action_names)]
        action: String,
        /// The items, each as `on` of an action; not together with `jobs`.
        #[serde(default)]
        items: Vec<String>,
        /// All jobs that this query string of `/api/v1/jobs` finds now; not together with `items`.
        #[schema(example = "state=failed&collection=merritt_demo_content")]
        jobs: Option<String>,
        /// Jobs to leave out of those that `jobs` finds.
        #[serde(default)]
        except: Vec<String>,
    }
} }

/// The expected state of a target.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PreconditionBody {
    /// Its state.
    #[schema(example = "failed")]
    state: Option<String>,
    /// The version of its status, `status_version` in its view.
    version: Option<i32>,
    /// Of a lock: the transaction that created it, `czxid` in its view.
    czxid: Option<i64>,
    /// Of a fault, or of a cleanup of all finished batches: `plan` in the `precondition` that a dry run returns.
    plan: Option<String>,
}

/// Why it is requested.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReasonBody {
    /// Why, in a few words.
    #[schema(example = "storage node is back")]
    pub(super) reason: String,
}

/// `POST /api/v1/actions`: executes an action, or shows what it would do.
///
/// It is executed whole, or refused with the reason. An action that takes longer than five seconds is answered with
/// 202; its `id` leads to its progress. With the header `Idempotency-Key`, an action that is sent twice is executed
/// once, and the second request gets the answer of the first.
#[utoipa::path(
    post, path = "/actions",
    request_body = ActionBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "Any text of up to 200 characters; the same text whenever the same action is sent again")),
    responses(
        (status = 200, body = ActionView, description = "The action was executed, or this is what it would do"),
        (status = 202, body = ActionView, description = "The action is in progress"),
        (status = 400, description = "The action, its target or a parameter is not valid"),
        (status = 404, description = "The target does not exist"),
        (status = 409, description = "The state of the queue forbids it: `state` and `version` are those of the target now; or it was executed in part, as `detail` describes"),
        (status = 502, description = "ZooKeeper refused it; nothing was done"),
        (status = 504, description = "It is unknown whether all of it was executed: the connection was lost"),
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

/// `GET /api/v1/actions/{id}`: progress or outcome of an action.
#[utoipa::path(
    get, path = "/actions/{id}",
    params(("id" = String, Path, description = "The action's id", example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")),
    responses(
        (status = 200, body = ActionView),
        (status = 404, description = "There is no such action, or it is too old"),
    ),
)]
pub(super) async fn action_by_id(FromState(state): FromState<State>, Path(id): Path<String>) -> Answer<ActionView> {
    find_action(&state, &id).map(Json)
}

/// `POST /api/v1/actions/{id}/cancel`: cancels an action on many items. Items in progress are finished, and the rest is
/// not started.
#[utoipa::path(
    post, path = "/actions/{id}/cancel",
    params(("id" = String, Path, description = "The action's id", example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")),
    responses(
        (status = 200, body = ActionView),
        (status = 404, description = "There is no such action in progress"),
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

/// `POST /api/v1/lists`: freezes a list of items, to review it before the action is executed on each of them.
#[utoipa::path(
    post, path = "/lists",
    request_body = ListBody,
    responses(
        (status = 201, body = FrozenList),
        (status = 400, description = "The action is not supported for such a list"),
        (status = 404, description = "No such collection or group"),
    ),
)]
pub(super) async fn freeze(
    FromState(state): FromState<State>,
    identity: Identity,
    Body(body): Body<ListBody>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let actor = state.authorize(&identity, Role::Operator, Source::Api)?;
    let bulk = BulkAction { kind: action_kind(&body.action)?, parameters: body.parameters().read()? };
    let (of, items) = match (&body.jobs, body.items.is_empty()) {
        (Some(jobs), true) if jobs.is_empty() => {
            return Err(Problem::bad("“jobs” is empty, which would select every job. Name a state or another filter."));
        }
        (Some(jobs), true) => state.matching(&pairs_of(jobs)?, now)?,
        (None, _) => {
            let targets = body.items.iter().map(|item| target(item)).collect::<Result<Vec<_>, _>>()?;
            (ListOf::ChosenItems, state.seen_now(targets))
        }
        (Some(_), false) => return Err(Problem::bad("Only one of “items” and “jobs” can be given.")),
    };
    if body.jobs.is_none() && !body.except.is_empty() {
        return Err(Problem::bad(
            "“except” excludes jobs from those of “jobs”. List only the items that you want instead.",
        ));
    }
    let left_out = body.except.iter().map(|item| target(item)).collect::<Result<Vec<_>, _>>()?;
    if let Some(other) = left_out.iter().find(|out| !items.iter().any(|(target, _)| target == *out)) {
        return Err(Problem::bad(format!("“except” names {other}, which “jobs” does not match.")));
    }
    let origin = ListOrigin { left_out, ..ListOrigin::default() };
    let frozen = state.actions()?.freeze_from(origin, bulk, (of, items), &actor, now)?;
    Ok((StatusCode::CREATED, Json(FrozenList::new(&frozen))).into_response())
}

/// `POST /api/v1/lists/{id}/execute`: executes the action of a frozen list, item by item, in the background.
#[utoipa::path(
    post, path = "/lists/{id}/execute",
    params(("id" = String, Path, description = "The list's id, which becomes that of the action", example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")),
    request_body = ReasonBody,
    responses(
        (status = 202, body = ActionView),
        (status = 404, description = "The caller has no such list, or no longer"),
    ),
)]
pub(super) async fn execute(
    FromState(state): FromState<State>,
    identity: Identity,
    Path(id): Path<String>,
    Body(body): Body<ReasonBody>,
) -> Result<Response, Problem> {
    let actor = state.authorize(&identity, Role::Operator, Source::Api)?;
    let id: ActionId = id.parse().map_err(|_| no_list())?;
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
            parameters: self.parameters().read()?,
            precondition: precondition.transpose()?,
        })
    }
}

/// The names of the actions.
fn action_names() -> Object {
    let names = ActionKind::ALL.map(ActionKind::label);
    let object = ObjectBuilder::new().schema_type(Type::String).description(Some("Which action."));
    object.enum_values(Some(names)).examples(["resume"]).build()
}
