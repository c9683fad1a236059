use axum::extract::State as FromState;

use super::Answer;
use super::csv::{self, Csv};
use crate::views::PageQuery;
use crate::views::failures::{FailureList, FailureSort};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// `GET /api/v1/failures`: failed jobs, grouped by last successful state and message, by default the largest group
/// first.
#[utoipa::path(get, path = "/failures", params(FailureSort, PageQuery), responses((status = 200, body = FailureList)))]
pub(super) async fn failures(
    FromState(state): FromState<State>,
    Params((sort, page)): Params<(FailureSort, PageQuery)>,
) -> Answer<FailureList> {
    Ok(Json(state.source().failures(sort, &page)?))
}

/// `GET /api/v1/failures.csv`: failed jobs as CSV, grouped by cause, by default the largest group first.
#[utoipa::path(
    get,
    path = "/failures.csv",
    params(FailureSort),
    responses((status = 200, body = String, content_type = csv::MEDIA_TYPE))
)]
pub(super) async fn failures_csv(
    FromState(state): FromState<State>,
    Params(sort): Params<FailureSort>,
) -> Result<Csv, Problem> {
    csv::whole(state, move |state, page| Ok(state.source().failures(sort, &page)?))
}
