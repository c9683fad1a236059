//! What is counted of jobs and locks beside their states: by batch, and by the session that holds them.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::row::JobRow;
use crate::mirror::summary::ByState;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::JobState;

/// What of a job is counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CountedBy {
    batch: Option<(u32, Option<JobState>)>,
    session: Option<i64>,
}

impl CountedBy {
    /// A row without znodes is no job, or not yet one.
    pub(super) fn of(row: JobRow<'_>) -> Self {
        let batch = row.batch.filter(|_| !row.nodes.is_empty());
        Self {
            batch: batch.map(|batch| (batch.number(), row.standing.state)),
            session: row.lock.as_deref().map(|lock| lock.session),
        }
    }
}

/// The jobs by batch and the locked ones by session, brought up to date by each change.
#[derive(Debug, Default)]
pub(super) struct JobIndex {
    batches: HashMap<u32, ByState<JobState, u32>>,
    pub(super) sessions: Sessions,
}

impl JobIndex {
    /// Takes note of a row's change.
    pub(super) fn moved(&mut self, row: u32, from: CountedBy, to: CountedBy) {
        if from.batch != to.batch {
            if let Some((batch, state)) = to.batch {
                *self.batches.entry(batch).or_default().get_mut(state) += 1;
            }
            if let Some((batch, state)) = from.batch
                && let Some(jobs) = self.batches.get_mut(&batch)
            {
                *jobs.get_mut(state) -= 1;
                if jobs.iter().all(|(_, jobs)| *jobs == 0) {
                    self.batches.remove(&batch);
                }
            }
        }
        if from.session != to.session {
            from.session.inspect(|session| self.sessions.remove(*session, row));
            to.session.inspect(|session| self.sessions.insert(*session, row));
        }
    }

    /// The jobs of a batch by state: those whose own `bid` names it.
    pub(super) fn of(&self, batch: BatchId) -> ByState<JobState, u32> {
        self.batches.get(&batch.number()).cloned().unwrap_or_default()
    }
}

/// Locks by the session that holds them; session 0 is that of persistent ones.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    held: BTreeSet<(i64, u32)>,
    counts: HashMap<i64, u32>,
}

impl Sessions {
    /// Takes note of a lock, which has a number of its own.
    pub(super) fn insert(&mut self, session: i64, number: u32) {
        if self.held.insert((session, number)) {
            *self.counts.entry(session).or_default() += 1;
        }
    }

    /// Takes note of a lock being gone.
    pub(super) fn remove(&mut self, session: i64, number: u32) {
        if self.held.remove(&(session, number))
            && let Some(count) = self.counts.get_mut(&session)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&session);
            }
        }
    }

    /// The locks of a session.
    pub(super) fn of(&self, session: i64) -> impl Iterator<Item = u32> {
        self.held.range((session, 0)..=(session, u32::MAX)).map(|(_, number)| *number)
    }

    /// How many locks a session holds.
    pub(super) fn count(&self, session: i64) -> u32 {
        self.counts.get(&session).copied().unwrap_or(0)
    }

    /// How many locks each session holds.
    pub(super) fn counts(&self) -> impl Iterator<Item = (i64, u32)> {
        self.counts.iter().map(|(session, count)| (*session, *count))
    }
}
