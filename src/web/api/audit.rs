//! The audit trail.

use axum::extract::State as FromState;
use jiff::Timestamp;

use super::Answer;
use super::csv::{self, Csv};
use crate::mirror::find::JobQuery;
use crate::views::PageQuery;
use crate::views::audit::{AuditFilter, AuditItem, AuditList};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// The page that a filter asks for, where a batch stands for its jobs too. A server that takes no actions has an empty
/// trail.
pub(in crate::web) fn list(state: &State, filter: &AuditFilter, page: &PageQuery) -> Result<AuditList, Problem> {
    let batch = filter.target().and_then(|target| target.parse().ok());
    let query = JobQuery { batch, ..JobQuery::default() };
    let jobs = batch.and_then(|_| state.shared.store.matching(&query, Timestamp::now()));
    let jobs = jobs.into_iter().flatten().map(|(job, _)| job.to_string()).collect();
    find(state, filter, jobs, page)
}

/// The last actions on a target itself.
pub(in crate::web) fn on(state: &State, target: &str, limit: usize) -> Vec<AuditItem> {
    let filter = AuditFilter { target: Some(target.to_owned()), ..AuditFilter::default() };
    // A first page has no cursor that could be wrong.
    find(state, &filter, Vec::new(), &PageQuery::first(limit)).map(|list| list.items).unwrap_or_default()
}

fn find(state: &State, filter: &AuditFilter, with_it: Vec<String>, page: &PageQuery) -> Result<AuditList, Problem> {
    let query = filter.query(with_it, page)?;
    Ok(state.actions().map_or_else(|_| AuditList::default(), |actions| AuditList::new(actions.audit().find(&query))))
}

/// `GET /api/v1/audit`: recent actions and who requested them, by default the newest first, filtered and paged.
///
/// The newest ten thousand actions are kept in memory; the audit file has all of them. The actions of one decision of a
/// rule are one item.
#[utoipa::path(get, path = "/audit", params(AuditFilter, PageQuery), responses((status = 200, body = AuditList)))]
pub(super) async fn audit(
    FromState(state): FromState<State>,
    Params((filter, page)): Params<(AuditFilter, PageQuery)>,
) -> Answer<AuditList> {
    Ok(Json(list(&state, &filter, &page)?))
}

/// `GET /api/v1/audit.csv`: recent actions as CSV, by default the newest first, filtered.
#[utoipa::path(
    get,
    path = "/audit.csv",
    params(AuditFilter),
    responses((status = 200, body = String, content_type = csv::MEDIA_TYPE))
)]
pub(super) async fn audit_csv(
    FromState(state): FromState<State>,
    Params(filter): Params<AuditFilter>,
) -> Result<Csv, Problem> {
    csv::whole(state, move |state, page| list(state, &filter, &page))
}
