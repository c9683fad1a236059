//! What is kept beside the image because it was seen and the tree does not tell: each job's way, and when a daemon last
//! took a job of each state.

use super::change::{Change, Seen};
use super::past::{Glance, Past};
use super::row::{Row, UNKNOWN_MS};
use super::{Image, past};
use crate::mirror::clock::Offset;
use crate::mirror::past::PastEvent;
use crate::mirror::read::Found;
use crate::mirror::summary::ByState;
use crate::queue::id::JobId;
use crate::queue::path::{JobNode, Path};
use crate::queue::state::JobState;

/// What was seen happening.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    past: Past,
    /// When a daemon last locked a job of each state, in milliseconds by the servers' clock.
    taken_ms: ByState<JobState, Option<i64>>,
    /// The present by the servers' clock, for what the tree does not date.
    now_ms: i64,
}

impl Image {
    /// Says what the time is, in milliseconds by the servers' clock, to date what the tree does not.
    pub(in crate::mirror) fn set_now(&mut self, now_ms: i64) {
        self.watched.now_ms = now_ms;
    }

    /// Applies a read to the image and to nothing that is kept beside it, to compare what the rest costs.
    pub(in crate::mirror) fn apply_alone(&mut self, path: Path, found: &Found) -> Change {
        self.apply_found(path, found)
    }

    /// A job before a read is applied to it, where the read may tell something worth remembering.
    pub(super) fn glance_at(&self, path: &Path, found: &Found) -> Option<(JobId, Glance)> {
        let job = match path {
            Path::Job(job) | Path::JobNode(job, JobNode::Status | JobNode::Lock | JobNode::Priority) => *job,
            // With its last znode a job is gone, whichever that is.
            Path::JobNode(job, _) if !found.is_present() => *job,
            _ => return None,
        };
        Some((job, self.jobs.get(job).map_or(Glance::NOTHING, glance)))
    }

    /// Remembers what a read told of a job.
    pub(super) fn remember(&mut self, job: JobId, before: Glance, change: Change) {
        if matches!(change, Change::Nothing) {
            return;
        }
        let Some(row) = self.jobs.get(job) else { return self.watched.past.forget(job) };
        let after = glance(row);
        if let (Some((_, at_ms)), None) = (after.lock, before.lock) {
            self.watched.take(row.standing.state, at_ms);
        }
        let before = match change {
            Change::OtherJob { .. } => {
                self.watched.past.forget(job);
                Glance::NOTHING
            }
            Change::Nothing | Change::Quiet | Change::Job { .. } | Change::Batch { .. } | Change::OtherBatch { .. } => {
                before
            }
        };
        self.watched.past.note(job, before, after, self.watched.now_ms);
    }

    /// Takes over what was seen of the old image's jobs, and adds what must have happened since.
    pub(in crate::mirror) fn inherit(&mut self, old: Option<&Self>, now_ms: i64) {
        let mut watched = old.map(|old| old.watched.clone()).unwrap_or_default();
        watched.now_ms = now_ms;
        let gone: Vec<_> = watched.past.jobs().filter(|job| self.jobs.get(*job).is_none()).collect();
        for job in gone {
            watched.past.forget(job);
        }
        if let Some(old) = old {
            for row in self.jobs.slice(0..self.jobs.slots()) {
                match old.jobs.get(row.id()) {
                    Some(before) if before.created_ms == row.created_ms => {
                        watched.past.note(row.id(), glance(before), glance(row), now_ms);
                    }
                    // What was seen was of another job of that id.
                    Some(_) => watched.past.forget(row.id()),
                    None => {}
                }
            }
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
        self.watched.past.of(job, offset)
    }

    /// When a daemon last locked a job of a state, as far as anybody saw, in milliseconds by the servers' clock.
    pub(super) fn taken_ms(&self, state: JobState) -> Option<i64> {
        *self.watched.taken_ms.get(Some(state))
    }
}

impl Watched {
    fn take(&mut self, state: Option<JobState>, at_ms: i64) {
        let taken = self.taken_ms.get_mut(state);
        *taken = (*taken).max(Some(at_ms));
    }
}

impl past::Glance {
    /// At a job that is not there.
    const NOTHING: Self = Self { seen: Seen::Nowhere, entered_ms: UNKNOWN_MS, retries: 0, priority: None, lock: None };
}

fn glance(row: Row<'_>) -> Glance {
    Glance {
        seen: row.seen(),
        entered_ms: row.standing.entered_ms,
        retries: row.standing.retries,
        priority: row.priority,
        lock: row.lock.as_deref().map(|lock| (lock.session, lock.created_ms)),
    }
}
