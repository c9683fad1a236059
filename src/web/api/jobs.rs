use axum::extract::State as FromState;
use jiff::Timestamp;

use super::Answer;
use super::csv::{self, Csv};
use crate::views::PageQuery;
use crate::views::jobs::{JobFilter, JobList};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// `GET /api/v1/jobs`: which jobs, filtered, sorted and paged.
#[utoipa::path(get, path = "/jobs", params(JobFilter, PageQuery), responses((status = 200, body = JobList)))]
pub(super) async fn jobs(
    FromState(state): FromState<State>,
    Params((filter, page)): Params<(JobFilter, PageQuery)>,
) -> Answer<JobList> {
    Ok(Json(state.source().jobs(&filter, &page, Timestamp::now())?))
}

/// `GET /api/v1/jobs.csv`: which jobs, as CSV, filtered and sorted.
#[utoipa::path(
    get,
    path = "/jobs.csv",
    params(JobFilter),
    responses((status = 200, body = String, content_type = csv::MEDIA_TYPE))
)]
pub(super) async fn jobs_csv(
    FromState(state): FromState<State>,
    Params(filter): Params<JobFilter>,
) -> Result<Csv, Problem> {
    csv::whole(state, move |state, page| Ok(state.source().jobs(&filter, &page, Timestamp::now())?))
}
