use std::time::Duration;

use axum::extract::State as FromState;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Answer;
use crate::views::history::History;
use crate::views::overview::Overview;
use crate::web::State;
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::lists::size;

/// The most points that can be asked for: one each ten seconds.
const MOST: u32 = 2_160;

/// How many there are, where nobody says.
const POINTS: usize = 360;

/// How fine.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    /// How many points at most.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 2160, default = 360)]
    points: Option<String>,
}

impl HistoryQuery {
    /// The number of points.
    fn points(&self) -> Result<usize, Problem> {
        size("points", self.points.as_ref(), MOST, POINTS)
    }
}

/// `GET /api/v1/overview`: is it flowing, and if not, where and why.
#[utoipa::path(get, path = "/overview", responses(
    (status = 200, body = Overview),
    (status = 503, description = "There is no image of the queue", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn overview(FromState(state): FromState<State>) -> Answer<Overview> {
    let now = Timestamp::now();
    state.overview(now).map(Json).ok_or_else(Problem::no_image)
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
