use axum::extract::State as FromState;
use jiff::Timestamp;

use crate::views::status::Status;
use crate::web::http::json::Json;
use crate::web::state::State;

/// `GET /api/v1/status`: whether the mirror is current.
#[utoipa::path(get, path = "/status", responses((status = 200, body = Status)))]
pub(super) async fn status(FromState(state): FromState<State>) -> Json<Status> {
    Json(state.source().status(Timestamp::now()))
}
