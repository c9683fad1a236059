//! Reports on the integrity of spaces, and their files.

use axum::body::Body;
use axum::extract::{Path, State as FromState};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::views::mill::{OpenReport, ReportDetail, ReportFile, ReportFilter, ReportList, ReportPage};
use crate::web::http::attachment::{MEDIA_TYPE, POLICY, disposition};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// All of them.
pub(super) fn router() -> OpenApiRouter<State> {
    OpenApiRouter::new().routes(routes!(mill_reports)).routes(routes!(mill_report)).routes(routes!(mill_report_file))
}

/// `GET /api/v1/mill/reports`: reports on the integrity of spaces, those of the newest loops first.
#[utoipa::path(
    get, path = "/mill/reports",
    params(ReportFilter),
    responses(
        (status = 200, body = ReportList),
    ),
)]
pub(super) async fn mill_reports(
    FromState(state): FromState<State>,
    Params(filter): Params<ReportFilter>,
) -> Answer<ReportList> {
    Ok(Json(state.mill()?.reports(&filter).await?))
}

/// `GET /api/v1/mill/reports/{id}`: what a report covers, and the items with errors.
#[utoipa::path(
    get, path = "/mill/reports/{id}",
    params(("id" = u64, Path, description = "The number of the report", example = 4711), ReportPage),
    responses((status = 200, body = ReportDetail), (status = 404, description = "There is no such report")),
)]
pub(super) async fn mill_report(
    FromState(state): FromState<State>,
    Path(id): Path<String>,
    Params(page): Params<ReportPage>,
) -> Answer<ReportDetail> {
    Ok(Json(state.mill()?.report(&id, &page).await?))
}

/// `GET /api/v1/mill/reports/{id}/file`: a file of a report, as stored, or its items as CSV.
///
/// In CSV, invisible characters are escaped, and a text that a spreadsheet would take for a formula is prefixed with an
/// apostrophe. A response that ends early is incomplete, which its length or its chunked encoding shows.
#[utoipa::path(
    get, path = "/mill/reports/{id}/file",
    params(("id" = u64, Path, description = "The number of the report", example = 4711), ReportFile),
    responses(
        (status = 200, body = Vec<u8>, content_type = MEDIA_TYPE),
        (status = 404, description = "The report does not exist or its files are no longer in the store"),
    ),
)]
pub(super) async fn mill_report_file(
    FromState(state): FromState<State>,
    Path(id): Path<String>,
    Params(file): Params<ReportFile>,
) -> Result<Response, Problem> {
    let OpenReport { name, length, chunks } = state.mill()?.open_report(&id, file.format.0).await?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    ];
    let log = move |error: &std::io::Error| tracing::warn!(%error, report = id, "a file of a report ends early");
    let chunks = chunks.inspect(move |chunk| {
        chunk.as_ref().err().map(&log);
    });
    let mut response = (headers, Body::from_stream(chunks)).into_response();
    // Both are ASCII by how they are made.
    if let Ok(value) = HeaderValue::from_str(&disposition(&name)) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    if let Some(length) = length {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(response)
}
