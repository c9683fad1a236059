use std::time::Duration;

use axum::extract::State as FromState;
use jiff::Timestamp;

use super::Answer;
use crate::web::State;
use crate::web::json::Json;
use crate::web::params::Params;
use crate::web::problem::Problem;
use crate::web::views::history::{History, HistoryQuery};
use crate::web::views::overview::Overview;

/// `GET /api/v1/overview`: is it flowing, and if not, where and why.
#[utoipa::path(get, path = "/overview", responses(
    (status = 200, body = Overview),
    (status = 503, description = "There is no image of the queue", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn overview(FromState(state): FromState<State>) -> Answer<Overview> {
    let now = Timestamp::now();
    state.overview(&state.view(now), &state.recent(now)).map(Json).ok_or_else(Problem::no_image)
}

/// `GET /api/v1/history`: the queue's figures over the last six hours.
#[utoipa::path(get, path = "/history", params(HistoryQuery), responses(
    (status = 200, body = History),
    (status = 400, description = "The number of points is none that can be had", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn history(
    FromState(state): FromState<State>,
    Params(asked): Params<HistoryQuery>,
) -> Answer<History> {
    let history = state.shared.store.history(Timestamp::now(), Duration::from_hours(6), asked.points()?);
    Ok(Json(History::from(&history)))
}
