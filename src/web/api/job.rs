use axum::extract::{Path, State as FromState};
use jiff::Timestamp;

use super::Answer;
use crate::insight;
use crate::views::diagnosis::Diagnosis;
use crate::views::job::JobDetail;
use crate::web::State;
use crate::web::http::json::Json;
use crate::web::http::problem::Problem;
use queuekeeper_queue::id::JobId;

/// `GET /api/v1/jobs/{jid}`: everything that is known of one job.
///
/// Its znodes are read from ZooKeeper; where that cannot be done `nodes_problem` says why, and the rest is there.
#[utoipa::path(
    get, path = "/jobs/{jid}",
    params(("jid" = String, Path, description = "The job's id: jid and ten digits", example = "jid0000000042")),
    responses(
        (status = 200, body = JobDetail),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such job"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "The queue has not been read yet"),
    ),
)]
pub(super) async fn job(FromState(state): FromState<State>, Path(jid): Path<String>) -> Answer<JobDetail> {
    Ok(Json(find(&state, &jid, Timestamp::now()).await?))
}

/// `GET /api/v1/jobs/{jid}/diagnosis`: why a job is not moving.
#[utoipa::path(
    get, path = "/jobs/{jid}/diagnosis",
    params(("jid" = String, Path, description = "The job's id: jid and ten digits", example = "jid0000000042")),
    responses(
        (status = 200, body = Diagnosis),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such job"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "The queue has not been read yet"),
    ),
)]
pub(super) async fn diagnosis(FromState(state): FromState<State>, Path(jid): Path<String>) -> Answer<Diagnosis> {
    let id = known_id(&state, &jid)?;
    let found = insight::why_job(&state.shared.store, id, state.volume(), Timestamp::now());
    found.as_ref().map(|diagnosis| Json(Diagnosis::from(diagnosis))).ok_or_else(|| no_job(&jid))
}

/// The job of that name.
pub(in crate::web) async fn find(state: &State, jid: &str, now: Timestamp) -> Result<JobDetail, Problem> {
    let id = known_id(state, jid)?;
    JobDetail::of(&state.shared.store, id, state.volume(), now).await.ok_or_else(|| no_job(jid))
}

fn known_id(state: &State, jid: &str) -> Result<JobId, Problem> {
    let id = jid.parse().map_err(|_| no_job(jid))?;
    if state.shared.store.freshness().last_walk.is_none() { Err(Problem::no_image()) } else { Ok(id) }
}

fn no_job(jid: &str) -> Problem {
    let name: String = jid.chars().take(40).collect();
    Problem::missing(format!(
        "There is no job {}. A job's id is jid and ten digits; a job that was purged is gone for good.",
        crate::views::show::visible(&name)
    ))
}
