use axum::extract::State as FromState;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Answer;
use crate::views::failures::FailureList;
use crate::web::State;
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::http::query::{LIMIT, bad_cursor, limit};

/// Which page of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct FailurePage {
    /// How many groups the page has at most.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 500, default = 50)]
    limit: Option<String>,
    /// Where the page begins, as an earlier page said.
    cursor: Option<String>,
}

impl FailurePage {
    /// The page asked for.
    pub(in crate::web) fn list(&self, state: &State) -> Result<FailureList, Problem> {
        let given = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
        let limit = given(&self.limit).map_or(Ok(LIMIT), |value| limit(&value))?;
        let cursor = given(&self.cursor).map(|cursor| cursor.parse().map_err(bad_cursor)).transpose()?;
        let page = state.shared.store.failures(limit, cursor).ok_or_else(Problem::no_image)?;
        Ok(FailureList::new(page))
    }

    /// How many groups the page has at most, if somebody said.
    pub(in crate::web) fn limit(&self) -> Option<&str> {
        self.limit.as_deref().filter(|limit| !limit.is_empty())
    }
}

/// `GET /api/v1/failures`: failed jobs, grouped by last successful state and message, the largest group first.
#[utoipa::path(
    get,
    path = "/failures",
    params(FailurePage),
    responses(
        (status = 200, body = FailureList),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "A parameter is not taken"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "The queue is not read yet"),
    )
)]
pub(super) async fn failures(
    FromState(state): FromState<State>,
    Params(page): Params<FailurePage>,
) -> Answer<FailureList> {
    Ok(Json(page.list(&state)?))
}
