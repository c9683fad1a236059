use std::time::Duration;

use axum::extract::State as FromState;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Answer;
use crate::views::history::History;
use crate::views::overview::{Overview, Recent};
use crate::views::parameter::Within;
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::state::State;

/// How many points there are; the finest history has one every ten seconds.
type Points = Within<1, 2160, 360>;

/// The resolution.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(super) struct HistoryQuery {
    /// The maximum number of points.
    #[param(inline)]
    points: Points,
}

/// `GET /api/v1/overview`: is it flowing, and if not, where and why.
#[utoipa::path(get, path = "/overview", responses((status = 200, body = Overview)))]
pub(super) async fn overview(FromState(state): FromState<State>) -> Answer<Overview> {
    let (source, now) = (state.source(), Timestamp::now());
    let summary = source.summary(now)?;
    let recent = Recent { bit_errors: state.bit_errors().await, ..source.recent(now) };
    Ok(Json(source.overview(&summary, &recent, now)))
}

/// `GET /api/v1/history`: the queue's figures over the last six hours.
#[utoipa::path(get, path = "/history", params(HistoryQuery), responses((status = 200, body = History)))]
pub(super) async fn history(
    FromState(state): FromState<State>,
    Params(query): Params<HistoryQuery>,
) -> Answer<History> {
    let history = state.shared.store.history(Timestamp::now(), Duration::from_hours(6), query.points.get());
    Ok(Json(History::from(&history)))
}
