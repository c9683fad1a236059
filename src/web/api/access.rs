use axum::extract::State as FromState;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Answer;
use crate::mirror::lists::{self, RequestOrder};
use crate::views::access::AccessList;
use crate::web::State;
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::lists::{age, choose, part, state, text};
use queuekeeper_queue::path::AccessQueue;

/// The filter of a list of access requests. All that is given must hold.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct AccessFilter {
    /// Of this queue.
    pub(in crate::web) queue: Option<String>,
    /// In this state; `other` for a status that nobody knows.
    pub(in crate::web) state: Option<String>,
    /// So long in its state: a band, named by its end, as in the metrics.
    pub(in crate::web) age: Option<String>,
    /// With this text in id or token, whatever the case of its letters.
    #[param(max_length = 200)]
    pub(in crate::web) text: Option<String>,
    /// The order: those longest in their state first, the last changed, the last created, the largest, the smallest.
    /// `waiting`, unless it is given.
    pub(in crate::web) sort: Option<String>,
    /// How many requests the page has at most.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 500, default = 50)]
    pub(in crate::web) limit: Option<String>,
    /// Where the page begins, as an earlier page of the same list said.
    pub(in crate::web) cursor: Option<String>,
}

impl AccessFilter {
    /// The order that is asked for.
    pub(in crate::web) fn order(&self) -> Result<RequestOrder, Problem> {
        Ok(choose("sort", self.sort.as_ref(), RequestOrder::ALL, RequestOrder::label)?.unwrap_or_default())
    }

    /// The page that is asked for.
    pub(in crate::web) fn list(&self, of: &State, now: Timestamp) -> Result<AccessList, Problem> {
        let filter = lists::RequestFilter {
            queue: choose("queue", self.queue.as_ref(), AccessQueue::ALL, AccessQueue::name)?,
            state: state(self.state.as_ref())?,
            age: age(self.age.as_ref())?,
            text: text(self.text.as_ref())?,
        };
        let part = part(self.limit.as_ref(), self.cursor.as_ref())?;
        Ok(AccessList::new(of.shared.store.request_list(&filter, self.order()?, &part, now)?))
    }
}

/// `GET /api/v1/access`: access requests, filtered, sorted and paged.
#[utoipa::path(
    get,
    path = "/access",
    params(AccessFilter),
    responses(
        (status = 200, body = AccessList),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "A parameter is not taken"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "The queue is not read yet"),
    )
)]
pub(super) async fn access(
    FromState(state): FromState<State>,
    Params(filter): Params<AccessFilter>,
) -> Answer<AccessList> {
    Ok(Json(filter.list(&state, Timestamp::now())?))
}
