//! The record as a curve.

use std::time::Duration;

use jiff::Timestamp;

use super::step::{Figures, STATES, Step, index};
use super::{HISTORY, Record, STEP_MS, STEPS, begin, number};
use crate::mirror::summary::ByState;
use queuekeeper_queue::state::{JobState, State};

/// The figures over the last hours. Instants are by our own clock.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// When the first point begins, whether something is known of it or not.
    pub from: Option<Timestamp>,
    /// Since when this process has looked; `None` where it has not yet.
    pub since: Option<Timestamp>,
    /// How long a point is.
    pub step: Duration,
    /// Oldest first; `None` for a time of which nothing is known, because there was no connection or no process.
    pub points: Vec<Option<Point>>,
}

/// The figures of one piece of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// When it begins.
    pub at: Timestamp,
    /// Jobs in each state at its end.
    pub jobs: ByState<JobState, u64>,
    /// Of these, held by a daemon.
    pub locked: ByState<JobState, u64>,
    /// Jobs that left each state in it, a second; of those on the success path, along it.
    pub left_per_second: ByState<JobState, f64>,
    /// Jobs that entered Completed in it, a second.
    pub completed_per_second: f64,
    /// Jobs that entered Failed in it, a second.
    pub failed_per_second: f64,
    /// The longest time that a job had been in each state during it.
    pub oldest: ByState<JobState, Option<Duration>>,
    /// Items that showed a fault, at most.
    pub faults: u64,
    /// Batches in progress at its end.
    pub batches_in_progress: u64,
}

impl Record {
    /// The last `window`, or all that is kept, in at most so many points. Points lie at fixed instants, so that a curve
    /// moves on as a whole and does not shimmer.
    pub(in crate::mirror) fn points(&self, now: Timestamp, window: Duration, most: usize) -> History {
        let steps = i64::try_from(window.min(HISTORY).as_millis()).unwrap_or(i64::MAX) / STEP_MS;
        let steps = steps.clamp(1, STEPS);
        let most = i64::try_from(most).unwrap_or(STEPS).clamp(1, STEPS);
        let width = steps.div_euclid(most) + i64::from(steps.rem_euclid(most) > 0);
        let last = self.end(now).div_euclid(width);
        let first = last - steps.div_euclid(width) + 1;
        let mut points = vec![None; usize::try_from(last - first + 1).unwrap_or(0)];
        let mut piece: Vec<&Step> = Vec::new();
        let mut steps = self.steps.iter().peekable();
        while let Some(step) = steps.next() {
            piece.push(step);
            let place = step.number.div_euclid(width);
            if steps.peek().is_none_or(|next| next.number.div_euclid(width) != place) {
                let at = usize::try_from(place - first).ok().and_then(|place| points.get_mut(place));
                if let Some(point) = at {
                    *point = self.point(begin(place * width), &piece);
                }
                piece.clear();
            }
        }
        let step = Duration::from_millis(u64::try_from(width * STEP_MS).unwrap_or(0));
        History { from: Some(begin(first * width)), since: self.since, step, points }
    }

    /// The step that a curve ends with. One that has just begun has no sample for some seconds: to show that as a gap
    /// would say that nothing is known of now.
    fn end(&self, now: Timestamp) -> i64 {
        let now = number(now);
        let before = self.steps.iter().rev().find(|step| step.figures.is_some()).map(|step| step.number);
        before.filter(|before| *before == now - 1).unwrap_or(now)
    }

    /// The figures of some steps together; `None` where no sample was taken at their ends.
    fn point(&self, at: Timestamp, steps: &[&Step]) -> Option<Point> {
        let sampled: Vec<&Figures> = steps.iter().filter_map(|step| step.figures.as_ref()).collect();
        let last = sampled.last()?;
        let covered = steps.iter().map(|step| self.seconds(step)).sum::<f64>().max(1.0);
        let per_second =
            |count: &dyn Fn(&Step) -> u32| steps.iter().map(|step| f64::from(count(step))).sum::<f64>() / covered;
        let oldest = |state| {
            let known = sampled.iter().map(|figures| figures.oldest[state]).filter(|oldest| *oldest != u32::MAX);
            known.max().map(|oldest| Duration::from_secs(u64::from(oldest)))
        };
        Some(Point {
            at,
            jobs: table(|state| last.jobs[state].into()),
            locked: table(|state| last.locked[state].into()),
            left_per_second: table(|state| per_second(&|step| step.left[state])),
            completed_per_second: per_second(&|step| step.completed),
            failed_per_second: per_second(&|step| step.failed),
            oldest: table(oldest),
            faults: sampled.iter().map(|figures| figures.faults.into()).max().unwrap_or(0),
            batches_in_progress: last.batches_in_progress.into(),
        })
    }

    /// Over how many seconds the counts of a step were collected: the last one is not over, and the first one began
    /// late.
    fn seconds(&self, step: &Step) -> f64 {
        let end = begin(step.number + 1).min(self.until.unwrap_or(Timestamp::MAX));
        let start = begin(step.number + 1 - i64::from(step.covers)).max(self.since.unwrap_or(Timestamp::MIN));
        super::between(start, end).as_secs_f64()
    }
}

fn table<T: Default>(mut value: impl FnMut(usize) -> T) -> ByState<JobState, T> {
    let mut table = ByState::default();
    for state in JobState::ALL.iter().copied().map(Some).chain([None]) {
        *table.get_mut(state) = value(index(state));
    }
    debug_assert_eq!(table.iter().count(), STATES, "a table has a place for each state");
    table
}

#[cfg(test)]
mod tests;
