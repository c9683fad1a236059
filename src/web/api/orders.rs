//! Orders: what operators have done to the queue.

use axum::extract::{Path, State as FromState};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Answer;
use crate::actions::audit::OrderId;
use crate::actions::{Action, Each, ListOf, Order, Reason, Refusal, Role, Seen, Source, Subject};
use crate::web::State;
use crate::web::identity::Identity;
use crate::web::json::Json;
use crate::web::params::{Body, pairs_of};
use crate::web::problem::Problem;
use crate::web::query;
use crate::web::views::orders::{FrozenList, OrderView};
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::state::{JobState, State as _};

/// The header by which an order that is sent twice is done once.
const KEY: &str = "idempotency-key";

/// The longest key, in bytes.
const LONGEST_KEY: usize = 200;

/// An order.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderBody {
    /// What is to be done: `resume`, `hold`, `release`, `fail`, `set_priority`, `report_again`, `delete`, `purge`,
    /// `clean_up`, `break_lock`, `pause`, `unpause` or `mend`.
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
    seen: Option<SeenBody>,
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

/// What an orderer saw of a subject.
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
    /// Of a fault, or of all batches that are done with: `plan` of the `seen` that a dry run answers with.
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

/// `POST /api/v1/orders`: orders something, or shows what it would do.
///
/// It happens whole or says why not. What takes longer than five seconds goes on: the answer is 202 then, and its `id`
/// leads to how far it is. With the header `Idempotency-Key`, an order that is sent twice is done once, and the second
/// gets the answer of the first.
#[utoipa::path(
    post, path = "/orders",
    request_body = OrderBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "Any text of up to 200 characters, the same for each time that the same order is sent")),
    responses(
        (status = 200, body = OrderView, description = "It is done, or this is what it would do"),
        (status = 202, body = OrderView, description = "It is going on"),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "It cannot be done as it was ordered"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "What it is about is not there"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "The queue stands against it: `state` and `version` say how its subject is now; or against the rest of it, which is said then"),
        (status = 502, body = Problem, content_type = "application/problem+json", description = "ZooKeeper refused it; nothing was done"),
        (status = 504, body = Problem, content_type = "application/problem+json", description = "Whether all of it was done is not known: the connection was lost"),
    ),
)]
pub(super) async fn order(
    FromState(state): FromState<State>,
    identity: Identity,
    headers: HeaderMap,
    Body(body): Body<OrderBody>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let order = body.order()?;
    let actor = state.orderer(&identity, order.action, &order.subject, Source::Api)?;
    if order.to.is_some() && order.action != Action::Resume {
        return Err(Problem::bad("“to” is for what is resumed."));
    }
    if order.priority.is_some() && order.action != Action::SetPriority {
        return Err(Problem::bad("“priority” is for set_priority."));
    }
    if body.dry_run {
        let prepared = state.actions()?.plan(&order, &actor, body.reason.trim(), now).await?;
        return Ok(Json(OrderView::planned(&prepared, body.reason.trim())).into_response());
    }
    let reason = reason(&body.reason)?;
    let actions = state.actions()?;
    let taken = actions.execute(order, actor, reason, key(&headers)?, now).await?;
    let status = if taken.outcome.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let view = OrderView::of(&taken.work).with(actions.audit().entry(taken.work.id));
    Ok((status, Json(view)).into_response())
}

/// `GET /api/v1/orders/{id}`: how far an order is, or what came of it.
#[utoipa::path(
    get, path = "/orders/{id}",
    params(("id" = String, Path, description = "The order's id", example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")),
    responses(
        (status = 200, body = OrderView),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such order, or it is too long ago"),
    ),
)]
pub(super) async fn order_by_id(FromState(state): FromState<State>, Path(id): Path<String>) -> Answer<OrderView> {
    find_order(&state, &id).map(Json)
}

/// `POST /api/v1/orders/{id}/cancel`: ends an order over many. What is under way is finished, and nothing more is begun.
#[utoipa::path(
    post, path = "/orders/{id}/cancel",
    params(("id" = String, Path, description = "The order's id", example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")),
    responses(
        (status = 200, body = OrderView),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such order going on"),
    ),
)]
pub(super) async fn cancel(
    FromState(state): FromState<State>,
    identity: Identity,
    Path(id): Path<String>,
) -> Answer<OrderView> {
    let actor = state.authorize(&identity, Role::Operator, Source::Api)?;
    let id: OrderId = id.parse().map_err(|_| no_order())?;
    let work = state.actions()?.cancel(id, &actor)?;
    Ok(Json(OrderView::of(&work)))
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
    let each =
        Each { action: action(&body.action)?, to: job_state(body.to.as_deref())?, priority: priority(body.priority)? };
    let (of, items) = match (&body.jobs, body.items.is_empty()) {
        (Some(jobs), true) if jobs.is_empty() => {
            return Err(Problem::bad("“jobs” is empty, which would be every job. Name a state or another filter."));
        }
        (Some(jobs), true) => state.matching(&pairs_of(jobs)?, now)?,
        (None, _) => {
            let subjects =
                body.items.iter().map(|item| item.parse::<Subject>().map_err(|error| bad_item(item, &error)));
            let subjects = subjects.collect::<Result<Vec<_>, _>>()?;
            (ListOf::ChosenItems, state.seen_now(subjects))
        }
        (Some(_), false) => return Err(Problem::bad("“items” and “jobs” cannot stand beside each other.")),
    };
    let frozen = state.actions()?.freeze(each, of, items, &actor, now)?;
    Ok((StatusCode::CREATED, Json(FrozenList::new(&frozen))).into_response())
}

/// `POST /api/v1/lists/{id}/execute`: carries out what a frozen list says, item by item. It goes on by itself.
#[utoipa::path(
    post, path = "/lists/{id}/execute",
    params(("id" = String, Path, description = "The list's id, which becomes that of the order", example = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90")),
    request_body = ReasonBody,
    responses(
        (status = 202, body = OrderView),
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
    let id: OrderId = id.parse().map_err(|_| Problem::missing("There is no such list. Freeze one first."))?;
    let work = state.actions()?.execute_frozen(id, actor, reason(&body.reason)?, Timestamp::now())?;
    Ok((StatusCode::ACCEPTED, Json(OrderView::of(&work))).into_response())
}

impl OrderBody {
    fn order(&self) -> Result<Order, Problem> {
        let subject = self.on.parse::<Subject>().map_err(|error| bad_item(&self.on, &error))?;
        let seen = self.seen.as_ref().map(|seen| {
            Ok::<_, Problem>(Seen {
                state: seen.state.as_deref().map(Into::into),
                version: seen.version,
                czxid: seen.czxid,
                plan: seen.plan.as_deref().map(plan).transpose()?,
                hold: None,
            })
        });
        let seen = seen.transpose()?;
        Ok(Order {
            seen,
            to: job_state(self.to.as_deref())?,
            priority: priority(self.priority)?,
            force: self.force,
            with_jobs: self.with_jobs,
            ..Order::new(action(&self.action)?, subject)
        })
    }
}

/// An order by its id, as it is or as it is remembered.
pub(in crate::web) fn find_order(state: &State, id: &str) -> Result<OrderView, Problem> {
    let id: OrderId = id.parse().map_err(|_| no_order())?;
    let actions = state.actions()?;
    if let Some(work) = actions.work(id) {
        return Ok(OrderView::of(&work).with(actions.audit().entry(id)));
    }
    actions.audit().entry(id).map(OrderView::remembered).ok_or_else(no_order)
}

fn no_order() -> Problem {
    Problem::missing("There is no such order, or it is so long ago that only the audit file has it.")
}

/// The action of that name.
pub(in crate::web) fn action(name: &str) -> Result<Action, Problem> {
    name.parse().map_err(|_| {
        let problem = Problem::bad(format!("There is no action “{}”.", query::shown(name)));
        problem.allowing(Action::ALL.map(Action::label))
    })
}

pub(in crate::web) fn bad_item(item: &str, error: &crate::actions::UnknownSubject) -> Problem {
    Problem::bad(format!("Nothing can be ordered on “{}”: {error}.", query::shown(item)))
}

/// The state of that name; none for none.
pub(in crate::web) fn job_state(name: Option<&str>) -> Result<Option<JobState>, Problem> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let state = JobState::ALL.iter().copied().find(|state| state.label() == name);
    state.map(Some).ok_or_else(|| {
        let problem = Problem::bad(format!("There is no state “{}”.", query::shown(name)));
        problem.allowing(JobState::ALL.iter().map(|state| state.label()))
    })
}

/// A priority; none for none.
pub(in crate::web) fn priority(number: Option<u8>) -> Result<Option<Priority>, Problem> {
    let wrong = || Problem::bad("A priority is a number from 0, the most urgent, to 99.");
    number.map(|number| Priority::new(number.into()).ok_or_else(wrong)).transpose()
}

/// What was planned when it was shown, as it was told then.
pub(in crate::web) fn plan(text: &str) -> Result<u64, Problem> {
    u64::from_str_radix(text, 16).map_err(|_| Problem::bad("A “plan” is what a dry run answers with, word for word."))
}

/// Why somebody orders something.
pub(in crate::web) fn reason(text: &str) -> Result<Reason, Problem> {
    Reason::new(text).map_err(|error| Problem::from(Refusal::Invalid(error.to_string())))
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
