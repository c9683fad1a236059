use axum::extract::State as FromState;
use jiff::Timestamp;

use super::Answer;
use crate::views::PageQuery;
use crate::views::locks::{LockFilter, LockList};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::state::State;

/// `GET /api/v1/locks`: who holds what, oldest first, filtered and paged.
#[utoipa::path(get, path = "/locks", params(LockFilter, PageQuery), responses((status = 200, body = LockList)))]
pub(super) async fn locks(
    FromState(state): FromState<State>,
    Params((filter, page)): Params<(LockFilter, PageQuery)>,
) -> Answer<LockList> {
    Ok(Json(state.source().locks(&filter, &page, Timestamp::now())?))
}
