use axum::extract::State as FromState;
use axum::http::StatusCode;
use jiff::Timestamp;

use super::Answer;
use super::csv::{self, Csv};
use crate::actions::access::AccessRequest;
use crate::actions::{Role, Source};
use crate::views::PageQuery;
use crate::views::access::{AccessFilter, AccessList, MadeAccess};
use crate::web::http::identity::Identity;
use crate::web::http::json::Json;
use crate::web::http::params::{Body, Params};
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// `GET /api/v1/access`: access requests, filtered, sorted and paged.
#[utoipa::path(get, path = "/access", params(AccessFilter, PageQuery), responses((status = 200, body = AccessList)))]
pub(super) async fn access(
    FromState(state): FromState<State>,
    Params((filter, page)): Params<(AccessFilter, PageQuery)>,
) -> Answer<AccessList> {
    Ok(Json(state.source().access(&filter, &page, Timestamp::now())?))
}

/// `POST /api/v1/access`: requests an object as an archive.
///
/// The access daemon assembles it and writes its location into the token; `GET /api/v1/access?text=TOKEN` has the state
/// of the request, and once it is completed its `url`. That needs no login, and is valid until `expires`.
#[utoipa::path(
    post, path = "/access",
    request_body = AccessRequest,
    responses(
        (status = 201, body = MadeAccess, description = "The request was created"),
        (status = 400, description = "The request is not valid"),
        (status = 404, description = "There is no such object or version"),
    ),
)]
pub(super) async fn request(
    FromState(state): FromState<State>,
    who: Identity,
    Body(request): Body<AccessRequest>,
) -> Result<(StatusCode, Json<MadeAccess>), Problem> {
    let actor = state.authorize(&who, Role::Operator, Source::Api)?;
    let made = state.requests()?.make(&request, &actor).await?;
    Ok((StatusCode::CREATED, Json(MadeAccess::from(&made))))
}

/// `GET /api/v1/access.csv`: access requests as CSV, filtered and sorted.
#[utoipa::path(
    get,
    path = "/access.csv",
    params(AccessFilter),
    responses((status = 200, body = String, content_type = csv::MEDIA_TYPE))
)]
pub(super) async fn access_csv(
    FromState(state): FromState<State>,
    Params(filter): Params<AccessFilter>,
) -> Result<Csv, Problem> {
    csv::whole(state, move |state, page| Ok(state.source().access(&filter, &page, Timestamp::now())?))
}
