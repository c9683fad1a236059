use axum::extract::State as FromState;
use jiff::Timestamp;

use super::Answer;
use super::csv::{self, Csv};
use crate::views::PageQuery;
use crate::views::access::{AccessFilter, AccessList};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// `GET /api/v1/access`: access requests, filtered, sorted and paged.
#[utoipa::path(get, path = "/access", params(AccessFilter, PageQuery), responses((status = 200, body = AccessList)))]
pub(super) async fn access(
    FromState(state): FromState<State>,
    Params((filter, page)): Params<(AccessFilter, PageQuery)>,
) -> Answer<AccessList> {
    Ok(Json(state.source().access(&filter, &page, Timestamp::now())?))
}

/// `GET /api/v1/access.csv`: access requests as CSV, filtered and sorted.
#[utoipa::path(
    get,
    path = "/access.csv",
    params(AccessFilter),
    responses((status = 200, body = String, content_type = csv::MEDIA_TYPE))
)]
pub(super) async fn access_csv(
    FromState(state): FromState<State>,
    Params(filter): Params<AccessFilter>,
) -> Result<Csv, Problem> {
    csv::whole(state, move |state, page| Ok(state.source().access(&filter, &page, Timestamp::now())?))
}
