//! How fast jobs leave the states.

use std::time::Duration;

use jiff::Timestamp;

use super::step::{Step, index};
use super::{Record, STEP_MS, begin, between, number};
use crate::mirror::clock::Offset;
use crate::mirror::summary::ByState;
use queuekeeper_queue::state::{JobState, State};

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

/// How many were seen in the last minutes, and in a longer time that ends with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// In the last minutes, or since this process began to look.
    pub recent: Pace,
    /// In the longer time, or since this process began to look.
    pub longer: Pace,
    /// In the last one or two minutes, where that is known: what begins to go again after a stall goes faster than the
    /// others show.
    pub latest: Pace,
}

impl Rates {
    /// So many are no chance.
    const ENOUGH: f64 = 5.0;

    /// Whether nothing goes now: none went in the last minutes, and there never was one, or some would have gone at the
    /// rate of the longer time.
    #[must_use]
    pub fn is_still(self) -> bool {
        let usual = self.longer.per_second().unwrap_or(0.0) * self.recent.over.as_secs_f64();
        self.recent.count == 0 && (self.longer.count == 0 || usual >= Self::ENOUGH)
    }

    /// The one that says how fast it goes now: that of the last minutes where enough went then, or nothing goes.
    #[must_use]
    pub fn present(self) -> Pace {
        let is_enough = self.recent.count as f64 >= Self::ENOUGH || self.is_still();
        if is_enough && self.recent.over >= LEAST { self.recent } else { self.longer }
    }

    /// How many an hour, the slower rate first; `None` where too little was seen to say.
    #[must_use]
    pub fn per_hour(self) -> Option<(f64, f64)> {
        let mut rates = self.relevant().filter_map(Pace::per_hour);
        let first = rates.next()?;
        Some(rates.fold((first, first), |(least, most), rate| (least.min(rate), most.max(rate))))
    }

    /// How long `more` of them take, the shorter time first; `None` where nothing goes now, and as
    /// [`Pace::time_for`] says.
    #[must_use]
    pub fn time_for(self, more: u64) -> Option<(Duration, Duration)> {
        let mut times = self.relevant().map(|pace| pace.time_for(more));
        let first = times.next()??;
        times.try_fold((first, first), |(least, most), time| time.map(|time| (least.min(time), most.max(time))))
    }

    /// The rates for a forecast.
    fn relevant(self) -> impl Iterator<Item = Pace> {
        let recent = Some(self.recent).filter(|recent| recent.count > 0 || self.is_still());
        let latest = Some(self.latest).filter(|latest| latest.count as f64 >= Self::ENOUGH);
        recent.into_iter().chain([self.longer]).chain(latest).filter(|pace| pace.over >= LEAST)
    }
}

/// How jobs leave a state. The rates are of those that go on along the success path; a move to Held, Failed or Deleted
/// is none, but shows that a job has left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateFlow {
    /// In the last five minutes, or since this process began to look.
    pub left_5m: Pace,
    /// In the last hour, or since this process began to look.
    pub left_1h: Pace,
    /// When one was last seen to leave it, or must have by what the others show; `None` where nothing shows it. By our
    /// own clock.
    pub last_left: Option<Timestamp>,
    /// When one was last seen to leave it. By our own clock.
    pub seen_left: Option<Timestamp>,
    /// When one was last seen to go on from it along the success path. By our own clock.
    pub seen_passed: Option<Timestamp>,
}

impl StateFlow {
    /// The rates to forecast with.
    #[must_use]
    pub fn rates(&self) -> Rates {
        Rates { recent: self.left_5m, longer: self.left_1h, latest: Pace::default() }
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

impl Flow {
    /// The rates at which jobs complete.
    #[must_use]
    pub fn completed(&self) -> Rates {
        Rates { recent: self.completed_5m, longer: self.completed_1h, latest: Pace::default() }
    }
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
            let (seen_left, seen_passed) = (*self.left.get(state), *self.passed.get(state));
            let (left_5m, left_1h) = (pace(SHORT, &left), pace(LONG, &left));
            *states.get_mut(state) = StateFlow { left_5m, left_1h, last_left, seen_left, seen_passed };
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

#[cfg(test)]
mod tests;
