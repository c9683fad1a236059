//! The pages: what they say, worked out from a view of the image, and then rendered.
//!
//! A page extends `base.html` and is complete without JavaScript. What changes with the queue stands between
//! `<!--live NAME-->` and `<!--/live NAME-->`, and is one element whose `id` is that name.

use askama::Template;
use axum::extract::State as FromState;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use jiff::Timestamp;

use super::State;
use super::api::FailurePage;
use super::params::Params;
use super::problem::Problem;
use super::query::Pairs;
use crate::metrics::storage::Space;
use crate::mirror::{Freshness, Summary};

mod failures;
mod frame;
mod job;
mod jobs;
mod overview;
mod tree;

use frame::root_from;
pub use overview::Overview;

pub use super::views::overview::{Recent, Stopped};

/// What every page is made of, at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// Our own clock.
    pub now: Timestamp,
    /// The connect string.
    pub servers: String,
    /// Where the metrics are.
    pub telemetry_path: String,
    /// How the image stands.
    pub freshness: Freshness,
    /// The figures; `None` before the first walk.
    pub summary: Option<Summary>,
    /// The threshold of working storage, 0 to 1, and how full the volume is.
    pub storage: Option<(f64, Space)>,
}

/// Every page and its route.
pub(super) fn routes() -> Vec<(&'static str, MethodRouter<State>)> {
    vec![
        ("/", get(overview)),
        ("/jobs", get(list_jobs)),
        ("/failures", get(list_failures)),
        ("/jobs/{jid}", get(job::job)),
        ("/tree", get(tree::root)),
        ("/tree/", get(tree::root)),
        ("/tree/{*path}", get(tree::tree)),
    ]
}

/// `GET /`: is it flowing, and if not, where.
async fn overview(FromState(state): FromState<State>) -> Response {
    let now = Timestamp::now();
    render(StatusCode::OK, &Overview::new(&state.view(now), &state.recent(now)))
}

/// `GET /jobs`: which jobs.
async fn list_jobs(FromState(state): FromState<State>, Params(pairs): Params<Pairs>) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &jobs::JobsPage::new(&state, &pairs, Timestamp::now())?))
}

/// `GET /failures`: what fails, and whether it is one cause or many.
async fn list_failures(
    FromState(state): FromState<State>,
    Params(page): Params<FailurePage>,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &failures::FailuresPage::new(&state, &page, Timestamp::now())?))
}

/// A page for an error, whose links lead on from wherever the browser believes to be: from a path below the prefix, or
/// from one outside of it.
pub(super) fn error(problem: &Problem, path: &str, prefix: Option<&str>) -> Response {
    #[derive(Template)]
    #[template(path = "error.html")]
    struct Page<'a> {
        root: String,
        problem: &'a Problem,
    }
    let mut root = root_from(path);
    if let Some(prefix) = prefix.map(|prefix| prefix.trim_start_matches('/')).filter(|prefix| !prefix.is_empty()) {
        root = format!("{root}{prefix}/");
    }
    render(problem.status(), &Page { root, problem })
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
