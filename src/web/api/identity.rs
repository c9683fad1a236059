use axum::extract::State as FromState;

use crate::web::State;
use crate::web::identity::Identity;
use crate::web::json::Json;
use crate::web::views::identity::Myself;

/// `GET /api/v1/identity`: who asks, and what he may request.
#[utoipa::path(get, path = "/identity", responses((status = 200, body = Myself)))]
pub(super) async fn identity(FromState(state): FromState<State>, who: Identity) -> Json<Myself> {
    Json(Myself::new(&state, &who))
}
