//! How fast jobs leave the states.

use std::time::Duration;

use jiff::Timestamp;

use super::step::{Step, index};
use super::{Record, STEP_MS, begin, between, number};
use crate::mirror::clock::Offset;
use crate::mirror::summary::ByState;
use crate::queue::state::{JobState, State};

/// A rate of less than this time says nothing.
const LEAST: Duration = Duration::from_secs(30);

/// The last minutes, in steps.
const SHORT: i64 = 5 * 60_000 / STEP_MS;

/// The last hour, in steps.
const LONG: i64 = 60 * 60_000 / STEP_MS;

/// How many were seen in how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// How many.
    pub count: u64,
    /// In how long.
    pub over: Duration,
}

impl Pace {
    /// How many a second; `None` where too little was seen to say.
    #[must_use]
    pub fn per_second(self) -> Option<f64> {
        (self.over >= LEAST).then(|| self.count as f64 / self.over.as_secs_f64())
    }

    /// How many an hour; `None` where too little was seen to say.
    #[must_use]
    pub fn per_hour(self) -> Option<f64> {
        self.per_second().map(|rate| rate * 3600.0)
    }

    /// How long `more` of them take at this pace; `None` where nothing moves or too little was seen, and beyond a
    /// thousand days, when it is no forecast any more.
    #[must_use]
    pub fn time_for(self, more: u64) -> Option<Duration> {
        let seconds = more as f64 / self.per_second().filter(|rate| *rate > 0.0)?;
        Duration::try_from_secs_f64(seconds).ok().filter(|time| *time <= Duration::from_hours(24 * 1000))
    }
}

/// How jobs leave a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateFlow {
    /// In the last five minutes, or since this process began to look.
    pub left_5m: Pace,
    /// In the last hour, or since this process began to look.
    pub left_1h: Pace,
    /// When one was last seen to leave it, or must have by what the others tell; `None` where nothing tells. By our own
    /// clock.
    pub last_left: Option<Timestamp>,
}

impl StateFlow {
    /// The pace to forecast with: of the last five minutes where enough went on then, else of the last hour.
    #[must_use]
    pub fn present(&self) -> Pace {
        const ENOUGH: u64 = 5;
        if self.left_5m.count >= ENOUGH && self.left_5m.over >= LEAST { self.left_5m } else { self.left_1h }
    }
}

/// How the queue moves. The counts end where the image was last known to be right.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// By state.
    pub states: ByState<JobState, StateFlow>,
    /// Jobs that entered Completed in the last five minutes.
    pub completed_5m: Pace,
    /// Jobs that entered Completed in the last hour.
    pub completed_1h: Pace,
    /// Jobs that entered Failed in the last hour.
    pub failed_1h: Pace,
}

impl Record {
    /// How the queue moves; of what the tree says, nothing is later than `now`.
    pub(in crate::mirror) fn flow(&self, offset: Offset, now: Timestamp) -> Flow {
        let pace = |steps, count: &dyn Fn(&Step) -> u32| self.pace(steps, count);
        let mut states: ByState<JobState, StateFlow> = ByState::default();
        for state in JobState::ALL.iter().copied().map(Some).chain([None]) {
            let left = |step: &Step| step.left[index(state)];
            let inferred = self.inferred_ms.get(state).map(|left_ms| offset.to_own(left_ms).min(now));
            let last_left = (*self.left.get(state)).max(inferred);
            *states.get_mut(state) = StateFlow { left_5m: pace(SHORT, &left), left_1h: pace(LONG, &left), last_left };
        }
        Flow {
            states,
            completed_5m: pace(SHORT, &|step| step.completed),
            completed_1h: pace(LONG, &|step| step.completed),
            failed_1h: pace(LONG, &|step| step.failed),
        }
    }

    /// The sum over so many steps before the open one, and that.
    fn pace(&self, steps: i64, count: &dyn Fn(&Step) -> u32) -> Pace {
        let (Some(since), Some(until)) = (self.since, self.until) else { return Pace::default() };
        let first = number(until) - steps;
        let within = self.steps.iter().rev().take_while(|step| step.number >= first);
        let sum: f64 = within.map(|step| f64::from(count(step)) * step.share_from(first)).sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a sum of at most 2^32 each")]
        let count = sum.round() as u64;
        Pace { count, over: between(since.max(begin(first)), until) }
    }
}
