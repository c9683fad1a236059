//! The page of an error: what is wrong, and how to go on without losing what was requested.

use askama::Template;
use axum::response::Response;

use super::frame::{Switch, root_from, switch, ways};
use super::render;
use crate::config::{Deployments, Web};
use crate::web::http::params::pairs_of;
use crate::web::http::problem::Problem;
use crate::web::http::query::{Pairs, address};

/// A page for an error, whose links lead on from wherever the browser believes to be: from a path `below` the prefix,
/// or from one outside of it. `query` is the query of the page that was requested, of which one value is wrong.
pub(in crate::web) fn error(
    problem: &Problem,
    web: &Web,
    (below, path): (Option<&str>, &str),
    query: &str,
) -> Response {
    #[derive(Template)]
    #[template(path = "error.html")]
    struct Page<'a> {
        root: String,
        ways: Vec<(String, String)>,
        /// Whether what is below the root is of one queue, where there is a search.
        is_of_queue: bool,
        switch: Option<Switch>,
        problem: &'a Problem,
        retry: Option<Retry>,
    }
    /// The request again, with another value or without it.
    struct Retry {
        name: String,
        /// The value that is wrong; empty where another one is not typed but taken from a link.
        value: String,
        others: Pairs,
        without: String,
    }
    let retry = || {
        let wrong = problem.parameter.as_deref()?;
        let (wrong, others): (Pairs, Pairs) = pairs_of(query).ok()?.into_iter().partition(|(name, _)| name == wrong);
        let (name, value) = wrong.into_iter().next()?;
        let value = if name == "cursor" { String::new() } else { value };
        let without = if others.is_empty() { "?".to_owned() } else { address("", &others) };
        Some(Retry { name, value, others, without })
    };
    let mut root = root_from(below.unwrap_or(path));
    let prefix = web.route_prefix.as_str().trim_start_matches('/');
    if below.is_none() && !prefix.is_empty() {
        root = format!("{root}{prefix}/");
    }
    let (ways, switch) = (ways(&root, web), switch(web.deployments.as_ref(), &root, ""));
    let is_of_queue = !matches!(web.deployments, Some(Deployments { this: None, .. }));
    render(problem.status(), &Page { ways, is_of_queue, switch, root, problem, retry: retry() })
}
