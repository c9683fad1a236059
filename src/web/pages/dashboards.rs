//! What there is for Grafana, Prometheus and Alertmanager.

use askama::Template;

use super::View;
use super::frame::Frame;
use crate::web::dashboards::{FILES, File};

/// The list of files, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "dashboards.html")]
pub(super) struct DashboardsPage {
    frame: Frame,
    groups: Vec<Group>,
}

/// The files of one folder.
#[derive(Debug)]
struct Group {
    title: &'static str,
    folder: &'static str,
    files: Vec<FileRow>,
}

#[derive(Debug)]
struct FileRow {
    name: &'static str,
    path: &'static str,
    title: &'static str,
    description: &'static str,
}

impl DashboardsPage {
    pub(super) fn new(view: &View) -> Self {
        let mut files: Vec<&File> = FILES.iter().collect();
        files.sort_by_key(|file| rank(file));
        let mut groups: Vec<Group> = Vec::new();
        for file in files {
            let (path, title, description) = (file.path, file.title.as_str(), file.description.as_str());
            let line = FileRow { name: file.name(), path, title, description };
            match groups.last_mut() {
                Some(group) if group.folder == file.folder() => group.files.push(line),
                Some(_) | None => {
                    let folder = file.folder();
                    groups.push(Group { title: program(folder), folder, files: vec![line] });
                }
            }
        }
        Self { frame: Frame::new(view, "./".to_owned(), None), groups }
    }
}

/// What is looked for first stands first: dashboards, of them the overview, then rules, then examples.
fn rank(file: &File) -> (usize, usize, bool) {
    let folder = ["grafana", "prometheus", "alertmanager"].iter().position(|folder| *folder == file.folder());
    (folder.unwrap_or(usize::MAX), file.path.matches('/').count(), file.name() != "overview.json")
}

/// Whose files a folder holds.
fn program(folder: &'static str) -> &'static str {
    match folder {
        "alertmanager" => "Alertmanager",
        "grafana" => "Grafana",
        "prometheus" => "Prometheus",
        other => other,
    }
}
