use axum::extract::State as FromState;

use super::Answer;
use super::csv::{self, Csv};
use crate::views::PageQuery;
use crate::views::failures::FailureList;
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// `GET /api/v1/failures`: failed jobs, grouped by last successful state and message, the largest group first.
#[utoipa::path(get, path = "/failures", params(PageQuery), responses((status = 200, body = FailureList)))]
pub(super) async fn failures(
    FromState(state): FromState<State>,
    Params(page): Params<PageQuery>,
) -> Answer<FailureList> {
    Ok(Json(state.source().failures(&page)?))
}

/// `GET /api/v1/failures.csv`: failed jobs as CSV, in groups of one cause, the largest group first.
#[utoipa::path(
    get,
    path = "/failures.csv",
    responses((status = 200, body = String, content_type = csv::MEDIA_TYPE))
)]
pub(super) async fn failures_csv(FromState(state): FromState<State>) -> Result<Csv, Problem> {
    csv::whole(state, move |state, page| Ok(state.source().failures(&page)?))
}
