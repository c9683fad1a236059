//! The last hours, drawn.

use std::time::Duration;

use jiff::Timestamp;

use crate::mirror::Point;
use crate::views::charts::{Chart, ChartKind, Series};
use crate::views::overview::{Overview, Recent};
use crate::views::show::{Ago, Count};
use crate::web::pages::plot::Plot;
use queuekeeper_queue::state::{JobState, State};

/// A figure over the last hours.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) name: &'static str,
    /// What the curve is of, where that is not what the figure is; empty where it is.
    pub(super) of: &'static str,
    pub(super) class: &'static str,
    /// The figure now.
    pub(super) value: String,
    /// Where it is shown large, by state: relative to the root.
    pub(super) href: String,
    /// `None` where there is nothing to draw.
    pub(super) plot: Option<Plot>,
}

/// Throughput, jobs in progress, and the longest time of a job in its state; `range` is that of the large charts.
pub(super) fn all(overview: &Overview, recent: &Recent, range: &str, now: Timestamp) -> Vec<Curve> {
    let on_path = || JobState::ALL.iter().copied().filter(|state| state.success().is_some());
    let in_progress = |point: &Point| Some(on_path().map(|state| *point.jobs.get(Some(state)) as f64).sum());
    let wait = |point: &Point| {
        let oldest = on_path().filter_map(|state| *point.oldest.get(Some(state))).max();
        Some(oldest.unwrap_or_default().as_secs_f64())
    };
    let oldest = overview.states.iter().filter(|state| state.is_on_path && !state.is_final);
    let oldest = oldest.filter_map(|state| state.oldest_entered).min();
    let longest = oldest.map(|oldest| Duration::try_from(now.duration_since(oldest)).unwrap_or_default());
    let history = &recent.history;
    let curve = |name, of, class, value, kind: ChartKind, values: &dyn Fn(&Point) -> Option<f64>| {
        let values = history.points.iter().map(|point| point.as_ref().and_then(values)).collect();
        let series = vec![Series { name, values }];
        let chart = Chart { kind, from: history.from.unwrap_or(now), step: history.step, series, limit: None };
        let href = format!("charts/{}?range={range}", kind.label());
        Curve { name, of, class, value, href, plot: Plot::new(&chart) }
    };
    vec![
        curve(
            "completed",
            "completed, per hour",
            "flow",
            format!("{} {}", Count(overview.completed_1h), overview.watched()),
            ChartKind::Throughput,
            &|point| Some(point.completed_per_second * 3600.0),
        ),
        curve("under way", "", "work", Count(overview.under_way).to_string(), ChartKind::Jobs, &in_progress),
        curve(
            "longest time in a state",
            "",
            "wait",
            longest.map_or_else(|| "none".to_owned(), |longest| Ago(longest).to_string()),
            ChartKind::Age,
            &wait,
        ),
    ]
}
