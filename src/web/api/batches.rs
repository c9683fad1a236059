use axum::extract::{Path, State as FromState};
use jiff::Timestamp;

use super::Answer;
use crate::views::PageQuery;
use crate::views::batches::{BatchFilter, BatchList, BatchStanding};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::state::State;

/// `GET /api/v1/batches`: which batches, filtered, sorted and paged.
#[utoipa::path(get, path = "/batches", params(BatchFilter, PageQuery), responses((status = 200, body = BatchList)))]
pub(super) async fn batches(
    FromState(state): FromState<State>,
    Params((filter, page)): Params<(BatchFilter, PageQuery)>,
) -> Answer<BatchList> {
    Ok(Json(state.source().batches(&filter, &page)?))
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
