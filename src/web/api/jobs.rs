use axum::extract::State as FromState;
use jiff::Timestamp;
use utoipa::IntoParams;

use super::Answer;
use crate::views::jobs::JobList;
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::http::query::Pairs;
use crate::web::{State, query};

/// The filter of a list of jobs. All that is given must hold.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes what `query::parse` takes")]
struct JobFilter {
    /// In one of these states; `other` for a status that nobody knows. Once for each, or with commas between.
    #[param(style = Form, explode, example = json!(["failed", "held"]))]
    state: Option<Vec<String>>,
    /// Of the collection of this mnemonic; `(none)` for jobs that name none.
    collection: Option<String>,
    /// Of this batch: its id, or the number in it.
    #[param(example = "bid0000000042")]
    batch: Option<String>,
    /// In its state for at least so long, in Prometheus' notation.
    #[param(example = "1h30m")]
    min_age: Option<String>,
    /// Resumed at least so often.
    min_retries: Option<u32>,
    /// Locked, or not.
    locked: Option<bool>,
    /// With this fault.
    #[param(example = "orphan_entry")]
    fault: Option<String>,
    /// Of this group of failures.
    #[param(pattern = "^[0-9a-f]{16}$")]
    group: Option<String>,
    /// With this text in job id, file name, title, ARK, local ids, submitter or message, whatever the case of its
    /// letters.
    #[param(max_length = 200)]
    text: Option<String>,
    /// The order: `entered`, `id`, `priority`, `space_needed` or `retries`; `entered`, unless it is given.
    sort: Option<String>,
    /// Its direction: `asc` or `desc`; `asc`, unless it is given.
    direction: Option<String>,
    /// How many jobs the page has at most.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u16>,
    /// Where the page begins, as an earlier page of the same list said.
    cursor: Option<String>,
}

/// `GET /api/v1/jobs`: which jobs, filtered, sorted and paged.
#[utoipa::path(
    get,
    path = "/jobs",
    params(JobFilter),
    responses(
        (status = 200, body = JobList),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "A parameter is not taken"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "No such collection or group"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "The queue is not read yet"),
    )
)]
pub(super) async fn jobs(FromState(state): FromState<State>, Params(pairs): Params<Pairs>) -> Answer<JobList> {
    Ok(Json(state.jobs(&query::parse(&pairs)?, Timestamp::now())?))
}
