use axum::extract::State as FromState;
use jiff::Timestamp;

use crate::web::State;
use crate::web::json::Json;
use crate::web::views::status::Status;

/// `GET /api/v1/status`: how far the image can be trusted.
#[utoipa::path(get, path = "/status", responses((status = 200, body = Status)))]
pub(super) async fn status(FromState(state): FromState<State>) -> Json<Status> {
    Json(state.status(Timestamp::now()))
}
