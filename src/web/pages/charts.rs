//! Figures over time, large.

use askama::Template;
use axum::extract::{Path as FromPath, State as FromState};
use axum::http::StatusCode;
use axum::response::Response;
use futures::future::join_all;
use jiff::Timestamp;

use super::frame::{Frame, Section};
use super::listing::{Choice, choices_of};
use super::plot::{Plot, Table};
use super::render;
use crate::views::charts::{Chart, ChartKind, ChartQuery, Range};
use crate::views::parameter::OneOf;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// How many rows a table has at most, below one of many charts and below one alone.
const ROWS: usize = 24;
const ROWS_ALONE: usize = 60;

/// The charts, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "charts.html")]
struct ChartsPage {
    frame: Frame,
    title: String,
    /// Where all charts are, where this is one of them; empty where it is all.
    up: String,
    ranges: Vec<Choice>,
    /// Whether it has not changed since it was requested: data from Prometheus changes slowly.
    is_still: bool,
    /// Why there are no longer ranges; empty where there are.
    has_more: bool,
    charts: Vec<Figure>,
}

/// A chart.
#[derive(Debug)]
struct Figure {
    label: &'static str,
    title: &'static str,
    description: &'static str,
    /// Where it is shown alone; empty where it is.
    href: String,
    /// Whether its lines are of states.
    is_by_state: bool,
    plot: Option<Plot>,
    table: Table,
    /// Why there is nothing to see; empty where there is.
    problem: String,
}

/// `GET /charts`: how the figures of the queue have changed.
pub(super) async fn all(
    FromState(state): FromState<State>,
    Params(query): Params<ChartQuery>,
) -> Result<Response, Problem> {
    page(&state, ChartKind::ALL, &query, "Charts".to_owned(), "./").await
}

/// `GET /charts/NAME`: one of them.
pub(super) async fn one(
    FromState(state): FromState<State>,
    FromPath(name): FromPath<String>,
    Params(query): Params<ChartQuery>,
) -> Result<Response, Problem> {
    let kind = ChartKind::from_label(&name).ok_or_else(|| {
        let known: Vec<_> = ChartKind::ALL.iter().copied().map(ChartKind::label).collect();
        Problem::missing(format!("There is no such chart; the charts are {}.", known.join(", ")))
    })?;
    page(&state, &[kind], &query, kind.title().to_owned(), "../").await
}

async fn page(
    state: &State,
    kinds: &[ChartKind],
    query: &ChartQuery,
    title: String,
    root: &str,
) -> Result<Response, Problem> {
    let (now, range) = (Timestamp::now(), query.range.0);
    let charts = drawn(state, kinds, range, now).await?;
    let is_one = matches!(kinds, [_]);
    let href_of = |kind: &ChartKind| format!("{root}charts/{}?range={}", kind.label(), query.range);
    let figures = kinds.iter().zip(charts).map(|(kind, chart)| {
        let href = if is_one { String::new() } else { href_of(kind) };
        Figure::new(*kind, chart, href, now)
    });
    let has_more = state.prometheus().is_some();
    let mut ranges = choices_of(Some(query.range), Range::title);
    if !has_more {
        ranges.retain(|choice| OneOf::<Range>::known(&choice.value).is_some_and(Range::is_kept));
    }
    let page = ChartsPage {
        frame: Frame::new(&state.view(now), root.to_owned(), Section::Charts),
        title,
        up: if is_one { format!("{root}charts?range={}", query.range) } else { String::new() },
        ranges,
        is_still: !range.is_kept(),
        has_more,
        charts: figures.collect(),
    };
    Ok(render(StatusCode::OK, &page))
}

/// The charts of these kinds, each, or why there is none.
async fn drawn(
    state: &State,
    kinds: &[ChartKind],
    range: Range,
    now: Timestamp,
) -> Result<Vec<Result<Chart, String>>, Problem> {
    let source = state.source();
    if range.is_kept() {
        return Ok(source.charts(kinds, range, now).into_iter().map(Ok).collect());
    }
    let Some(prometheus) = state.prometheus() else {
        let (longest, ranges) = Range::kept();
        let why = format!(
            "The mirror has the last {longest} only. Set --prometheus.url to show more, or choose one of {}.",
            ranges.join(", ")
        );
        return Err(Problem::bad(why));
    };
    let queries =
        kinds.iter().map(|kind| source.chart_of_prometheus(prometheus, (*kind, kinds.len() == 1), range, now));
    Ok(join_all(queries).await.into_iter().map(|chart| chart.map_err(|error| error.to_string())).collect())
}

impl Figure {
    fn new(kind: ChartKind, chart: Result<Chart, String>, href: String, now: Timestamp) -> Self {
        let (chart, problem) = match chart {
            Ok(chart) => (Some(chart), String::new()),
            Err(problem) => (None, problem),
        };
        let plot = chart.as_ref().and_then(Plot::new);
        let rows = if href.is_empty() { ROWS_ALONE } else { ROWS };
        let problem = match (&chart, &plot) {
            (Some(chart), None) if chart.series.is_empty() && kind == ChartKind::Storage => {
                "Working storage is not measured here; --storage.path names its volume.".to_owned()
            }
            (Some(_), None) => "No data for this period yet.".to_owned(),
            _ => problem,
        };
        Self {
            label: kind.label(),
            title: kind.title(),
            description: kind.description(),
            is_by_state: plot.as_ref().is_some_and(|plot| plot.lines.len() > 1),
            table: chart.as_ref().map(|chart| Table::new(chart, rows, now)).unwrap_or_default(),
            href,
            plot,
            problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::mirror::Freshness;
    use crate::views::charts::Series;
    use crate::web::pages::View;

    /// How large the page of these charts is, of so many points of figures with many digits.
    fn size(kinds: &[ChartKind], points: usize) -> usize {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let view = View {
            now,
            servers: "127.0.0.1:2181".to_owned(),
            telemetry_path: "/metrics".to_owned(),
            deployments: None,
            notice: None,
            repository: crate::config::RepositoryParts::default(),
            freshness: Freshness::default(),
            summary: None,
        };
        let figure = |kind: &ChartKind| {
            let value =
                |at| if *kind == ChartKind::Storage { Some(0.123) } else { Some(98_765.0 - f64::from(at) * 1.7) };
            let values: Vec<_> = (0..u32::try_from(points).unwrap()).map(value).collect();
            let lines = if matches!(kind, ChartKind::Storage | ChartKind::Failures) { 1 } else { 10 };
            let series = vec![Series { name: "Provisioning", values }; lines];
            let chart = Chart { kind: *kind, from: now, step: Duration::from_mins(2), series, limit: Some(0.8) };
            Figure::new(*kind, Ok(chart), if kinds.len() == 1 { String::new() } else { "./charts/x".to_owned() }, now)
        };
        let page = ChartsPage {
            frame: Frame::new(&view, "./".to_owned(), Section::Charts),
            title: "Charts".to_owned(),
            up: String::new(),
            ranges: choices_of(None, Range::title),
            is_still: false,
            has_more: true,
            charts: kinds.iter().map(figure).collect(),
        };
        page.render().unwrap().len()
    }

    #[test]
    fn a_page_of_full_charts_is_below_100_kb() {
        let (all, one) = (size(ChartKind::ALL, 72), size(&[ChartKind::Throughput], 180));
        assert!(all < 100_000 && one < 100_000, "{all} {one}");
    }
}
