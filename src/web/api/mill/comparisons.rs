//! Comparisons of what stores list with the content index.

use axum::extract::State as FromState;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::views::mill::{ComparisonFilter, ComparisonList};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::state::State;

/// All of it.
pub(super) fn router() -> OpenApiRouter<State> {
    OpenApiRouter::new().routes(routes!(mill_comparisons))
}

/// `GET /api/v1/mill/comparisons`: the last kept comparisons of the listings of stores with the content index.
///
/// `queuekeeper mill compare --keep` makes them.
#[utoipa::path(
    get, path = "/mill/comparisons",
    params(ComparisonFilter),
    responses(
        (status = 200, body = ComparisonList),
    ),
)]
pub(super) async fn mill_comparisons(
    FromState(state): FromState<State>,
    Params(filter): Params<ComparisonFilter>,
) -> Answer<ComparisonList> {
    Ok(Json(state.mill()?.comparisons(&filter).await?))
}
