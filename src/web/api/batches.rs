use axum::extract::{Path, State as FromState};
use jiff::Timestamp;

use super::Answer;
use super::csv::{self, Csv};
use crate::views::PageQuery;
use crate::views::batches::{BatchFilter, BatchList, BatchStanding};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// `GET /api/v1/batches`: which batches, filtered, sorted and paged.
#[utoipa::path(get, path = "/batches", params(BatchFilter, PageQuery), responses((status = 200, body = BatchList)))]
pub(super) async fn batches(
    FromState(state): FromState<State>,
    Params((filter, page)): Params<(BatchFilter, PageQuery)>,
) -> Answer<BatchList> {
    Ok(Json(state.source().batches(&filter, &page)?))
}

/// `GET /api/v1/batches.csv`: which batches, as CSV, filtered and sorted.
#[utoipa::path(
    get,
    path = "/batches.csv",
    params(BatchFilter),
    responses((status = 200, body = String, content_type = csv::MEDIA_TYPE))
)]
pub(super) async fn batches_csv(
    FromState(state): FromState<State>,
    Params(filter): Params<BatchFilter>,
) -> Result<Csv, Problem> {
    csv::whole(state, move |state, page| Ok(state.source().batches(&filter, &page)?))
}

/// `GET /api/v1/batches/{batch}`: the progress of a batch.
#[utoipa::path(
    get,
    path = "/batches/{batch}",
    params(("batch" = String, Path, description = "Its id, or the UUID of its submission", example = "bid0000000042")),
    responses((status = 200, body = BatchStanding))
)]
pub(super) async fn batch(FromState(state): FromState<State>, Path(name): Path<String>) -> Answer<BatchStanding> {
    Ok(Json(state.source().batch(&name, Timestamp::now())?))
}
