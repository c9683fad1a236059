//! What is kept beside the image because it was seen and is not in the tree: the way of each job and batch, and when a
//! daemon last took a job of each state.

use std::borrow::Cow;

use hashbrown::HashMap;

use self::batches::BatchPast;
use super::Image;
use super::change::{Change, ObservedState, elapsed};
use super::jobs::Jobs;
use super::past::{JobSnapshot, Past};
use super::row::UNKNOWN_MS;
use crate::mirror::clock::Offset;
use crate::mirror::past::PastEvent;
use crate::mirror::read::Found;
use crate::mirror::summary::ByState;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::{JobNode, Path};
use queuekeeper_queue::record::OperatorNote;
use queuekeeper_queue::state::{JobState, State as _};

mod batches;

/// What was seen happening.
#[derive(Debug, Default)]
pub(super) struct Watched {
    past: Past,
    batches: BatchPast,
    /// When a daemon last locked a job of each state, in milliseconds by the servers' clock.
    taken_ms: ByState<JobState, Option<i64>>,
    /// Since when no daemon is known to take jobs of each state, likewise: no process names it, and no job is locked.
    unserved_ms: ByState<JobState, Option<i64>>,
    /// The last lock that is gone while its job has not been seen to leave its state, by row: of the writes of one
    /// step, the end of the lock may be read first.
    released: HashMap<u32, Released>,
    /// The present by the servers' clock, for what the tree does not date.
    now_ms: i64,
}

/// A lock that is gone, in milliseconds by the servers' clock.
#[derive(Clone, Copy, Debug)]
struct Released {
    created_ms: i64,
    /// When its end was read.
    seen_ms: i64,
}

/// How far the present by the servers' clock may be from the truth, in milliseconds.
const CLOCK_SLACK_MS: i64 = 1_000;

impl Image {
    /// Says what the time is, in milliseconds by the servers' clock, to date what the tree does not.
    pub(in crate::mirror) fn set_now(&mut self, now_ms: i64) {
        self.watched.now_ms = now_ms;
    }

    /// Applies a read to the image and to nothing that is kept beside it, to compare what the rest costs.
    pub(in crate::mirror) fn apply_alone(&mut self, path: Path, found: &Found) -> Change {
        self.apply_found(path, found)
    }

    /// Takes note of what a read found at a job's znode (`None`) or one of its children, and remembers what it said.
    pub(super) fn apply_to_job(&mut self, job: JobId, node: Option<JobNode>, found: &Found) -> Change {
        let row = self.jobs.find(job);
        // With its last znode a job is gone, whichever that is; else most znodes show nothing worth remembering.
        let is_telling = match node {
            None | Some(JobNode::Status | JobNode::Lock | JobNode::Priority) => true,
            Some(_) => !found.is_present(),
        };
        let before = row.filter(|_| is_telling).map_or(JobSnapshot::NOTHING, |row| self.jobs.glance(row));
        let (mut change, now) = self.jobs.apply_at(row, job, node, found);
        if change == Change::Nothing || !is_telling {
            return change;
        }
        match now {
            Some(now) => self.remember(now, before, &mut change),
            None => row.into_iter().for_each(|row| self.watched.forget(row)),
        }
        change
    }

    fn remember(&mut self, row: u32, mut before: JobSnapshot, change: &mut Change) {
        let after = self.jobs.glance(row);
        if let (Some((_, at_ms)), None) = (after.lock, before.lock) {
            self.watched.take(after.state(), at_ms);
        }
        if let Change::OtherJob { .. } = change {
            self.watched.forget(row);
            before = JobSnapshot::NOTHING;
        }
        let locked_ms = self.watched.lock_of_step(row, before, after);
        if let Change::Job { spent: Some(_), waited, .. } = change {
            *waited = locked_ms.and_then(|at_ms| elapsed(before.entered_ms, at_ms));
        }
        let said = || self.jobs.operators_note(row);
        self.watched.past.note(row, (before, after), self.watched.now_ms, said);
    }

    /// Takes over what was seen of the old image's jobs, and adds what must have happened since.
    pub(in crate::mirror) fn inherit(&mut self, old: Option<&Self>, now_ms: i64) {
        let mut watched = Watched { now_ms, ..Watched::default() };
        if let Some(old) = old {
            watched.taken_ms = old.watched.taken_ms.clone();
            watched.unserved_ms = old.watched.unserved_ms.clone();
            let mut past = Past::heir(&old.watched.past);
            for row in self.jobs.rows() {
                let at = self.jobs.at(row);
                // Another job of that id has nothing to do with what was seen of the first.
                if let Some(before) =
                    old.jobs.find(at.id()).filter(|old_row| old.jobs.at(*old_row).created_ms == at.created_ms)
                {
                    past.take_over(row, &old.watched.past, before);
                    let glances = (old.jobs.glance(before), self.jobs.glance(row));
                    past.note(row, glances, now_ms, || self.jobs.operators_note(row));
                }
            }
            past.settle(&old.watched.past);
            watched.past = past;
            watched.batches = self.inherited_batches(old, now_ms);
        }
        for (state, figures) in self.jobs.figures.states.iter() {
            if let Some((at_ms, _)) = figures.locked.last() {
                watched.take(state, *at_ms);
            }
        }
        self.watched = watched;
    }

    /// What was seen of a job, oldest first.
    pub(in crate::mirror) fn past(&self, job: JobId, offset: Offset) -> Vec<PastEvent> {
        self.jobs.find(job).map(|row| self.watched.past.of(row, offset)).unwrap_or_default()
    }

    /// Takes note of the states of which no daemon is known to take jobs now.
    pub(in crate::mirror) fn note_unserved(&mut self, now_ms: i64) {
        for state in JobState::ALL.iter().copied().filter(|state| state.is_worked_on()) {
            let is_locked = !self.jobs.figures.states.get(Some(state)).locked.is_empty();
            let is_served = is_locked || self.own.workers(state) > 0;
            let since = self.watched.unserved_ms.get_mut(Some(state));
            *since = if is_served { None } else { since.or(Some(now_ms)) };
        }
    }

    /// Since when no daemon is known to take jobs of a state, in milliseconds by the servers' clock; at the most, since
    /// the tree was first read. `None` while there is one.
    pub(super) fn unserved_ms(&self, state: JobState) -> Option<i64> {
        // One that held a lock for a moment only may not have been seen when that was noted.
        let since = *self.watched.unserved_ms.get(Some(state));
        since.map(|since| since.max(self.taken_ms(state).unwrap_or(since)))
    }

    /// When a daemon last locked a job of a state, if that was observed, in milliseconds by the servers' clock.
    pub(super) fn taken_ms(&self, state: JobState) -> Option<i64> {
        *self.watched.taken_ms.get(Some(state))
    }
}

impl Watched {
    fn take(&mut self, state: Option<JobState>, at_ms: i64) {
        let taken = self.taken_ms.get_mut(state);
        *taken = (*taken).max(Some(at_ms));
    }

    /// Forgets the job in a row, which is gone.
    fn forget(&mut self, row: u32) {
        self.past.forget(row);
        self.released.remove(&row);
    }

    /// When the lock was created under which a job left its state, if it has left it and the lock was seen. Takes note
    /// of a lock that is gone, for a step that is read after it.
    fn lock_of_step(&mut self, row: u32, before: JobSnapshot, after: JobSnapshot) -> Option<i64> {
        let lock_ms = before.lock.map(|(_, at_ms)| at_ms);
        if before.seen == after.seen {
            // A lock that is older than the state is that of the step before.
            if before.lock != after.lock
                && let Some(lock_ms) = lock_ms.filter(|at_ms| *at_ms >= before.entered_ms)
            {
                self.released.insert(row, Released { created_ms: lock_ms, seen_ms: self.now_ms });
            }
            return None;
        }
        // One that ended before the step was made was given back, and another one, which was not seen, led to the step.
        let is_of_step = |released: &Released| after.entered_ms <= released.seen_ms.saturating_add(CLOCK_SLACK_MS);
        let released_ms = self.released.remove(&row).filter(is_of_step).map(|released| released.created_ms);
        let stay = before.entered_ms..=after.entered_ms;
        [lock_ms, released_ms].into_iter().flatten().filter(|at_ms| stay.contains(at_ms)).max()
    }
}

impl JobSnapshot {
    /// At a job that is not there.
    const NOTHING: Self =
        Self { seen: ObservedState::Nowhere, entered_ms: UNKNOWN_MS, retries: 0, priority: None, lock: None };

    fn state(self) -> Option<JobState> {
        match self.seen {
            ObservedState::In(state) => Some(state),
            ObservedState::Nowhere | ObservedState::Other => None,
        }
    }
}

impl Jobs {
    /// What an operator wrote with the state that the job in a row is in.
    fn operators_note(&self, row: u32) -> Option<Cow<'_, str>> {
        let message = self.texts.str(self.columns.message[row as usize]);
        OperatorNote::read(&message).is_some().then_some(message)
    }

    /// What the job in a row shows. Called twice for most reads, so it looks at no more columns than it must.
    fn glance(&self, row: u32) -> JobSnapshot {
        let (columns, rest, at) = (&self.columns, self.rest(row), row as usize);
        JobSnapshot {
            seen: ObservedState::of(columns.kind[at].state(), rest.has(JobNode::Status)),
            entered_ms: columns.entered_ms[at],
            retries: columns.retries[at],
            priority: columns.priority(at),
            lock: rest.lock.as_deref().map(|lock| (lock.session, lock.created_ms)),
        }
    }
}

#[cfg(test)]
mod tests;
