use axum::extract::State as FromState;
use jiff::Timestamp;

use super::Answer;
use super::csv::{self, Csv};
use crate::views::PageQuery;
use crate::views::faults::{FaultFilter, FaultList};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// `GET /api/v1/faults`: what is broken in the tree, since when, its effect and its fix.
#[utoipa::path(get, path = "/faults", params(FaultFilter, PageQuery), responses((status = 200, body = FaultList)))]
pub(super) async fn faults(
    FromState(state): FromState<State>,
    Params((filter, page)): Params<(FaultFilter, PageQuery)>,
) -> Answer<FaultList> {
    Ok(Json(state.source().faults(&filter, &page, Timestamp::now())?))
}

/// `GET /api/v1/faults.csv`: what is broken in the tree, as CSV, filtered.
#[utoipa::path(
    get,
    path = "/faults.csv",
    params(FaultFilter),
    responses((status = 200, body = String, content_type = csv::MEDIA_TYPE))
)]
pub(super) async fn faults_csv(
    FromState(state): FromState<State>,
    Params(filter): Params<FaultFilter>,
) -> Result<Csv, Problem> {
    csv::whole(state, move |state, page| Ok(state.source().faults(&filter, &page, Timestamp::now())?))
}
