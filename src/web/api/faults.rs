use axum::extract::State as FromState;
use jiff::Timestamp;

use super::Answer;
use crate::views::PageQuery;
use crate::views::faults::{FaultFilter, FaultList};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::state::State;

/// `GET /api/v1/faults`: what is broken in the tree, since when, its effect and its fix.
#[utoipa::path(get, path = "/faults", params(FaultFilter, PageQuery), responses((status = 200, body = FaultList)))]
pub(super) async fn faults(
    FromState(state): FromState<State>,
    Params((filter, page)): Params<(FaultFilter, PageQuery)>,
) -> Answer<FaultList> {
    Ok(Json(state.source().faults(&filter, &page, Timestamp::now())?))
}
