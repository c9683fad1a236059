//! The states of jobs.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::Recent;
use crate::mirror::{AGE_LABELS, JobFigures, Summary, state_label};
use queuekeeper_queue::state::{JobState, State};

/// The jobs of one state, and how they leave it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct StateFigures {
    /// The state.
    pub(crate) state: &'static str,
    /// Jobs in it.
    pub(crate) count: u64,
    /// Of these, held by a daemon now.
    pub(crate) locked: u64,
    /// Of these, resumed at least once.
    pub(crate) retried: u64,
    /// When the job longest in the state entered it.
    pub(crate) oldest_entered: Option<Timestamp>,
    /// Jobs by time in the state; not cumulative.
    pub(crate) by_age: Vec<AgeBand>,
    /// The working storage that they need together.
    pub(crate) space_needed_bytes: u64,
    /// Jobs that move on from it per hour along the success path, not to Held or Failed: the rate of the last minutes,
    /// or of the last hour if there were too few; 0 while it does not move; null if there is too little data.
    pub(crate) left_per_hour: Option<f64>,
    /// Jobs that moved on from it in this way in the last hour, as far as it was watched.
    pub(crate) left_1h: u64,
    /// When one was last seen to leave it.
    pub(crate) last_left: Option<Timestamp>,
    /// Whether it has not moved for a minute or longer for a reason that will not go away without action.
    pub(crate) is_stopped: bool,
    /// Since when it has not moved; null while it moves.
    pub(crate) stopped_since: Option<Timestamp>,
    #[serde(skip)]
    pub(crate) name: &'static str,
    #[serde(skip)]
    pub(crate) is_on_path: bool,
    #[serde(skip)]
    pub(crate) is_final: bool,
}

/// Jobs of about one age.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct AgeBand {
    /// Up to this age, as in the metrics: `1m`, `10m`, `1h`, `6h`, `1d`, `older`.
    pub(crate) age: &'static str,
    /// How many.
    pub(crate) count: u64,
}

/// Every state, those of the success path first.
pub(super) fn all(summary: &Summary, recent: &Recent) -> Vec<StateFigures> {
    let mut states: Vec<_> =
        summary.jobs.iter().map(|(state, figures)| StateFigures::new(state, figures, recent)).collect();
    states.sort_by_key(|state| !state.is_on_path);
    states
}

impl StateFigures {
    fn new(state: Option<JobState>, figures: &JobFigures, recent: &Recent) -> Self {
        let flow = recent.flow.states.get(state);
        let stopped = recent.stopped.iter().find(|stopped| Some(stopped.state) == state);
        let bands = AGE_LABELS.into_iter().zip(figures.by_age).map(|(age, count)| AgeBand { age, count });
        Self {
            state: state_label(state),
            count: figures.count,
            locked: figures.locked,
            retried: figures.retried,
            oldest_entered: figures.oldest(),
            by_age: bands.collect(),
            space_needed_bytes: figures.space_needed_bytes,
            left_per_hour: flow.rates().present().per_hour().map(|rate| if stopped.is_some() { 0.0 } else { rate }),
            left_1h: flow.left_1h.count,
            last_left: flow.seen_left,
            stopped_since: stopped.and_then(|stopped| stopped.since),
            is_stopped: stopped.is_some(),
            name: state.map_or("Other", State::name),
            is_on_path: state.is_some_and(|state| state == JobState::Completed || state.success().is_some()),
            is_final: state.is_some_and(State::is_final),
        }
    }
}
