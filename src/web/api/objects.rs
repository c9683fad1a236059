use axum::extract::{Path, State as FromState};

use super::Answer;
use crate::views::objects::{FileFilter, ObjectDetail, ObjectFilter, ObjectList};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::state::State;

/// `GET /api/v1/objects`: the objects of the catalogue, by ARK, local id, title or collection.
#[utoipa::path(
    get, path = "/objects",
    params(ObjectFilter),
    responses((status = 200, body = ObjectList), (status = 404, description = "This server has no catalogue")),
)]
pub(super) async fn objects(
    FromState(state): FromState<State>,
    Params(filter): Params<ObjectFilter>,
) -> Answer<ObjectList> {
    Ok(Json(state.objects()?.list(&filter).await?))
}

/// `GET /api/v1/objects/{ark}`: an object with its versions, and the files of one of them.
#[utoipa::path(
    get, path = "/objects/{*ark}",
    params(("ark" = String, Path, description = "The ARK", example = "ark:/99999/fk4abc1234"), FileFilter),
    responses(
        (status = 200, body = ObjectDetail),
        (status = 404, description = "There is no such object or version, or this server has no catalogue"),
    ),
)]
pub(super) async fn object(
    FromState(state): FromState<State>,
    Path(ark): Path<String>,
    Params(filter): Params<FileFilter>,
) -> Answer<ObjectDetail> {
    Ok(Json(state.objects()?.object(&ark, &filter).await?))
}
