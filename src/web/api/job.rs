use axum::extract::{Path, State as FromState};
use jiff::Timestamp;

use super::Answer;
use crate::views::diagnosis::DiagnosisView;
use crate::views::job::JobDetail;
use crate::web::http::json::Json;
use crate::web::state::State;

/// `GET /api/v1/jobs/{jid}`: all known facts about a job.
///
/// Its znodes are read from ZooKeeper; where that fails `nodes_problem` has the reason, and the rest is complete.
#[utoipa::path(
    get, path = "/jobs/{jid}",
    params(("jid" = String, Path, description = "The job's id: jid and ten digits", example = "jid0000000042")),
    responses((status = 200, body = JobDetail)),
)]
pub(super) async fn job(FromState(state): FromState<State>, Path(jid): Path<String>) -> Answer<JobDetail> {
    Ok(Json(state.job(&jid, Timestamp::now()).await?))
}

/// `GET /api/v1/jobs/{jid}/diagnosis`: why a job is not moving.
#[utoipa::path(
    get, path = "/jobs/{jid}/diagnosis",
    params(("jid" = String, Path, description = "The job's id: jid and ten digits", example = "jid0000000042")),
    responses((status = 200, body = DiagnosisView)),
)]
pub(super) async fn diagnosis(FromState(state): FromState<State>, Path(jid): Path<String>) -> Answer<DiagnosisView> {
    Ok(Json(state.source().job_diagnosis(&jid, Timestamp::now())?))
}
