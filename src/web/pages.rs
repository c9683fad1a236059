//! The pages: what they say, worked out from a view of the image, and then rendered.
//!
//! A page extends `base.html` and is complete without JavaScript. What changes with the queue stands between
//! `<!--live NAME-->` and `<!--/live NAME-->`, and is one element whose `id` is that name.

use askama::Template;
use axum::extract::{Path as FromPath, State as FromState};
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use jiff::Timestamp;

use super::http::identity::Identity;
use super::http::params::Params;
use super::http::problem::Problem;
use super::routes::SUBMIT;
use super::state::State;
use crate::config::RepositoryParts;
use crate::views::PageQuery;
use crate::views::access::AccessFilter;
use crate::views::audit::AuditFilter;
use crate::views::batches::BatchFilter;
use crate::views::failures::FailureSort;
use crate::views::faults::FaultFilter;
use crate::views::jobs::JobFilter;
use crate::views::locks::LockFilter;

mod about;
mod access;
mod action;
mod actions;
mod audit;
mod batch;
mod batches;
mod bulk;
mod buttons;
mod charts;
mod daemons;
mod dashboards;
pub(super) mod deployments;
pub(super) mod error;
mod failures;
mod faults;
mod frame;
mod inputs;
mod job;
mod jobs;
mod listing;
mod locks;
mod log;
mod mill;
mod objects;
mod overview;
mod plot;
mod progress;
mod reference;
mod rows;
mod rules;
mod runbook;
mod search;
mod state_tag;
mod submit;
mod tree;
mod withdraw;

pub use overview::Overview;

pub use super::state::View;
pub use crate::views::overview::{OpenBitErrors, Recent, Stopped};

/// Every page that can be looked at, and its route.
pub(super) fn read(has: RepositoryParts) -> Vec<(&'static str, MethodRouter<State>)> {
    let mut routes = followed();
    routes.extend([
        ("/search", get(search::search)),
        ("/action", get(action::ask).post(action::give)),
        ("/lists/{id}", get(bulk::show).post(bulk::execute)),
    ]);
    // What they show is not in the mirror, so that nothing reports its changes.
    if has.objects {
        let object = get(objects::show);
        let object = if has.deliveries { object.post(objects::request) } else { object };
        routes.extend([("/objects", get(objects::list)), ("/objects/{*ark}", object)]);
    }
    if has.mill {
        routes.extend(mill::routes());
    }
    // They show what is the caller's own.
    if has.deposits {
        let form = get(submit::form).post(submit::make);
        routes.extend([
            (SUBMIT, form),
            ("/submit/{id}", get(submit::show)),
            ("/submit/{id}/failed", post(submit::failed)),
            ("/submit/{id}/withdraw", get(withdraw::ask).post(withdraw::give)),
        ]);
    }
    routes
}

/// What only takes a form.
pub(super) fn posted(has: RepositoryParts) -> impl Iterator<Item = (&'static str, MethodRouter<State>)> {
    let mill = has.mill.then(mill::posted).into_iter().flatten();
    let posted = [
        ("/actions/{id}/cancel", post(actions::cancel)),
        ("/rules/change", post(rules::change)),
        ("/lists", post(bulk::freeze)),
    ];
    posted.into_iter().chain(mill)
}

/// The pages that are updated live. The previews of actions are not: they show the state that is confirmed, and read
/// from ZooKeeper.
pub(super) fn followed() -> Vec<(&'static str, MethodRouter<State>)> {
    vec![
        ("/", get(overview)),
        ("/charts", get(charts::all)),
        ("/charts/{name}", get(charts::one)),
        ("/jobs", list(get(list_jobs))),
        ("/failures", list(get(list_failures))),
        ("/jobs/{jid}", get(job::job)),
        ("/tree", get(tree::root)),
        ("/tree/", get(tree::root)),
        ("/tree/{*path}", get(tree::tree)),
        ("/batches", list(get(list_batches))),
        ("/batches/{batch}", get(show_batch)),
        ("/access", list(get(list_access))),
        ("/locks", list(get(list_locks))),
        ("/daemons", get(show_daemons)),
        ("/faults", list(get(list_faults))),
        ("/rules", get(rules::show)),
        ("/audit", list(get(list_audit))),
        ("/actions/{id}", get(actions::show)),
        ("/api", get(show_api)),
        ("/api/bodies", get(list_bodies)),
        ("/api/bodies/{body}", get(show_body)),
        ("/dashboards", get(show_dashboards)),
        ("/runbook", get(show_runbook)),
    ]
}

/// The addresses of the pages that need no id, relative to the root, such as `/jobs`.
pub fn addresses() -> impl Iterator<Item = &'static str> {
    let patterns = followed().into_iter().map(|(pattern, _)| pattern);
    patterns.filter(|pattern| !pattern.contains('{') && (*pattern == "/" || !pattern.ends_with('/')))
}

/// A page that is a list.
fn list(page: MethodRouter<State>) -> MethodRouter<State> {
    page.layer(middleware::from_fn(rows::few))
}

/// `GET /`: is it flowing, and if not, where.
async fn overview(FromState(state): FromState<State>, who: Identity) -> Response {
    let now = Timestamp::now();
    let recent = Recent { bit_errors: state.bit_errors().await, ..state.source().recent(now) };
    let page = Overview::new(&state.view(now), &recent).with_role(state.rights(&who));
    render(StatusCode::OK, &page)
}

/// `GET /jobs`: which jobs.
async fn list_jobs(
    FromState(state): FromState<State>,
    who: Identity,
    Params(list_query): Params<(JobFilter, PageQuery)>,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &jobs::JobsPage::new(&state, &list_query, state.rights(&who), None, Timestamp::now())?))
}

/// `GET /failures`: what fails, and whether it is one cause or many.
async fn list_failures(
    FromState(state): FromState<State>,
    who: Identity,
    Params(list_query): Params<(FailureSort, PageQuery)>,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &failures::FailuresPage::new(&state, &list_query, state.rights(&who), Timestamp::now())?))
}

/// `GET /batches`: which batches, and how far each of them is.
async fn list_batches(
    FromState(state): FromState<State>,
    who: Identity,
    Params(list_query): Params<(BatchFilter, PageQuery)>,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &batches::BatchesPage::new(&state, list_query, state.rights(&who), Timestamp::now())?))
}

/// `GET /batches/BID`: how far a deposit is. Its UUID leads there, too.
async fn show_batch(
    FromState(state): FromState<State>,
    who: Identity,
    FromPath(name): FromPath<String>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let standing = state.source().batch(&name, now)?;
    let id = &standing.batch.id;
    if *id != name {
        // Relative, because a proxy may serve us below any prefix; the id needs no escapes.
        return Ok((StatusCode::SEE_OTHER, [(header::LOCATION, id.clone())]).into_response());
    }
    Ok(render(StatusCode::OK, &batch::BatchPage::new(&state, &standing, state.rights(&who), now)))
}

/// `GET /access`: requests for assembly.
async fn list_access(
    FromState(state): FromState<State>,
    who: Identity,
    Params(list_query): Params<(AccessFilter, PageQuery)>,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &access::AccessPage::new(&state, list_query, state.rights(&who), Timestamp::now())?))
}

/// `GET /locks`: who holds what.
async fn list_locks(
    FromState(state): FromState<State>,
    who: Identity,
    Params(list_query): Params<(LockFilter, PageQuery)>,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &locks::LocksPage::new(&state, list_query, state.rights(&who), Timestamp::now())?))
}

/// `GET /daemons`: which daemons run, and what they work on.
async fn show_daemons(FromState(state): FromState<State>) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &daemons::DaemonsPage::new(&state, Timestamp::now())?))
}

/// `GET /faults`: what is broken in the tree.
async fn list_faults(
    FromState(state): FromState<State>,
    who: Identity,
    Params(list_query): Params<(FaultFilter, PageQuery)>,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &faults::FaultsPage::new(&state, &list_query, state.rights(&who), Timestamp::now())?))
}

/// `GET /audit`: who did what.
async fn list_audit(
    FromState(state): FromState<State>,
    Params(list_query): Params<(AuditFilter, PageQuery)>,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &audit::AuditPage::new(&state, list_query, Timestamp::now())?))
}

/// `GET /api`: the operations of the API.
async fn show_api(FromState(state): FromState<State>) -> Response {
    render(StatusCode::OK, &reference::ApiPage::new(&state.view(Timestamp::now())))
}

/// `GET /api/bodies`: the bodies of requests and responses.
async fn list_bodies(FromState(state): FromState<State>) -> Response {
    render(StatusCode::OK, &reference::BodiesPage::new(&state.view(Timestamp::now())))
}

/// `GET /api/bodies/{body}`: the fields of one body.
async fn show_body(FromState(state): FromState<State>, FromPath(name): FromPath<String>) -> Result<Response, Problem> {
    let page = reference::BodyPage::new(&state.view(Timestamp::now()), &name);
    let page = page.ok_or_else(|| Problem::missing("There is no such body; /api/bodies lists them."))?;
    Ok(render(StatusCode::OK, &page))
}

/// `GET /dashboards`: what there is for the programs around this one.
async fn show_dashboards(FromState(state): FromState<State>) -> Response {
    render(StatusCode::OK, &dashboards::DashboardsPage::new(&state.view(Timestamp::now())))
}

/// `GET /runbook`: what to do when an alert fires.
async fn show_runbook(FromState(state): FromState<State>) -> Response {
    render(StatusCode::OK, &runbook::RunbookPage::new(&state.view(Timestamp::now())))
}

fn render(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(html) => (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
