//! When a batch ends, as far as that can be said.

use std::time::Duration;

use crate::mirror::Rates;
use crate::words::{count, span};
use queuekeeper_queue::state::JobState;

/// When the last job of a batch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forecast {
    /// No job is left to do.
    NothingLeft,
    /// Within this time, the shorter one first: by the rate of the last minutes and by that of the last hour.
    Ends(Duration, Duration),
    /// Not before the ingest queue is unpaused.
    Paused,
    /// Not before an operator releases so many of its jobs, which are Held.
    Held(u64),
    /// Not before this state flows again, in which jobs of it wait, or which they have still to pass.
    Stopped(JobState),
    /// None of its jobs has ended in the last minutes, though some would have at the rate of the last hour.
    Still,
    /// The figures are not current: nothing is known of what jobs do now.
    Stale,
    /// Too little was seen yet.
    Unknown,
}

impl Forecast {
    /// Estimates when a batch ends of which `left` jobs are left to do. `stopped` is a state that nothing leaves and
    /// that some of these have still to leave.
    #[must_use]
    pub fn of(left: u64, held: u64, stopped: Option<JobState>, is_paused: bool, rates: Option<Rates>) -> Self {
        let rates = rates.unwrap_or_default();
        match (left, stopped) {
            (0, _) => Self::NothingLeft,
            (_, _) if is_paused => Self::Paused,
            // A held job keeps its batch open however fast the others end.
            (_, _) if held > 0 => Self::Held(held),
            (_, Some(state)) => Self::Stopped(state),
            (left, None) => match (rates.time_for(left), rates.per_hour()) {
                (Some((soonest, latest)), _) => Self::Ends(soonest, latest),
                (None, Some(_)) => Self::Still,
                (None, None) => Self::Unknown,
            },
        }
    }

    /// The shortest and the longest time until it ends.
    #[must_use]
    pub fn times(self) -> Option<(Duration, Duration)> {
        match self {
            Self::Ends(soonest, latest) => Some((soonest, latest)),
            Self::NothingLeft
            | Self::Paused
            | Self::Held(_)
            | Self::Stopped(_)
            | Self::Still
            | Self::Stale
            | Self::Unknown => None,
        }
    }

    /// The same in a phrase, such as `in 12 to 40 min` or `2 jobs are Held`; empty where nothing
    /// is.
    #[must_use]
    pub fn phrase(self) -> String {
        match self {
            Self::NothingLeft => String::new(),
            Self::Ends(soonest, latest) => format!("in {}", span(soonest, latest)),
            Self::Paused => "ingest queue paused".to_owned(),
            Self::Held(1) => "1 job is Held".to_owned(),
            Self::Held(jobs) => format!("{} jobs are Held", count(jobs)),
            Self::Stopped(state) => format!("{state} is stopped"),
            Self::Still => "none finished recently".to_owned(),
            Self::Stale => "–".to_owned(),
            Self::Unknown => "not enough data yet".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::Pace;

    fn rates(recent: u64, longer: u64) -> Rates {
        let pace = |count, minutes| Pace { count, over: Duration::from_mins(minutes) };
        Rates { recent: pace(recent, 5), longer: pace(longer, 60), latest: Pace::default() }
    }

    #[test]
    fn a_time_is_given_only_where_nothing_stops_the_way() {
        let of = |held, stopped, is_paused, rates| Forecast::of(60, held, stopped, is_paused, Some(rates)).phrase();
        assert_eq!(of(0, None, false, rates(5, 60)), "in about 1.0 h");
        assert_eq!(of(0, None, false, rates(10, 30)), "in 30 min to 2.0 h");
        assert_eq!(of(0, None, false, rates(1, 60)), "in 1.0 to 5.0 h");
        let again = Rates { latest: Pace { count: 20, over: Duration::from_mins(1) }, ..rates(5, 60) };
        assert_eq!(of(0, None, false, again), "in 3 min to 1.0 h", "it goes on after a stall");
        assert_eq!(of(0, None, false, rates(0, 60)), "none finished recently");
        assert_eq!(of(0, None, false, rates(0, 12)), "in about 5.0 h", "at this rate a pause is no stall");
        assert_eq!(Forecast::of(60, 0, None, false, None), Forecast::Unknown);
        assert_eq!(of(1, None, false, rates(5, 60)), "1 job is Held");
        assert_eq!(of(3, Some(JobState::Storing), false, rates(5, 60)), "3 jobs are Held");
        assert_eq!(of(0, Some(JobState::Storing), false, rates(5, 60)), "Storing is stopped");
        assert_eq!(of(3, None, true, rates(5, 60)), "ingest queue paused");
        assert_eq!(Forecast::of(0, 0, None, true, None), Forecast::NothingLeft);
    }
}
