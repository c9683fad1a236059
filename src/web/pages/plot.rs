//! Charts, drawn: lines over a grid with readable axes, and the same figures as a table.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;

use crate::views::charts::{Chart, Series, Unit};
use crate::views::show::Moment;
use crate::words;

/// The height of the drawing, in units of its own; the page stretches it. Its width is the number of points.
const HEIGHT: f64 = 100.0;

/// The height of a text in the smallest chart, in the same units.
const TEXT_HEIGHT: f64 = 21.0;

/// How many labels an axis has at most.
const TICKS: f64 = 5.0;

/// The same of the time: a small chart has room for so many, with half of the day behind each.
const TIME_TICKS: f64 = 4.0;

/// The part of the height below the highest label: it stands above its line.
const FILLED: f64 = 0.86;

/// Steps between labels of times, in seconds: those that clocks and calendars have.
const TIMES: [f64; 17] = [
    1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 10_800.0, 21_600.0, 43_200.0,
    86_400.0, 172_800.0,
];

const DAY: f64 = 86_400.0;

/// A chart, ready to be rendered.
#[derive(Debug)]
pub(super) struct Plot {
    /// What it shows, in words.
    pub(super) text: String,
    /// How the script writes its values.
    pub(super) unit: &'static str,
    /// When the first point begins and how long each is, in milliseconds.
    pub(super) from_ms: i64,
    pub(super) step_ms: u128,
    pub(super) points: usize,
    pub(super) lines: Vec<PlotLine>,
    pub(super) ys: Vec<YTick>,
    pub(super) xs: Vec<XTick>,
    /// A value that should not be passed, in percent from the top, and what it is.
    pub(super) limit: Option<(String, String)>,
}

/// A series.
#[derive(Debug)]
pub(super) struct PlotLine {
    pub(super) name: &'static str,
    /// Its look: `s0`, `s1`, and so on.
    pub(super) class: String,
    /// The line as an SVG path, with a gap where nothing is known.
    pub(super) path: String,
    /// What lies below it.
    pub(super) area: String,
    /// The last value that is known.
    pub(super) latest: String,
    /// The values for the script, separated by commas; empty where nothing is known.
    pub(super) data: String,
}

/// A label of the values' axis.
#[derive(Debug)]
pub(super) struct YTick {
    /// Where it is, in percent from the top.
    pub(super) at: String,
    pub(super) text: String,
}

/// A label of the time's axis.
#[derive(Debug)]
pub(super) struct XTick {
    /// Where it is, in percent from the left.
    pub(super) at: String,
    /// Which end of the text is there: `start`, `middle` or `end`.
    pub(super) anchor: &'static str,
    pub(super) text: String,
}

/// The figures of a chart to read.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) heads: Vec<&'static str>,
    pub(super) rows: Vec<(Moment, Vec<String>)>,
}

impl Plot {
    /// `None` where nothing is known of any series.
    pub(super) fn new(chart: &Chart) -> Option<Self> {
        let known = chart.series.iter().flat_map(|series| series.values.iter().copied().flatten());
        let high = known.reduce(f64::max)?;
        let unit = chart.kind.unit();
        let (step, top) = scale(unit, high.max(chart.limit.unwrap_or(0.0)));
        let domain = top / FILLED;
        let points = chart.series.iter().map(|series| series.values.len()).max().unwrap_or(0);
        let newest = newest(chart);
        let line = |(at, series): (usize, &Series)| {
            let (path, area) = path(&series.values, domain);
            let latest = newest.and_then(|at| series.values.get(at).copied().flatten());
            PlotLine {
                name: series.name,
                class: format!("s{at}"),
                path,
                area,
                latest: latest.map_or_else(|| "-".to_owned(), |latest| shown(unit, latest)),
                data: data(unit, &series.values),
            }
        };
        let lines: Vec<PlotLine> = chart.series.iter().enumerate().map(line).collect();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "there are few")]
        let ticks = (top / step).round() as u32;
        let y = |value: f64| format!("{:.1}", (1.0 - value / domain) * HEIGHT);
        // A text stands above its line. The line of the limit would go through it.
        let is_clear = |value: f64| {
            chart.limit.is_none_or(|limit| limit <= value || (limit - value) / domain * HEIGHT > TEXT_HEIGHT)
        };
        let text_of = |value: f64| if is_clear(value) { shown(unit, value) } else { String::new() };
        Some(Self {
            text: text(chart, unit),
            unit: match unit {
                Unit::PerHour => "rate",
                Unit::Count => "count",
                Unit::Time => "time",
                Unit::Share => "share",
            },
            from_ms: chart.from.as_millisecond(),
            step_ms: chart.step.as_millis(),
            points,
            lines,
            ys: (1..=ticks)
                .map(|tick| f64::from(tick) * step)
                .map(|value| YTick { at: y(value), text: text_of(value) })
                .collect(),
            xs: times(chart.from, chart.step, points),
            limit: chart.limit.map(|limit| (y(limit), format!("limit {}", shown(unit, limit)))),
        })
    }
}

impl Table {
    /// Of a chart, in so many rows at most.
    pub(super) fn new(chart: &Chart, rows: usize, now: Timestamp) -> Self {
        let points = chart.series.iter().map(|series| series.values.len()).max().unwrap_or(0);
        let every = points.div_ceil(rows).max(1);
        let unit = chart.kind.unit();
        let row = |at: usize| {
            let begin = chart.from + chart.step * u32::try_from(at).unwrap_or(u32::MAX);
            let value = |series: &Series| series.values.get(at).copied().flatten();
            let values = chart.series.iter().map(value);
            let is_known = values.clone().any(|value| value.is_some());
            let cells = values.map(|value| value.map_or_else(String::new, |value| shown(unit, value)));
            is_known.then(|| (Moment::new(begin, now), cells.collect()))
        };
        // The newest first, and always the newest.
        let rows = (0..points).rev().step_by(every).filter_map(row).collect();
        Self { heads: chart.series.iter().map(|series| series.name).collect(), rows }
    }
}

/// The last point at which anything is known: a series of which nothing is known there has no latest value, however
/// many it had before.
fn newest(chart: &Chart) -> Option<usize> {
    chart.series.iter().filter_map(|series| series.values.iter().rposition(Option::is_some)).max()
}

/// What a chart shows, in words.
fn text(chart: &Chart, unit: Unit) -> String {
    let an_hour = if unit == Unit::PerHour { " an hour" } else { "" };
    let said = |value: f64| format!("{}{an_hour}", shown(unit, value));
    let of = |series: &Series| {
        let known: Vec<f64> = series.values.iter().copied().flatten().collect();
        let last = newest(chart).and_then(|at| series.values.get(at).copied().flatten());
        let (low, high) =
            known.iter().fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
        (!known.is_empty()).then(|| (series.name, said(low), said(high), last.map_or_else(|| "-".to_owned(), said)))
    };
    let known: Vec<_> = chart.series.iter().filter_map(of).collect();
    match &known[..] {
        [(name, low, high, last)] => {
            format!("{}, {name}: lowest {low}, highest {high}, latest {last}", chart.kind.title())
        }
        many => {
            let latest: Vec<_> = many.iter().map(|(name, .., last)| format!("{name} {last}")).collect();
            format!("{}, latest: {}", chart.kind.title(), latest.join(", "))
        }
    }
}

/// A value to read.
fn shown(unit: Unit, value: f64) -> String {
    match unit {
        Unit::PerHour if value < 0.05 => "0".to_owned(),
        Unit::PerHour if value.fract() == 0.0 => words::count(whole(value)),
        Unit::PerHour => words::about(value),
        Unit::Count => words::count(whole(value)),
        Unit::Time => words::length(Duration::from_secs(whole(value))),
        Unit::Share => words::percent(value),
    }
}

fn whole(value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is out of range is its end")]
    let whole = value.round() as u64;
    whole
}

/// The values for the script.
fn data(unit: Unit, values: &[Option<f64>]) -> String {
    let mut data = String::with_capacity(values.len() * 4);
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            data.push(',');
        }
        let Some(value) = value else { continue };
        // Writing to a string does not fail.
        let _ = match unit {
            Unit::Count | Unit::Time => write!(data, "{}", whole(*value)),
            Unit::PerHour => write!(data, "{}", (value * 10.0).round() / 10.0),
            Unit::Share => write!(data, "{}", (value * 1000.0).round() / 1000.0),
        };
    }
    data
}

/// A line and the area below it as SVG paths. A point is one unit wide; `domain` is the value at the top.
fn path(values: &[Option<f64>], domain: f64) -> (String, String) {
    let y = |value: f64| (1.0 - value / domain) * HEIGHT;
    let (mut line, mut area) = (String::new(), String::new());
    let all: Vec<(usize, Option<f64>)> = values.iter().copied().enumerate().collect();
    for run in all.split(|(_, value)| value.is_none()) {
        let run: Vec<(f64, f64)> =
            run.iter().filter_map(|(at, value)| Some((*at as f64 + 0.5, y((*value)?)))).collect();
        let Some((first, top)) = run.first() else { continue };
        // A single point is drawn as a short line: a path without length shows nothing.
        let stroke = if run.len() == 1 { "h1" } else { "" };
        let rest = run.iter().skip(1).fold(String::new(), |mut rest, (x, y)| {
            let _ = write!(rest, "L{x:.1} {y:.1}");
            rest
        });
        let _ = write!(line, "M{first:.1} {top:.1}{rest}{stroke}");
        let _ = write!(area, "M{first:.1} {HEIGHT}L{first:.1} {top:.1}{rest}{stroke}V{HEIGHT}H{first:.1}Z");
    }
    (line, area)
}

/// The step between labels of the values, and the highest label.
fn scale(unit: Unit, high: f64) -> (f64, f64) {
    let step = match unit {
        Unit::Share => return (0.25, 1.0),
        Unit::Time => {
            // Labels are of whole minutes from a minute on.
            let least = if high >= 60.0 { 60.0 } else { 0.0 };
            let step = TIMES.into_iter().find(|step| *step >= least && high / step <= TICKS - 1.0);
            step.unwrap_or_else(|| round(high / DAY) * DAY)
        }
        Unit::PerHour | Unit::Count => round(high).max(1.0),
    };
    (step, (high / step).ceil().max(1.0) * step)
}

/// The smallest of 1, 2, 5, 10, 20 and so on of which few reach so far.
fn round(high: f64) -> f64 {
    let least = (high / (TICKS - 1.0)).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * power).find(|step| *step >= least).unwrap_or(power * 10.0)
}

/// The labels of the time, at round instants.
fn times(from: Timestamp, step: Duration, points: usize) -> Vec<XTick> {
    let length = step.as_secs_f64() * points as f64;
    let every = TIMES.into_iter().find(|every| *every >= 60.0 && length / every <= TIME_TICKS);
    let every = every.unwrap_or_else(|| (length / TIME_TICKS / DAY).ceil() * DAY);
    #[expect(clippy::cast_possible_truncation, reason = "a step between labels is at most some days")]
    let seconds = every as i64;
    let start = from.as_millisecond() as f64 / 1000.0;
    let first = (from.as_second() + seconds - 1).div_euclid(seconds) * seconds;
    let instants = (0..).map(|tick| first + tick * seconds).take_while(|at| (*at as f64) < start + length);
    let tick = |second: i64| {
        let at = (second as f64 - start) / length;
        let instant = Timestamp::from_second(second).unwrap_or(from);
        // Once is enough, and two labels side by side have room on a narrow chart.
        let is_last = (second + seconds) as f64 >= start + length;
        let text = if every >= DAY {
            "%b %-d"
        } else if is_last {
            "%H:%M UTC"
        } else {
            "%H:%M"
        };
        XTick {
            at: format!("{:.2}", at * 100.0),
            anchor: match at {
                ..0.08 => "start",
                0.92.. => "end",
                _ => "middle",
            },
            text: instant.strftime(text).to_string(),
        }
    };
    instants.map(tick).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::charts::ChartKind;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn chart(kind: ChartKind, values: &[&[Option<f64>]]) -> Chart {
        let series = values.iter().map(|values| Series { name: "Pending", values: values.to_vec() }).collect();
        Chart { kind, from: at(0), step: Duration::from_mins(1), series, limit: None }
    }

    #[test]
    fn the_style_sheet_tells_each_line_of_a_chart_apart() {
        let styles = include_str!("../../../static/charts.css");
        // The first line has the style of all paths.
        let styles_of = |class: usize| -> Vec<&str> {
            let is_of = |line: &&str| line.split([' ', '.', ',', ')']).any(|word| word == format!("s{class}"));
            styles.lines().filter(is_of).filter_map(|line| Some(line.split_once(" { ")?.1)).collect()
        };
        let most = ChartKind::Jobs.states().len();
        let all: std::collections::HashSet<_> = (0..most).map(styles_of).collect();
        assert_eq!((all.len(), styles_of(most)), (most, vec![]), "a style for each line, and no other: {all:?}");
    }

    #[test]
    fn labels_are_few_and_round() {
        let labels = |kind, high| {
            let plot = Plot::new(&chart(kind, &[&[Some(high)]])).unwrap();
            plot.ys.into_iter().map(|tick| tick.text).collect::<Vec<_>>().join(" ")
        };
        for (high, expected) in
            [(0.0, "1"), (1.0, "1"), (3.0, "1 2 3"), (4.5, "2 4 6"), (99.0, "50 100"), (1_234.0, "500 1,000 1,500")]
        {
            assert_eq!(labels(ChartKind::Jobs, high), expected, "{high}");
        }
        for (high, expected) in [
            (0.0, "1 s"),
            (20.0, "5 s 10 s 15 s 20 s"),
            (90.0, "1 min 2 min"),
            (5_400.0, "30 min 1.0 h 1.5 h"),
            (200.0, "1 min 2 min 3 min 4 min"),
            (20_000.0, "2.0 h 4.0 h 6.0 h"),
            (30.0 * DAY, "10 days 20 days 30 days"),
        ] {
            assert_eq!(labels(ChartKind::Age, high), expected, "{high}");
        }
        assert_eq!(labels(ChartKind::Storage, 0.3), "25 % 50 % 75 % 100 %");
        for high in [1e15, 1e9, 1e-300] {
            assert!(labels(ChartKind::Throughput, high).split(' ').count() <= 5, "{high}");
        }
    }

    #[test]
    fn a_line_has_gaps_and_stays_below_the_top() {
        let plot = Plot::new(&chart(ChartKind::Jobs, &[&[None, Some(2.0), None, Some(4.0), Some(0.0)]])).unwrap();
        assert_eq!(plot.lines[0].path, "M1.5 57.0h1M3.5 14.0L4.5 100.0");
        assert_eq!(plot.lines[0].area, "M1.5 100L1.5 57.0h1V100H1.5ZM3.5 100L3.5 14.0L4.5 100.0V100H3.5Z");
        assert_eq!((&*plot.lines[0].data, &*plot.lines[0].latest), (",2,,4,0", "0"));
        assert_eq!(plot.text, "Jobs, Pending: lowest 0, highest 4, latest 0");
        // What ended before the others is not the latest.
        let plot = Plot::new(&chart(ChartKind::Jobs, &[&[Some(9.0), None], &[Some(1.0), Some(2.0)]])).unwrap();
        assert_eq!(plot.text, "Jobs, latest: Pending -, Pending 2");
        assert_eq!([&*plot.lines[0].latest, &*plot.lines[1].latest], ["-", "2"]);
        assert!(Plot::new(&chart(ChartKind::Jobs, &[&[None]])).is_none());
        assert!(Plot::new(&chart(ChartKind::Storage, &[])).is_none());
    }

    #[test]
    fn the_time_is_labelled_at_round_instants() {
        // 2023-11-14 22:13:20 UTC.
        let of = |step: u64, points| {
            let ticks = times(at(0), Duration::from_secs(step), points);
            ticks.into_iter().map(|tick| format!("{} {}", tick.text, tick.at)).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(of(10, 90), "22:15 11.11, 22:20 44.44, 22:25 UTC 77.78");
        assert_eq!(of(120, 180), "00:00 29.63, 02:00 62.96, 04:00 UTC 96.30");
        assert_eq!(of(3_360, 180), "Nov 15 1.06, Nov 17 29.63, Nov 19 58.20, Nov 21 86.77");
    }

    #[test]
    fn a_table_has_few_rows_and_the_newest_first() {
        let values: Vec<_> = (0..180).map(|value| Some(f64::from(value))).collect();
        let table = Table::new(&chart(ChartKind::Jobs, &[&values, &[None]]), 60, at(180 * 60));
        assert_eq!(table.rows.len(), 60);
        assert_eq!((&*table.rows[0].0.ago, &table.rows[0].1[..]), ("1 min", &["179".to_owned(), String::new()][..]));
        assert_eq!(table.rows[59].1[0], "2");
    }
}
