//! The figures of the whole image, at the cost of the number of states.

use std::sync::Arc;

use hashbrown::HashSet;
use jiff::Timestamp;

use super::Image;
use super::figures::{StateFigures, by_age};
use super::requests::Requests;
use super::row::UNKNOWN_MS;
use crate::mirror::bands::Bands;
use crate::mirror::clock::Offset;
use crate::mirror::failures::FailureCause;
use crate::mirror::faults::FaultFigures;
use crate::mirror::history::{Figures, Sample, index, saturated};
use crate::mirror::summary::{
    ByState, CollectionFigures, ItemFigures, JobFigures, LargestCollections, LockFigures, LockKind, Summary,
};
use crate::mirror::text::TextId;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::{AccessQueue, LockFolder, Path, QueueName, StateFolder};
use queuekeeper_queue::state::{AccessState, JobState, State};

/// How many names of unknown states are kept for the page.
const UNKNOWN_STATES: usize = 20;

impl Image {
    /// The figures at an instant of our own clock. `space` as for [`crate::mirror::MirrorStore::summary`].
    pub(in crate::mirror) fn summary(&self, now: Timestamp, offset: Offset, space: Option<i64>) -> Summary {
        let marks = super::age_marks(offset.to_server(now));
        let clocks = Clocks { offset, now };
        let figures = &self.jobs.figures;
        let job_locks = &figures.locks;
        let mut by_retries = [0; 4];
        for (retries, jobs) in &figures.by_retries {
            by_retries[(*retries as usize).min(3)] += jobs;
        }
        by_retries[0] = self.jobs.len() as u64 - by_retries[1..].iter().sum::<u64>();
        Summary {
            jobs: figures.states.map(|state| job_figures(state, marks, clocks)),
            batches: self.batches.entered.map(|entered| ItemFigures {
                count: entered.len() as u64,
                requested_bytes: 0,
                oldest: entered.first().and_then(|(at, _)| known(*at, clocks)),
            }),
            access_small: access_figures(self.access.queue(AccessQueue::Small), clocks),
            access_large: access_figures(self.access.queue(AccessQueue::Large), clocks),
            retries_max: figures.by_retries.keys().next_back().map_or(0, |retries| u64::from(*retries)),
            by_retries,
            workers: self.workers(),
            waiting_for_space: space.map_or(0, |space| figures.provisioning_space.above([space])[0] as u64),
            locks: LockKind::ALL.map(|kind| match kind {
                LockKind::Job => lock_figures(job_locks, marks, clocks),
                LockKind::Batch => few_locks(self.batches.locks.values().map(|lock| lock.created_ms), marks, clocks),
                LockKind::Access => {
                    let queues = [AccessQueue::Small, AccessQueue::Large];
                    let locks = queues.into_iter().flat_map(|queue| self.access.queue(queue).locks.values());
                    few_locks(locks.map(|lock| lock.created_ms), marks, clocks)
                }
                LockKind::Storage
                | LockKind::Inventory
                | LockKind::LocalId
                | LockKind::Queue
                | LockKind::Collection => lock_figures(&self.locks.kinds[kind as usize], marks, clocks),
            }),
            paused: [QueueName::Ingest, QueueName::AccessSmall, QueueName::AccessLarge]
                .map(|queue| self.locks.paused_ms(queue).map(|at| known(at, clocks).unwrap_or(now))),
            collections_held: self.locks.kinds[LockKind::Collection as usize].len() as u64,
            stores_held: self.own.holds().count() as u64,
            held_with_collection: self.held_with_collections(),
            znodes: u64::try_from(self.znodes()).unwrap_or(0),
            unreadable: u64::try_from(self.unreadable()).unwrap_or(0),
            unknown_states: self.unknown_states(),
            lock_sessions: self.lock_sessions(),
            failed_by_cause: self.failed_by_cause(),
            // The store adds these: they are counted for the instant up to which the image is known to be right.
            faults: <[FaultFigures; Fault::ALL.len()]>::default(),
        }
    }

    /// How many jobs of held collections are Held, but for those that an operator held by themselves.
    fn held_with_collections(&self) -> u64 {
        let held = self.locks.iter().filter_map(|(_, path, _)| match path {
            Path::NamedLock(LockFolder::Collections, name) => self.jobs.texts.find(name),
            _ => None,
        });
        held.map(|collection| self.jobs.figures.held_with(collection)).sum()
    }

    /// The figures that the history keeps, and how far the batches in progress are, at most `batches` of them.
    pub(in crate::mirror) fn sample(&self, now: Timestamp, offset: Offset, batches: usize) -> Sample {
        let now_ms = offset.to_server(now);
        let mut figures = Figures::default();
        for (state, jobs) in self.jobs.figures.states.iter() {
            let [unlocked, locked] = &jobs.entered;
            let oldest = [unlocked, locked].into_iter().filter_map(Bands::first).min().filter(|at| *at != UNKNOWN_MS);
            let at = index(state);
            figures.jobs[at] = saturated((unlocked.len() + locked.len()) as u64);
            figures.locked[at] = saturated(locked.len() as u64);
            figures.oldest[at] = oldest.map_or(u32::MAX, |oldest| {
                saturated(u64::try_from(now_ms.saturating_sub(oldest) / 1000).unwrap_or(0)).min(u32::MAX - 1)
            });
        }
        let faults = self.fault_figures(now_ms, offset).into_iter().map(|fault| fault.count);
        figures.faults = saturated(faults.fold(0, u64::saturating_add));
        figures.batches_in_progress = saturated(self.batches.in_progress.len() as u64);
        let in_progress = self.batches.in_progress.iter().take(batches);
        let batches = in_progress.filter_map(|(_, batch)| Some((*batch, self.batches.get(*batch)?.ended()))).collect();
        Sample { figures, batches }
    }

    /// When a job last left each state, as far as the jobs themselves show it; in milliseconds by the servers' clock.
    pub(in crate::mirror) fn inferred_left(&self) -> ByState<JobState, Option<i64>> {
        let mut left = ByState::default();
        for state in JobState::ALL.iter().copied() {
            *left.get_mut(Some(state)) = self.last_passed(state);
        }
        left
    }

    /// The latest instant at which an item entered its state, in milliseconds by the servers' clock.
    pub(in crate::mirror) fn latest_ms(&self) -> Option<i64> {
        let jobs = JobState::ALL.iter().filter_map(|state| self.last_entered(*state));
        let batches = self.batches.iter().map(|(_, batch)| batch.item.entered_ms);
        let requests = AccessQueue::ALL.iter().flat_map(|queue| self.access.queue(*queue).iter());
        let requests = requests.map(|(_, request)| request.item.entered_ms);
        jobs.chain(batches).chain(requests).filter(|at| *at != UNKNOWN_MS).max()
    }

    /// Jobs by collection and state, in no order.
    pub(in crate::mirror) fn collections(&self) -> Vec<CollectionFigures> {
        let of = |(collection, jobs): (&_, &ByState<_, u64>)| CollectionFigures {
            collection: self.jobs.texts.get(*collection),
            jobs: jobs.clone(),
        };
        self.jobs.figures.collections.iter().map(of).collect()
    }

    /// The jobs of the collections with the most unfinished ones, at most `most` of them, and of all others together.
    pub(in crate::mirror) fn largest_collections(&self, most: usize) -> LargestCollections {
        let figures = &self.jobs.figures;
        let mut rest = figures.states.map(|state| state.entered.iter().map(Bands::len).sum::<usize>() as u64);
        let nameless = TextId::default();
        let ranked = figures.unfinished.largest().filter(|(collection, _)| *collection != nameless).take(most);
        let mut largest = Vec::new();
        for (id, jobs) in ranked.filter_map(|(id, _)| Some((id, figures.collections.get(&id)?))) {
            for (state, count) in jobs.iter() {
                *rest.get_mut(state) -= count;
            }
            largest.push(CollectionFigures { collection: self.jobs.texts.get(id), jobs: jobs.clone() });
        }
        let all = figures.collections.len() - usize::from(figures.collections.contains_key(&nameless));
        LargestCollections { all: all as u64, largest, rest }
    }

    /// How many sessions hold a lock. There are as many as daemons and tools are connected.
    fn lock_sessions(&self) -> u64 {
        let counted =
            self.jobs.beside.sessions.counts().chain(self.locks.sessions.counts()).map(|(session, _)| session);
        let requests = AccessQueue::ALL.iter().flat_map(|queue| self.access.queue(*queue).locks.values());
        let items = self.batches.locks.values().chain(requests).map(|lock| lock.session);
        // Persistent locks belong to no session.
        let sessions: HashSet<i64> = counted.chain(items).filter(|session| *session != 0).collect();
        sessions.len() as u64
    }

    fn failed_by_cause(&self) -> [u64; FailureCause::ALL.len()] {
        let mut failed = self.jobs.failures.by_cause();
        failed[FailureCause::Operator as usize] = self.jobs.figures.states.get(Some(JobState::Failed)).by_operator;
        failed
    }

    fn znodes(&self) -> i64 {
        let folders = self.folders.len() + self.uuids.len() + self.locks.len() + self.unexpected.len();
        self.jobs.znodes + self.batches.znodes + self.access.znodes + i64::try_from(folders).unwrap_or(i64::MAX)
    }

    /// How many znodes cannot be decoded, are not readable, or have an unexpected name.
    pub(in crate::mirror) fn unreadable(&self) -> i64 {
        let folders = self.denied.len() + self.unexpected.len();
        self.jobs.unreadable
            + self.batches.unreadable
            + self.access.unreadable
            + self.locks.unreadable
            + self.uuids.unreadable
            + i64::try_from(folders).unwrap_or(i64::MAX)
    }

    /// The names of what is counted as `other`.
    pub(in crate::mirror) fn unknown_states(&self) -> Vec<Arc<str>> {
        // Paths are ordered by what they are, so these stand together, and the many UUIDs need not be looked through.
        let first = Path::StateFolder(StateFolder::Other(Box::default()));
        let folders = self.folders.range(first..).map_while(|path| match path {
            Path::StateFolder(StateFolder::Other(name)) => Some(Arc::from(&**name)),
            _ => None,
        });
        // Items of unknown states are few, or all of them: then the first ones say it.
        let batches =
            self.batches.entered.get(None).iter().take(1000).filter_map(|(_, batch)| self.batches.get(*batch));
        let batches = batches.map(|entry| Arc::clone(&entry.item.status_text));
        let requests = AccessQueue::ALL.iter().flat_map(|queue| {
            let requests = self.access.queue(*queue);
            let unknown = requests.states.get(None).entered.iter().take(1000);
            unknown.filter_map(|(_, request)| requests.get(*request))
        });
        let requests = requests.map(|entry| Arc::clone(&entry.item.status_text));
        let items = self.jobs.unknown_states().chain(batches).chain(requests);
        let mut names: Vec<_> = folders.chain(items.filter(|name| !name.is_empty())).collect();
        names.sort();
        names.dedup();
        names.truncate(UNKNOWN_STATES);
        names
    }
}

fn job_figures(state: &StateFigures, marks: [i64; 5], clocks: Clocks) -> JobFigures {
    let [unlocked, locked] = &state.entered;
    let count = unlocked.len() + locked.len();
    let (of_unlocked, of_locked) = (unlocked.above(marks), locked.above(marks));
    JobFigures {
        count: count as u64,
        locked: locked.len() as u64,
        retried: state.retried,
        retries: state.retries,
        by_operator: state.by_operator,
        space_needed_bytes: u64::try_from(state.space_needed_bytes).unwrap_or(u64::MAX),
        oldest_unlocked: unlocked.first().and_then(|at| known(at, clocks)),
        oldest_locked: locked.first().and_then(|at| known(at, clocks)),
        oldest_lock: state.locked.first().and_then(|(at, _)| known(*at, clocks)),
        by_age: by_age(count, std::array::from_fn(|mark| of_unlocked[mark] + of_locked[mark])),
    }
}

fn access_figures(requests: &Requests, clocks: Clocks) -> ByState<AccessState, ItemFigures> {
    requests.states.map(|state| ItemFigures {
        count: state.entered.len() as u64,
        requested_bytes: u64::try_from(state.requested_bytes).unwrap_or(u64::MAX),
        oldest: state.entered.first().and_then(|(at, _)| known(*at, clocks)),
    })
}

fn lock_figures(locks: &Bands<5>, marks: [i64; 5], clocks: Clocks) -> LockFigures {
    LockFigures {
        count: locks.len() as u64,
        oldest: locks.first().and_then(|at| known(at, clocks)),
        by_age: by_age(locks.len(), locks.above(marks)),
    }
}

/// The same for locks that are kept with their items. As many daemons as there are hold them, so a count is cheap.
fn few_locks(created_ms: impl Iterator<Item = i64>, marks: [i64; 5], clocks: Clocks) -> LockFigures {
    let mut locks = Bands::default();
    for (number, at) in (0..).zip(created_ms) {
        locks.insert(at, number);
    }
    lock_figures(&locks, marks, clocks)
}

/// What is needed to convert an instant of our clock to the servers'.
#[derive(Clone, Copy)]
struct Clocks {
    offset: Offset,
    now: Timestamp,
}

/// An instant of the servers' clock by ours; `None` where none is known.
///
/// It is never later than now: until a change has shown how far a server's clock is ahead, what it dated would be of a
/// negative age.
fn known(at_ms: i64, clocks: Clocks) -> Option<Timestamp> {
    (at_ms != UNKNOWN_MS).then(|| clocks.offset.to_own(at_ms).min(clocks.now))
}

#[cfg(test)]
mod tests;
