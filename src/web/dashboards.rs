//! Files for the programs around queuekeeper, embedded in the binary: dashboards for Grafana, rules for Prometheus with
//! their runbook, and example configurations.

use std::sync::LazyLock;

use axum::extract::{Path, State as FromState};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::http::problem::Problem;
use super::state::State;

mod addresses;

pub(crate) use addresses::Addresses;

/// The path of each, by its name without its folder.
pub(super) const ROUTE: &str = "/dashboards/{file}";

/// The files of `dashboards/` that are for users, by path, with their content.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/dashboards.rs"));

/// An embedded file.
#[derive(Debug)]
pub(crate) struct File {
    /// Its path below `dashboards/`.
    pub(crate) path: &'static str,
    /// Its content.
    pub(crate) text: &'static str,
    /// The title of a dashboard; the file's name for all others.
    pub(crate) title: String,
    /// What it is for, from the file itself.
    pub(crate) description: String,
}

/// All of them, sorted by their paths.
pub(crate) static FILES: LazyLock<Vec<File>> =
    LazyLock::new(|| EMBEDDED.iter().map(|(path, text)| File::new(path, text)).collect());

impl File {
    fn new(path: &'static str, text: &'static str) -> Self {
        let name = file_name(path);
        let (title, description) = match ending(path) {
            "json" => titled(text).unwrap_or_else(|| (name.to_owned(), String::new())),
            "md" => (name.to_owned(), first_paragraph(text)),
            _ => (name.to_owned(), leading_comment(text)),
        };
        Self { path, text, title, description }
    }

    /// Its unique name.
    pub(crate) fn name(&self) -> &'static str {
        file_name(self.path)
    }

    /// The topmost folder of its path.
    pub(crate) fn folder(&self) -> &'static str {
        self.path.split_once('/').map_or("", |(folder, _)| folder)
    }

    fn media_type(&self) -> &'static str {
        match ending(self.path) {
            "json" => "application/json",
            "md" => "text/markdown; charset=utf-8",
            // RFC 9512
            "yml" | "yaml" => "application/yaml",
            _ => "text/plain; charset=utf-8",
        }
    }
}

/// The runbook, as Markdown.
pub(super) fn runbook() -> &'static str {
    FILES.iter().find(|file| file.name() == "runbook.md").map_or("", |file| file.text)
}

fn file_name(path: &'static str) -> &'static str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn ending(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// The title and description of a dashboard.
fn titled(json: &str) -> Option<(String, String)> {
    #[derive(Deserialize)]
    struct Board {
        title: String,
        description: String,
    }
    serde_json::from_str(json).ok().map(|Board { title, description }| (title, description))
}

/// The first paragraph of the comment at the beginning of a file.
fn leading_comment(text: &str) -> String {
    joined(text.lines().map_while(|line| line.strip_prefix('#')))
}

/// The first paragraph below the heading, without code marks.
fn first_paragraph(text: &str) -> String {
    joined(text.lines().skip_while(|line| line.starts_with('#') || line.trim().is_empty())).replace('`', "")
}

fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.map(str::trim).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// `GET /dashboards/NAME`: a file with the addresses of this server, to be downloaded or pointed at.
pub(super) async fn file(FromState(state): FromState<State>, Path(name): Path<String>) -> Response {
    let Some(found) = FILES.iter().find(|file| file.name() == name) else {
        let problem = Problem::missing("Unknown file. The page Dashboards lists all files.");
        return problem.allowing(FILES.iter().map(|file| file.name().to_owned())).into_response();
    };
    let text = Addresses::of(&state.shared.config.web).put_into(found.text);
    ([(header::CONTENT_TYPE, found.media_type())], text).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_has_a_unique_name_and_a_description() {
        let names: BTreeSet<_> = FILES.iter().map(File::name).collect();
        assert_eq!(names.len(), FILES.len(), "{names:?}");
        for file in &*FILES {
            assert!(
                file.description.ends_with(['.', '?']) && !file.folder().is_empty(),
                "{}: {:?}",
                file.path,
                file.description
            );
            assert!(!file.path.contains("generate/") && !file.path.contains("tests/"), "{}", file.path);
        }
        for name in ["overview.json", "recording.yml", "alerts.yml", "prometheus.yml", "alertmanager.yml"] {
            assert!(names.contains(name), "{name} is missing: {names:?}");
        }
        assert!(runbook().contains("\n## "));
    }
}
