use axum::extract::State as FromState;
use jiff::Timestamp;

use super::Answer;
use crate::views::daemons::DaemonList;
use crate::web::http::json::Json;
use crate::web::state::State;

/// `GET /api/v1/daemons`: which daemons are running, what they are working on, and which states have none.
#[utoipa::path(get, path = "/daemons", responses((status = 200, body = DaemonList)))]
pub(super) async fn daemons(FromState(state): FromState<State>) -> Answer<DaemonList> {
    Ok(Json(state.source().daemons(Timestamp::now())?))
}
