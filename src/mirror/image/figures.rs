//! The counts and ordered sets over all jobs, kept up to date by each change.

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};

use super::row::Standing;
use super::tally::Tally;
use crate::mirror::bands::Bands;
use crate::mirror::summary::{AGE_BOUNDS, ByAge, ByState};
use crate::mirror::text::TextId;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::state::{JobState, State};

/// The jobs of one state.
#[derive(Debug, Default)]
pub(super) struct StateFigures {
    pub(super) retried: u64,
    pub(super) retries: u64,
    /// Those that an operator held or failed.
    pub(super) by_operator: u64,
    /// Wide enough for any number of jobs that each claim to need the most that a znode can say.
    pub(super) space_needed_bytes: u128,
    /// By the instant of entering and the job's number, unlocked and locked apart.
    pub(super) entered: [Bands<5>; 2],
    /// By the instant of locking, as rows.
    pub(super) locked: BTreeSet<(i64, u32)>,
}

/// All jobs.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) states: ByState<JobState, StateFigures>,
    pub(super) locks: Bands<5>,
    /// Jobs in Provisioning by the space that they need.
    pub(super) provisioning_space: Bands<1>,
    /// Jobs by number of retries; a zero is kept out.
    pub(super) by_retries: std::collections::BTreeMap<u32, u64>,
    pub(super) collections: HashMap<TextId, ByState<JobState, u64>>,
    /// How many unfinished jobs each collection has.
    pub(super) unfinished: Tally<TextId>,
    /// Of the Held jobs of each collection, those that an operator held by themselves; a zero is kept out.
    pub(super) held_by_operator: HashMap<TextId, u64>,
    /// Collections whose first Pending job, or Held one that no operator held by itself, came or whose last one left,
    /// since they were last read.
    pub(super) crossed: HashSet<TextId>,
}

impl Figures {
    /// The figures of these jobs. Sorting them once is a third of the work of entering them one by one.
    pub(super) fn of(jobs: impl Iterator<Item = (u32, JobId, Standing)>) -> Self {
        let mut figures = Self::default();
        let mut entered: ByState<JobState, [Vec<(i64, u32)>; 2]> = ByState::default();
        let (mut locks, mut space) = (Vec::new(), Vec::new());
        for (row, job, standing) in jobs {
            figures.count(standing, 1);
            let entered = &mut entered.get_mut(standing.state)[usize::from(standing.locked_ms.is_some())];
            entered.push((standing.entered_ms, job.number()));
            if let Some(locked_ms) = standing.locked_ms {
                locks.push((locked_ms, row));
                figures.states.get_mut(standing.state).locked.insert((locked_ms, row));
            }
            if standing.state == Some(JobState::Provisioning) {
                space.push((bytes(standing), row));
            }
        }
        for ((_, figures), (_, entered)) in figures.states.iter_mut().zip(entered.iter_mut()) {
            figures.entered = std::mem::take(entered).map(Bands::of);
        }
        let unfinished = |jobs: &ByState<JobState, u64>| {
            let states = jobs.iter().filter(|(state, _)| !is_final(*state));
            states.map(|(_, jobs)| *jobs).sum()
        };
        figures.unfinished = Tally::of(figures.collections.iter().map(|(id, jobs)| (*id, unfinished(jobs))));
        figures.locks = Bands::of(locks);
        figures.provisioning_space = Bands::of(space);
        figures
    }

    pub(super) fn enter(&mut self, row: u32, job: JobId, standing: Standing) {
        self.count(standing, 1);
        let state = self.states.get_mut(standing.state);
        state.entered[usize::from(standing.locked_ms.is_some())].insert(standing.entered_ms, job.number());
        if let Some(locked_ms) = standing.locked_ms {
            state.locked.insert((locked_ms, row));
            self.locks.insert(locked_ms, row);
        }
        if standing.state == Some(JobState::Provisioning) {
            self.provisioning_space.insert(bytes(standing), row);
        }
    }

    pub(super) fn leave(&mut self, row: u32, job: JobId, standing: Standing) {
        self.count(standing, -1);
        let state = self.states.get_mut(standing.state);
        state.entered[usize::from(standing.locked_ms.is_some())].remove(standing.entered_ms, job.number());
        if let Some(locked_ms) = standing.locked_ms {
            state.locked.remove(&(locked_ms, row));
            self.locks.remove(locked_ms, row);
        }
        if standing.state == Some(JobState::Provisioning) {
            self.provisioning_space.remove(bytes(standing), row);
        }
    }

    fn count(&mut self, standing: Standing, by: i64) {
        let state = self.states.get_mut(standing.state);
        if standing.retries > 0 {
            state.retried = state.retried.wrapping_add_signed(by);
            state.retries = state.retries.wrapping_add_signed(by * i64::from(standing.retries));
            let jobs = self.by_retries.entry(standing.retries).or_default();
            *jobs = jobs.wrapping_add_signed(by);
            if *jobs == 0 {
                self.by_retries.remove(&standing.retries);
            }
        }
        if standing.is_by_operator {
            state.by_operator = state.by_operator.wrapping_add_signed(by);
        }
        let space = u128::from(standing.space_needed_bytes);
        state.space_needed_bytes =
            if by > 0 { state.space_needed_bytes + space } else { state.space_needed_bytes - space };
        let collection = self.collections.entry(standing.collection).or_default();
        let jobs = collection.get_mut(standing.state);
        *jobs = jobs.wrapping_add_signed(by);
        let all = *jobs;
        let is_held = standing.state == Some(JobState::Held);
        if is_held && standing.is_by_operator {
            let held = self.held_by_operator.entry(standing.collection).or_default();
            *held = held.wrapping_add_signed(by);
            if *held == 0 {
                self.held_by_operator.remove(&standing.collection);
            }
        } else if is_held || standing.state == Some(JobState::Pending) {
            let by_operator = self.held_by_operator.get(&standing.collection).filter(|_| is_held);
            if all.saturating_sub(by_operator.copied().unwrap_or(0)) == u64::from(by > 0) {
                self.crossed.insert(standing.collection);
            }
        }
        if by < 0 && collection.iter().all(|(_, jobs)| *jobs == 0) {
            self.collections.remove(&standing.collection);
        }
    }

    /// Takes note of a job among the unfinished ones of its collection. By itself, since most changes of a state leave
    /// that as it was.
    pub(super) fn rank(&mut self, before: Option<Standing>, after: Option<Standing>) {
        let place = |standing: Standing| (!is_final(standing.state)).then_some(standing.collection);
        let (before, after) = (before.and_then(place), after.and_then(place));
        if before != after {
            before.inspect(|collection| self.unfinished.add(*collection, -1));
            after.inspect(|collection| self.unfinished.add(*collection, 1));
        }
    }

    /// How many jobs of a collection are Held, but for those that an operator held by themselves.
    pub(super) fn held_with(&self, collection: TextId) -> u64 {
        let all = self.collections.get(&collection).map_or(0, |jobs| *jobs.get(Some(JobState::Held)));
        all.saturating_sub(self.held_by_operator.get(&collection).copied().unwrap_or(0))
    }

    /// Moves the marks of all ordered sets to the present.
    pub(super) fn set_marks(&mut self, ages: [i64; 5], space: i64) {
        for (_, state) in self.states.iter_mut() {
            state.entered.iter_mut().for_each(|entered| entered.set_marks(ages));
        }
        self.locks.set_marks(ages);
        self.provisioning_space.set_marks([space]);
    }
}

/// Whether a job in this state is done with. One in an unknown state is not.
pub(super) fn is_final<S: State>(state: Option<S>) -> bool {
    state.is_some_and(State::is_final)
}

fn bytes(standing: Standing) -> i64 {
    i64::try_from(standing.space_needed_bytes).unwrap_or(i64::MAX)
}

/// The instants at which the age bands begin, youngest first, for `now_ms` by the same clock.
pub(in crate::mirror) fn age_marks(now_ms: i64) -> [i64; 5] {
    AGE_BOUNDS.map(|bound| now_ms.saturating_sub(i64::try_from(bound.as_millis()).unwrap_or(i64::MAX)))
}

/// How many items are in each age band, given how many there are and how many are younger than each mark.
pub(in crate::mirror) fn by_age(len: usize, above: [usize; 5]) -> ByAge {
    let mut younger = 0;
    let mut bands = ByAge::default();
    for (band, above) in bands.iter_mut().zip(above.into_iter().chain([len])) {
        *band = (above - younger) as u64;
        younger = above;
    }
    bands
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the one collection that there is.
    fn standing(state: JobState, is_by_operator: bool) -> Standing {
        Standing { state: Some(state), is_by_operator, ..Standing::default() }
    }

    #[test]
    fn a_collection_is_crossed_by_its_first_and_last_pending_or_held_job() {
        let mut figures = Figures::default();
        let mut change = |enters: bool, row: u32, standing: Standing| {
            let job = JobId::new(row);
            if enters {
                figures.enter(row, job, standing);
            } else {
                figures.leave(row, job, standing);
            }
            let all = figures.held_with(TextId::default());
            (figures.crossed.drain().count(), all)
        };
        for state in [JobState::Pending, JobState::Held] {
            let held = |jobs| if state == JobState::Held { jobs } else { 0 };
            let job = standing(state, false);
            assert_eq!(change(true, 1, job), (1, held(1)), "the first {state}");
            assert_eq!(change(true, 2, job), (0, held(2)), "the second");
            assert_eq!(change(false, 1, job), (0, held(1)), "the last but one");
            assert_eq!(change(false, 2, job), (1, 0), "the last");
        }
        // One that an operator held by itself is none of them, whichever comes first.
        let [own, with] = [true, false].map(|is_by_operator| standing(JobState::Held, is_by_operator));
        assert_eq!(change(true, 1, own), (0, 0));
        assert_eq!(change(true, 2, with), (1, 1));
        assert_eq!(change(true, 3, own), (0, 1));
        assert_eq!(change(false, 2, with), (1, 0));
        assert_eq!((change(false, 1, own), change(false, 3, own)), ((0, 0), (0, 0)));
        // Nor does it count who made a job Pending, or what is in other states.
        assert_eq!(change(true, 4, standing(JobState::Pending, true)), (1, 0));
        assert_eq!(change(true, 5, standing(JobState::Failed, false)), (0, 0));
        assert_eq!(change(true, 6, standing(JobState::Completed, true)), (0, 0));
    }

    #[test]
    fn instants_before_time_have_all_ages() {
        assert_eq!(age_marks(i64::MIN), [i64::MIN; 5]);
        assert_eq!(age_marks(100_000_000), [99_940_000, 99_400_000, 96_400_000, 78_400_000, 13_600_000]);
        assert_eq!(by_age(10, [1, 1, 4, 4, 9]), [1, 0, 3, 0, 5, 1]);
    }
}
