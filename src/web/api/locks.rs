use axum::extract::State as FromState;
use jiff::Timestamp;

use super::Answer;
use super::csv::{self, Csv};
use crate::views::PageQuery;
use crate::views::locks::{LockFilter, LockList};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// `GET /api/v1/locks`: who holds what, filtered, sorted and paged.
#[utoipa::path(get, path = "/locks", params(LockFilter, PageQuery), responses((status = 200, body = LockList)))]
pub(super) async fn locks(
    FromState(state): FromState<State>,
    Params((filter, page)): Params<(LockFilter, PageQuery)>,
) -> Answer<LockList> {
    Ok(Json(state.source().locks(&filter, &page, Timestamp::now())?))
}

/// `GET /api/v1/locks.csv`: who holds what, as CSV, filtered and sorted.
#[utoipa::path(
    get,
    path = "/locks.csv",
    params(LockFilter),
    responses((status = 200, body = String, content_type = csv::MEDIA_TYPE))
)]
pub(super) async fn locks_csv(
    FromState(state): FromState<State>,
    Params(filter): Params<LockFilter>,
) -> Result<Csv, Problem> {
    csv::whole(state, move |state, page| Ok(state.source().locks(&filter, &page, Timestamp::now())?))
}
