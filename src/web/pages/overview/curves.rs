//! The last hours, drawn.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;

use crate::mirror::Point;
use crate::views::overview::{Overview, Recent};
use crate::views::show::{Ago, Count, Moment};
use queuekeeper_queue::state::{JobState, State};

/// The size of a curve, in units of its own; the page stretches it.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 52.0;

/// The top of a curve stays free, so that its line is not cut.
const TOP: f64 = 3.0;

/// A figure over the last hours.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) name: &'static str,
    /// What the curve is of, where that is not what the figure is; empty where it is.
    pub(super) of: &'static str,
    pub(super) class: &'static str,
    /// The figure now.
    pub(super) value: String,
    /// What the curve shows, in words; empty where there is nothing to draw.
    pub(super) text: String,
    /// The line as an SVG path, with a gap where nothing is known.
    pub(super) line: String,
    /// What lies below it.
    pub(super) area: String,
    /// When it begins.
    pub(super) from: Option<Moment>,
}

/// Throughput, jobs in progress, and the longest wait.
pub(super) fn all(overview: &Overview, recent: &Recent, now: Timestamp) -> Vec<Curve> {
    let on_path = || JobState::ALL.iter().copied().filter(|state| state.success().is_some());
    let in_work = |point: &Point| on_path().map(|state| *point.jobs.get(Some(state)) as f64).sum();
    let wait = |point: &Point| {
        let oldest = on_path().filter_map(|state| *point.oldest.get(Some(state))).max();
        oldest.unwrap_or_default().as_secs_f64()
    };
    let oldest = overview.states.iter().filter(|state| state.is_on_path && !state.is_final);
    let oldest = oldest.filter_map(|state| state.oldest_entered).min();
    let longest = oldest.map(|oldest| Duration::try_from(now.duration_since(oldest)).unwrap_or_default());
    let draw = |value: &dyn Fn(&Point) -> f64, format: &dyn Fn(f64) -> String| drawn(recent, value, format, now);
    let count = |value: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of jobs")]
        let count = value.round() as u64;
        Count(count).to_string()
    };
    let age = |value: f64| Ago(Duration::try_from_secs_f64(value).unwrap_or_default()).to_string();
    let curve = |name, class, value: String, drawn: Drawn| Curve {
        name,
        of: if class == "flow" { "completed, per hour" } else { "" },
        class,
        value,
        text: drawn.text,
        line: drawn.line,
        area: drawn.area,
        from: drawn.from,
    };
    vec![
        curve(
            "completed",
            "flow",
            format!("{} {}", Count(overview.completed_1h), overview.watched()),
            draw(&|point| point.completed_per_second * 3600.0, &|rate| format!("{} an hour", count(rate))),
        ),
        curve("unfinished", "work", Count(overview.unfinished).to_string(), draw(&in_work, &count)),
        curve(
            "longest wait, any state",
            "wait",
            longest.map_or_else(|| "none".to_owned(), |longest| Ago(longest).to_string()),
            draw(&wait, &age),
        ),
    ]
}

#[derive(Default)]
struct Drawn {
    text: String,
    line: String,
    area: String,
    from: Option<Moment>,
}

fn drawn(recent: &Recent, value: &dyn Fn(&Point) -> f64, format: &dyn Fn(f64) -> String, now: Timestamp) -> Drawn {
    let points: Vec<Option<f64>> = recent.history.points.iter().map(|point| point.as_ref().map(value)).collect();
    let known: Vec<f64> = points.iter().copied().flatten().collect();
    let Some(last) = known.last().copied() else { return Drawn::default() };
    let (low, high) = known.iter().fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
    let x = |at: usize| (at as f64 + 0.5) / points.len() as f64 * WIDTH;
    let y = |value: f64| HEIGHT - value / high.max(1.0) * (HEIGHT - TOP);
    let (mut line, mut area) = (String::new(), String::new());
    let runs = points.iter().enumerate().collect::<Vec<_>>();
    for run in runs.split(|(_, value)| value.is_none()) {
        let run: Vec<(f64, f64)> = run.iter().filter_map(|(at, value)| Some((x(*at), y((**value)?)))).collect();
        let Some((first, top)) = run.first() else { continue };
        // A single point is drawn as a short line: a path without length shows nothing.
        let stroke = if run.len() == 1 { format!("h{:.1}", WIDTH / points.len() as f64) } else { String::new() };
        let rest = run.iter().skip(1).fold(String::new(), |mut rest, (x, y)| {
            let _ = write!(rest, "L{x:.1} {y:.1}");
            rest
        });
        let _ = write!(line, "M{first:.1} {top:.1}{rest}{stroke}");
        let _ = write!(area, "M{first:.1} {HEIGHT}L{first:.1} {top:.1}{rest}{stroke}V{HEIGHT}H{first:.1}Z");
    }
    let since = recent.history.points.iter().flatten().map(|point| point.at).next();
    let over = since.map(|since| Duration::try_from(now.duration_since(since)).unwrap_or_default());
    let over = over.map(|over| Ago(over).to_string()).unwrap_or_default();
    let text = format!("Last {over}: lowest {}, highest {}, latest {}", format(low), format(high), format(last));
    Drawn { text, line, area, from: recent.history.from.map(|from| Moment::new(from, now)) }
}
