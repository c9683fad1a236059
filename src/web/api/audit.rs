//! The audit trail.

use axum::extract::State as FromState;

use super::Answer;
use super::csv::{self, Csv};
use crate::views::PageQuery;
use crate::views::audit::{AuditFilter, AuditList};
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// The page that a filter asks for. A server that takes no actions has an empty trail.
pub(in crate::web) fn list(state: &State, filter: &AuditFilter, page: &PageQuery) -> Result<AuditList, Problem> {
    let query = filter.query(page)?;
    Ok(state.actions().map_or_else(|_| AuditList::default(), |actions| AuditList::new(actions.audit().find(&query))))
}

/// `GET /api/v1/audit`: recent actions and who requested them, by default the newest first, filtered and paged.
///
/// The newest ten thousand actions are kept in memory; the audit file has all of them.
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
