//! What the queue looked like over the last hours, and how fast it moves now.
//!
//! A fixed number of steps of ten seconds by our own clock, whatever the queue holds: each has the figures at its end
//! and counts what was seen to move in it. While there is no connection there are no steps, and a gap stays a gap. What
//! happened meanwhile is learnt from the next walk and counted in its step, which says how many steps it covers.

mod batches;
mod flow;
mod points;
mod step;

use std::collections::VecDeque;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

pub use flow::{Flow, Pace, Rates, StateFlow};
pub use points::{History, Point};
pub(super) use step::{Figures, Sample, index, saturated};

use self::batches::Batches;
use self::step::Step;
use super::image::{Change, ObservedState};
use super::summary::ByState;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::{JobState, State};

/// The length of a step, in milliseconds.
const STEP_MS: i64 = 10_000;

/// How far the record reaches back at most.
pub const HISTORY: Duration = Duration::from_hours(6);

/// How many steps that is.
#[expect(clippy::cast_possible_wrap, reason = "hours are few seconds")]
const STEPS: i64 = HISTORY.as_secs() as i64 * 1_000 / STEP_MS;

/// The record. Only the mirror's writer adds to it.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// By ascending number, the last one still open.
    steps: VecDeque<Step>,
    /// Since when transitions are counted.
    since: Option<Timestamp>,
    /// Up to when they are known.
    until: Option<Timestamp>,
    /// When a job was last seen to leave each state.
    left: ByState<JobState, Option<Timestamp>>,
    /// When one was last seen to go on from each state, along the success path.
    passed: ByState<JobState, Option<Timestamp>>,
    /// When one must have, by what the tree says of the jobs; in milliseconds by the servers' clock, of which more may
    /// be known later than now.
    inferred_ms: ByState<JobState, Option<i64>>,
    batches: Batches,
}

impl Record {
    /// Counts what changes meant for the queue.
    pub(super) fn note(&mut self, changes: impl IntoIterator<Item = Change>, now: Timestamp) {
        let mut changes = changes.into_iter().filter(|change| is_of_job(*change)).peekable();
        if changes.peek().is_none() {
            return;
        }
        self.keep_time(now);
        for change in changes {
            let (from, to) = match change {
                Change::Job { from, to, is_new: false, .. } | Change::OtherJob { from, to } => (from, to),
                Change::Job { .. }
                | Change::Nothing
                | Change::Quiet
                | Change::Batch { .. }
                | Change::OtherBatch { .. } => continue,
            };
            let step = self.step(now);
            let has_moved = from != ObservedState::Nowhere;
            if to == ObservedState::In(JobState::Completed) && has_moved {
                step.completed = step.completed.saturating_add(1);
            }
            if to == ObservedState::In(JobState::Failed) && has_moved {
                step.failed = step.failed.saturating_add(1);
            }
            for state in passed(from, to) {
                if is_on_its_way(state, to) {
                    let left = &mut self.step(now).left[index(state)];
                    *left = left.saturating_add(1);
                    *self.passed.get_mut(state) = Some(now);
                }
                *self.left.get_mut(state) = Some(now);
            }
        }
    }

    /// Takes note of the figures at an instant. They stand for the step until later ones replace them.
    pub(super) fn sample(&mut self, sample: Sample, now: Timestamp) {
        self.keep_time(now);
        let Sample { figures, batches } = sample;
        self.step(now).figures = Some(figures);
        self.batches.sample(batches, now);
    }

    /// Takes note of when a job last left each state, as far as the jobs of an image show it; in milliseconds by the
    /// servers' clock.
    pub(super) fn infer_left(&mut self, left_ms: &ByState<JobState, Option<i64>>) {
        for (state, left_ms) in left_ms.iter() {
            let known = self.inferred_ms.get_mut(state);
            *known = (*known).max(*left_ms);
        }
    }

    /// Our clock was set forward by so many milliseconds: all that is recorded is as long ago as it was.
    pub(super) fn shift(&mut self, by_ms: i64) {
        let steps = by_ms.div_euclid(STEP_MS);
        self.steps.iter_mut().for_each(|step| step.number = step.number.saturating_add(steps));
        let by_state = [&mut self.left, &mut self.passed].into_iter().flat_map(ByState::iter_mut);
        let instants = [&mut self.since, &mut self.until].into_iter().chain(by_state.map(|(_, at)| at));
        instants.flatten().for_each(|at| *at = shifted(*at, by_ms));
        self.batches.shift(by_ms);
    }

    /// How fast the jobs of a batch end; `None` where it is not in progress or was just taken up.
    pub(super) fn batch_rates(&self, batch: BatchId) -> Option<Rates> {
        self.batches.rates(batch)
    }

    /// The step of an instant, which is the last one. Whatever the clock does, this looks at each step at most once.
    fn step(&mut self, now: Timestamp) -> &mut Step {
        let number = number(now);
        // The clock was set back: what was recorded for instants to come was not then.
        while self.steps.back().is_some_and(|last| last.number > number) {
            self.steps.pop_back();
        }
        while self.steps.front().is_some_and(|first| first.number <= number.saturating_sub(STEPS)) {
            self.steps.pop_front();
        }
        let last = self.steps.back().map(|last| last.number);
        if last != Some(number) {
            let covers = last.map_or(1, |last| u32::try_from(number - last).unwrap_or(1));
            self.steps.push_back(Step { number, covers, ..Step::default() });
        }
        self.steps.back_mut().expect("the step was just added where it was missing")
    }

    fn keep_time(&mut self, now: Timestamp) {
        self.since = Some(self.since.map_or(now, |since| since.min(now)));
        self.until = Some(now);
    }
}

/// The number of the step in which an instant lies.
fn number(at: Timestamp) -> i64 {
    at.as_millisecond().div_euclid(STEP_MS)
}

/// The instant at which a step begins.
fn begin(number: i64) -> Timestamp {
    Timestamp::from_millisecond(number.saturating_mul(STEP_MS)).unwrap_or(Timestamp::MAX)
}

/// From one instant to another; nothing where that lies before it.
fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}

/// An instant of a clock that was set forward since by so many milliseconds.
pub(super) fn shifted(at: Timestamp, by_ms: i64) -> Timestamp {
    let end = if by_ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    at.checked_add(SignedDuration::from_millis(by_ms)).unwrap_or(end)
}

fn is_of_job(change: Change) -> bool {
    match change {
        Change::Job { .. } | Change::OtherJob { .. } => true,
        Change::Nothing | Change::Quiet | Change::Batch { .. } | Change::OtherBatch { .. } => false,
    }
}

/// Whether a job that has left a state for another went on along the success path, which is what a rate is of: a hold
/// or a failure takes many out of a state at once, and says nothing of how fast it works. From a state beside the path
/// every way out counts.
fn is_on_its_way(state: Option<JobState>, to: ObservedState<JobState>) -> bool {
    let Some(state) = state.filter(|state| state.success().is_some()) else { return true };
    matches!(to, ObservedState::In(to) if !state.steps_to(to).is_empty())
}

/// The states that a job has left: where it was, and what it was seen to jump over.
fn passed(from: ObservedState<JobState>, to: ObservedState<JobState>) -> impl Iterator<Item = Option<JobState>> {
    let (left, jumped) = match (from, to) {
        (ObservedState::Nowhere, _) => (None, Vec::new()),
        (ObservedState::Other, _) => (Some(None), Vec::new()),
        // Nearly all jobs are seen in each of their states.
        (ObservedState::In(from), ObservedState::In(to)) if from.success() != Some(to) => {
            (Some(Some(from)), from.steps_to(to))
        }
        (ObservedState::In(from), ObservedState::In(_) | ObservedState::Nowhere | ObservedState::Other) => {
            (Some(Some(from)), Vec::new())
        }
    };
    let is_left = move |state: &JobState| to != ObservedState::In(*state);
    left.into_iter().chain(jumped.into_iter().filter(is_left).map(Some))
}

#[cfg(test)]
mod tests;
