//! The pages: what they say, worked out from a view of the image, and then rendered.

use askama::Template;
use axum::extract::State as FromState;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;

use super::State;
use super::layers::Told;
use crate::metrics::storage::Space;
use crate::mirror::{Freshness, Summary};

mod attention;
mod figures;
mod overview;

pub use overview::Overview;

/// What the overview is made of, at one moment.
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

/// `GET /`: is it flowing, and if not, where.
pub(super) async fn overview(FromState(state): FromState<State>) -> Response {
    render(StatusCode::OK, &state.overview(Timestamp::now()))
}

/// A page for an error, whose links lead on from wherever the browser believes to be.
pub(super) fn error(status: StatusCode, path: &str, advice: &str) -> Response {
    #[derive(Template)]
    #[template(path = "error.html")]
    struct Page<'a> {
        root: String,
        title: &'a str,
        advice: &'a str,
    }
    let page = Page { root: root_from(path), title: status.canonical_reason().unwrap_or("Error"), advice };
    render(status, &page)
}

/// The way from a path up to the root: relative, because a proxy may serve us below any prefix.
fn root_from(path: &str) -> String {
    match path.bytes().filter(|byte| *byte == b'/').count() {
        0 | 1 => "./".to_owned(),
        slashes => "../".repeat(slashes - 1),
    }
}

fn render(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(html) => {
            let mut response = (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response();
            response.extensions_mut().insert(Told);
            response
        }
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            let mut response =
                (StatusCode::INTERNAL_SERVER_ERROR, "The page could not be written. The server's log says why.\n")
                    .into_response();
            response.extensions_mut().insert(Told);
            response
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_leads_to_the_root_from_any_depth() {
        for (path, root) in [("/", "./"), ("/nothing", "./"), ("/a/b", "../"), ("/a/b/", "../../"), ("*", "./")] {
            assert_eq!(root_from(path), root, "{path}");
        }
    }
}
