//! Figures over time: those of the mirror for six hours, those of Prometheus for longer.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ViewSource;
use super::parameter::{OneOf, labelled};
use crate::metrics::working_storage::MeasuredStorage;
use crate::mirror::{ByState, HISTORY, Point};
use crate::prometheus::{self, NoAnswer, Prometheus};
use queuekeeper_queue::state::{JobState, State};

/// To what the last instant of a question to Prometheus is rounded down, in seconds.
const ALIGNED: i64 = 15;

/// No figure of a queue is larger; a figure from another program may be.
const MOST: f64 = 1e15;

/// What the values of a chart are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// So many an hour.
    PerHour,
    /// So many.
    Count,
    /// Seconds.
    Time,
    /// A part of a whole, 0 to 1.
    Share,
}

/// What there is to know of a kind of chart.
struct ChartRow {
    label: &'static str,
    title: &'static str,
    description: &'static str,
    unit: Unit,
}

macro_rules! charts {
    ($($kind:ident $label:literal, $unit:ident, $title:literal: $description:literal;)*) => {
        /// What a chart shows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum ChartKind {
            $(#[doc = $description] $kind,)*
        }

        impl ChartKind {
            /// Every kind, as the page shows them.
            pub(crate) const ALL: &[Self] = &[$(Self::$kind),*];

            const fn row(self) -> ChartRow {
                match self {
                    $(Self::$kind => ChartRow {
                        label: $label, title: $title, description: $description, unit: Unit::$unit,
                    },)*
                }
            }
        }
    };
}

charts! {
    Throughput "throughput", PerHour, "Throughput":
        "Jobs that moved from each state to the next, per hour. Jobs that leave Notify are completed.";
    Jobs "jobs", Count, "Jobs": "Jobs in each state.";
    Age "age", Time, "Age": "How long the oldest job has been in each state.";
    Storage "storage", Share, "Working storage": "How full the volume of working storage is.";
    Failures "failures", PerHour, "Failures": "Jobs that failed, per hour.";
}

impl ChartKind {
    /// Its name in addresses.
    pub(crate) fn label(self) -> &'static str {
        self.row().label
    }

    /// The kind of this name.
    pub(crate) fn from_label(label: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.label() == label)
    }

    /// Its name to read.
    pub(crate) fn title(self) -> &'static str {
        self.row().title
    }

    /// What it shows, in a sentence.
    pub(crate) fn description(self) -> &'static str {
        self.row().description
    }

    /// What its values are.
    pub(crate) fn unit(self) -> Unit {
        self.row().unit
    }

    /// The name of the only series of a chart that is not by state.
    fn only(self) -> &'static str {
        if self == Self::Storage { "used" } else { "failed" }
    }

    /// The states that have a series: jobs pass through those on the path, and stay in the others that are not final.
    pub(crate) fn states(self) -> Vec<JobState> {
        let is_shown = |state: &JobState| match self {
            Self::Throughput => state.success().is_some(),
            Self::Jobs | Self::Age => !state.is_final(),
            Self::Storage | Self::Failures => false,
        };
        JobState::ALL.iter().copied().filter(is_shown).collect()
    }

    /// The query whose answer has these values, and the label that names the state of a series; several servers of one
    /// queue count as one.
    fn query(self, prometheus: &Prometheus, step: Duration) -> (String, Option<&'static str>) {
        let selector = |metric, more: &str| prometheus.selector(metric, more);
        let rate = |more: &str| {
            let moves = selector("merritt_job_transitions_total", more);
            format!("max by (from, to) (rate({moves}[{}s]))", step.as_secs().max(60))
        };
        match self {
            Self::Throughput => (format!("sum by (from) ({}) * 3600", rate(&on_the_way())), Some("from")),
            Self::Jobs => (format!("max by (state) ({})", selector("merritt_jobs", "")), Some("state")),
            Self::Age => {
                let oldest = selector("merritt_job_oldest_entered_timestamp_seconds", "");
                (format!("time() - min by (state) ({oldest} > 0)"), Some("state"))
            }
            Self::Storage => {
                let free = selector("merritt_working_storage_free_bytes", "");
                let size = selector("merritt_working_storage_size_bytes", "");
                (format!("max(1 - {free} / {size})"), None)
            }
            Self::Failures => (format!("sum({}) * 3600", rate("from!=\"none\",to=\"failed\"")), None),
        }
    }
}

/// The transitions along the success path, as matchers: a move to Held or Failed is no throughput.
fn on_the_way() -> String {
    let next = JobState::ALL.iter().filter_map(|state| state.success()).map(State::label);
    format!("from!=\"none\",to=~\"{}\"", next.collect::<Vec<_>>().join("|"))
}

/// How far back charts reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Range {
    /// Fifteen minutes.
    Minutes15,
    /// An hour.
    #[default]
    Hour,
    /// Six hours: all that the mirror keeps.
    Hours6,
    /// A day.
    Day,
    /// A week.
    Week,
    /// Thirty days.
    Days30,
}

impl Range {
    const ALL: [Self; 6] = [Self::Minutes15, Self::Hour, Self::Hours6, Self::Day, Self::Week, Self::Days30];

    fn label(self) -> &'static str {
        match self {
            Self::Minutes15 => "15m",
            Self::Hour => "1h",
            Self::Hours6 => "6h",
            Self::Day => "1d",
            Self::Week => "7d",
            Self::Days30 => "30d",
        }
    }

    /// Its name to read.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Minutes15 => "15 min",
            Self::Hour => "1 h",
            Self::Hours6 => "6 h",
            Self::Day => "1 day",
            Self::Week => "7 days",
            Self::Days30 => "30 days",
        }
    }

    /// How long it is.
    pub(crate) fn length(self) -> Duration {
        match self {
            Self::Minutes15 => Duration::from_mins(15),
            Self::Hour => Duration::from_hours(1),
            Self::Hours6 => Duration::from_hours(6),
            Self::Day => Duration::from_hours(24),
            Self::Week => Duration::from_hours(7 * 24),
            Self::Days30 => Duration::from_hours(30 * 24),
        }
    }

    /// Of how many points a chart is made: what is counted in seconds says little of an hour. A page of many charts has
    /// less room for each.
    fn points(self, is_one: bool) -> u32 {
        match self {
            Self::Minutes15 => 30,
            Self::Hour => 60,
            Self::Hours6 | Self::Day | Self::Week | Self::Days30 if is_one => 180,
            Self::Hours6 | Self::Day | Self::Week | Self::Days30 => 72,
        }
    }

    /// Whether the mirror has it.
    pub(crate) fn is_kept(self) -> bool {
        self.length() <= HISTORY
    }

    /// The title of the longest one that the mirror's record covers, and the labels of all that it covers.
    pub(crate) fn kept() -> (&'static str, Vec<&'static str>) {
        let kept: Vec<_> = Self::ALL.into_iter().filter(|range| range.is_kept()).collect();
        (kept.last().map_or("", |longest| longest.title()), kept.into_iter().map(Self::label).collect())
    }
}

labelled! {
    Range: Range::ALL, Range::label, Self::default();
}

// The derived parameter descriptions resolve aliases, but not type arguments.
type RangeName = OneOf<Range>;

/// Of which time the charts are.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct ChartQuery {
    /// How far back they reach.
    pub(crate) range: RangeName,
}

/// A figure over time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    /// What it shows.
    pub(crate) kind: ChartKind,
    /// When the first point begins.
    pub(crate) from: Timestamp,
    /// How long a point is.
    pub(crate) step: Duration,
    /// Each has as many values as the others.
    pub(crate) series: Vec<Series>,
    /// A value that should not be passed.
    pub(crate) limit: Option<f64>,
}

/// A line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// What it is of.
    pub(crate) name: &'static str,
    /// Oldest first; `None` where it is not known.
    pub(crate) values: Vec<Option<f64>>,
}

impl ViewSource<'_> {
    /// These charts, of a range that is not longer than the mirror keeps.
    pub(crate) fn charts(&self, kinds: &[ChartKind], range: Range, now: Timestamp) -> Vec<Chart> {
        let history = self.store.history(now, range.length(), range.points(kinds.len() == 1) as usize);
        let from = history.from.unwrap_or(now);
        let series = |name, value: &dyn Fn(&Point) -> Option<f64>| Series {
            name,
            values: history.points.iter().map(|point| point.as_ref().and_then(value)).collect(),
        };
        let by_state = |kind: ChartKind, value: &dyn Fn(&Point, JobState) -> Option<f64>| {
            kind.states().into_iter().map(|state| series(state.name(), &|point| value(point, state))).collect()
        };
        let chart = |kind: &ChartKind| {
            let all = match kind {
                ChartKind::Throughput => {
                    by_state(*kind, &|point, state| Some(of(&point.left_per_second, state) * 3600.0))
                }
                ChartKind::Jobs => by_state(*kind, &|point, state| Some(of(&point.jobs, state) as f64)),
                ChartKind::Age => {
                    by_state(*kind, &|point, state| of(&point.oldest, state).map(|age| age.as_secs_f64()))
                }
                ChartKind::Failures => vec![series(kind.only(), &|point| Some(point.failed_per_second * 3600.0))],
                ChartKind::Storage => {
                    let steps = history.points.len();
                    let used = self.storage.map(|storage| storage.used(from, history.step, steps));
                    used.into_iter().map(|values| Series { name: kind.only(), values }).collect()
                }
            };
            Chart { kind: *kind, from, step: history.step, series: all, limit: self.limit(*kind) }
        };
        kinds.iter().map(chart).collect()
    }

    /// A chart of any range, by what Prometheus has scraped; `is_one` if it is shown alone.
    ///
    /// # Errors
    /// When Prometheus does not answer.
    pub(crate) async fn chart_of_prometheus(
        &self,
        prometheus: &Prometheus,
        (kind, is_one): (ChartKind, bool),
        range: Range,
        now: Timestamp,
    ) -> Result<Chart, NoAnswer> {
        let points = range.points(is_one);
        let step = range.length() / points;
        let seconds = i64::try_from(step.as_secs()).unwrap_or(i64::MAX).max(1);
        // Who looks at the same time asks the same.
        let last = now.as_second().div_euclid(ALIGNED) * ALIGNED;
        let first = last - seconds * (i64::from(points) - 1);
        let instant = |second| Timestamp::from_second(second).unwrap_or(now);
        let (query, label) = kind.query(prometheus, step);
        let found = prometheus.range(&query, instant(first), instant(last), step).await?;
        let values = |series: &prometheus::Series| {
            let mut values = vec![None; points as usize];
            for (at, value) in &series.values {
                #[expect(clippy::cast_possible_truncation, reason = "what is out of range has no place")]
                let place = usize::try_from((*at as i64 - first).div_euclid(seconds));
                if let Some(place) = place.ok().and_then(|place| values.get_mut(place)) {
                    *place = Some(value.clamp(0.0, MOST));
                }
            }
            values
        };
        let series = match label {
            None => found.iter().take(1).map(|series| Series { name: kind.only(), values: values(series) }).collect(),
            Some(label) => {
                let of = |state: &JobState| {
                    let is_its = |series: &&prometheus::Series| {
                        series.labels.get(label).and_then(Value::as_str) == Some(state.label())
                    };
                    let found = found.iter().find(is_its)?;
                    Some(Series { name: state.name(), values: values(found) })
                };
                kind.states().iter().filter_map(of).collect()
            }
        };
        Ok(Chart { kind, from: instant(first), step, series, limit: self.limit(kind) })
    }

    fn limit(&self, kind: ChartKind) -> Option<f64> {
        self.storage.filter(|_| kind == ChartKind::Storage).map(MeasuredStorage::threshold)
    }
}

fn of<T: Copy>(table: &ByState<JobState, T>, state: JobState) -> T {
    *table.get(Some(state))
}
