//! The queue's figures over the last hours.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::mirror::{self, state_label};

/// The last six hours in steps of equal length.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct History {
    /// When the first point begins.
    pub(crate) from: Option<Timestamp>,
    /// Since when this process has watched the queue; null if it has not yet.
    pub(crate) since: Option<Timestamp>,
    /// The length of a step in seconds.
    pub(crate) step_seconds: u64,
    /// The points, oldest first; null for steps without data.
    pub(crate) points: Vec<Option<HistoryPoint>>,
}

/// The figures of one step.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct HistoryPoint {
    /// When it begins.
    pub(crate) at: Timestamp,
    /// Jobs that entered Completed, per hour.
    pub(crate) completed_per_hour: f64,
    /// Jobs that entered Failed, per hour.
    pub(crate) failed_per_hour: f64,
    /// The maximum number of faulty items.
    pub(crate) faults: u64,
    /// Batches in progress at its end.
    pub(crate) batches_in_progress: u64,
    /// Every state of jobs.
    pub(crate) states: Vec<HistoryState>,
}

/// The jobs of one state in one step.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct HistoryState {
    /// The state.
    pub(crate) state: &'static str,
    /// Jobs in it at the end.
    pub(crate) count: u64,
    /// Of these, held by a daemon.
    pub(crate) locked: u64,
    /// Jobs that left it, per hour.
    pub(crate) left_per_hour: f64,
    /// The age of the job that had been in it longest; null if there was none.
    pub(crate) oldest_seconds: Option<u64>,
}

impl From<&mirror::History> for History {
    fn from(history: &mirror::History) -> Self {
        Self {
            from: history.from,
            since: history.since,
            step_seconds: history.step.as_secs(),
            points: history.points.iter().map(|point| point.as_ref().map(HistoryPoint::from)).collect(),
        }
    }
}

impl From<&mirror::Point> for HistoryPoint {
    fn from(point: &mirror::Point) -> Self {
        let states = point.jobs.iter().map(|(state, count)| HistoryState {
            state: state_label(state),
            count: *count,
            locked: *point.locked.get(state),
            left_per_hour: point.left_per_second.get(state) * 3600.0,
            oldest_seconds: point.oldest.get(state).map(|oldest| oldest.as_secs()),
        });
        Self {
            at: point.at,
            completed_per_hour: point.completed_per_second * 3600.0,
            failed_per_hour: point.failed_per_second * 3600.0,
            faults: point.faults,
            batches_in_progress: point.batches_in_progress,
            states: states.collect(),
        }
    }
}
