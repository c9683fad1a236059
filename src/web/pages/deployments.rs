//! The overview of several queues.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;

use super::frame::{Banner, Frame};
use super::render;
use super::runbook::RunbookPage;
use crate::config::Web;
use crate::mirror::Summary;
use crate::views::overview::{Health, Overview, Severity};
use crate::views::show::{Count, counted};
use crate::web::icons;
use crate::web::state::State;
use queuekeeper_queue::state::{BatchState, JobState};

#[derive(Debug, Template)]
#[template(path = "deployments.html")]
struct DeploymentsPage {
    frame: Frame,
    title: String,
    icon: String,
    queues: Vec<DeploymentRow>,
}

/// A queue.
#[derive(Debug)]
struct DeploymentRow {
    name: String,
    servers: String,
    /// `good`, `warn` or `bad`.
    class: &'static str,
    /// Whether it flows; that there are no figures, if so.
    verdict: String,
    /// Why the figures are old or missing; empty if they are current.
    banner: String,
    /// How many things need attention; empty for none.
    attention: String,
    is_urgent: bool,
    figures: Vec<Figure>,
}

/// A count, and where its items are, relative to the pages of its queue.
#[derive(Debug)]
struct Figure {
    name: &'static str,
    count: String,
    is_bad: bool,
    href: &'static str,
}

/// How each queue is.
pub(in crate::web) fn overview(web: &Web, queues: &[State], now: Timestamp) -> Response {
    let rows: Vec<_> = queues.iter().map(|state| DeploymentRow::new(state, now)).collect();
    let urgent: Vec<_> = rows.iter().filter(|row| row.is_urgent).map(|row| row.name.clone()).collect();
    let (class, title) = match &urgent[..] {
        [] => ("good", counted(rows.len() as u64, "queue", "queues")),
        names => ("bad", format!("Needs attention: {}", names.join(", "))),
    };
    let page =
        DeploymentsPage { frame: frame(web, &rows, now), icon: icons::path(class, urgent.len()), title, queues: rows };
    render(StatusCode::OK, &page)
}

/// The runbook, which leads to no page of a queue here.
pub(in crate::web) fn runbook(web: &Web, queues: &[State], now: Timestamp) -> Response {
    let rows: Vec<_> = queues.iter().map(|state| DeploymentRow::new(state, now)).collect();
    render(StatusCode::OK, &RunbookPage::of_all(frame(web, &rows, now)))
}

fn frame(web: &Web, rows: &[DeploymentRow], now: Timestamp) -> Frame {
    Frame::of_all(web, rows.iter().map(|row| (row.name.clone(), row.is_urgent)), now)
}

impl DeploymentRow {
    fn new(state: &State, now: Timestamp) -> Self {
        let view = state.view(now);
        let source = state.source();
        let overview = view.summary.as_ref().map(|summary| source.overview(summary, &source.recent(now), now));
        let banner = Banner::of(&view).map(|banner| format!("{}. {}", banner.title, banner.text));
        let urgent = overview.iter().flat_map(|overview| &overview.attention);
        let urgent = urgent.filter(|item| item.severity == Severity::Bad).count();
        let health = overview.as_ref().map_or(Health::Bad, |overview| overview.verdict.health);
        let attention = overview.as_ref().map_or(0, |overview| overview.attention.len() as u64);
        Self {
            name: state.http().config.deployment().map(ToString::to_string).unwrap_or_default(),
            servers: view.servers.clone(),
            class: health.label(),
            verdict: overview
                .as_ref()
                .map_or_else(|| "No figures".to_owned(), |overview| overview.verdict.title.clone()),
            attention: if attention > 0 { counted(attention, "thing needs", "things need") } else { String::new() },
            is_urgent: urgent > 0 || banner.is_some(),
            banner: banner.unwrap_or_default(),
            figures: view.summary.as_ref().zip(overview.as_ref()).map(figures).unwrap_or_default(),
        }
    }
}

/// The counts that the overview of the queue leads with.
fn figures((summary, overview): (&Summary, &Overview)) -> Vec<Figure> {
    let figure = |name, count: u64, is_bad, href| Figure { name, count: Count(count).to_string(), is_bad, href };
    let jobs = |state| summary.jobs.get(Some(state)).count;
    let faults: u64 = summary.faults.iter().map(|fault| fault.count).sum();
    let (failed, failed_batches) = (jobs(JobState::Failed), summary.batches.get(Some(BatchState::Failed)).count);
    vec![
        figure("Jobs under way", overview.under_way, false, "jobs"),
        figure("Held", jobs(JobState::Held), false, "jobs?state=held"),
        figure("Failed", failed, failed > 0, "failures"),
        figure("Batches in progress", overview.batches_in_progress_count, false, "batches"),
        figure("Failed batches", failed_batches, failed_batches > 0, "batches?state=failed"),
        figure("Faults", faults, faults > 0, "faults"),
    ]
}
