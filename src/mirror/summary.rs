//! The figures of the whole queue at one moment: what a scrape and the overview need, of a size that does not depend
//! on the number of jobs.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::failures::FailureCause;
use super::faults::FaultFigures;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::{AccessQueue, QueueName};
use queuekeeper_queue::state::{AccessState, BatchState, JobState, State};

/// The upper bounds of the age bands; what is older than the last is in a band of its own.
pub const AGE_BOUNDS: [Duration; 5] = [
    Duration::from_mins(1),
    Duration::from_mins(10),
    Duration::from_hours(1),
    Duration::from_hours(6),
    Duration::from_hours(24),
];

/// The label values of the age bands, youngest first.
pub const AGE_LABELS: [&str; 6] = ["1m", "10m", "1h", "6h", "1d", "older"];

/// How many items are in each age band; not cumulative.
pub type ByAge = [u64; 6];

/// A value for each state of `S` and one for `other`: items whose status names no state that we know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByState<S, T> {
    values: Box<[T]>,
    states: std::marker::PhantomData<S>,
}

impl<S: State, T: Default> Default for ByState<S, T> {
    fn default() -> Self {
        Self { values: (0..=S::ALL.len()).map(|_| T::default()).collect(), states: std::marker::PhantomData }
    }
}

impl<S: State, T> ByState<S, T> {
    /// The value of a state; of `other` for `None`.
    #[must_use]
    pub fn get(&self, state: Option<S>) -> &T {
        &self.values[state.map_or(S::ALL.len(), State::index)]
    }

    /// The value of a state, to be changed.
    pub fn get_mut(&mut self, state: Option<S>) -> &mut T {
        &mut self.values[state.map_or(S::ALL.len(), State::index)]
    }

    /// Every state's value, `None` (for `other`) last.
    pub fn iter(&self) -> impl Iterator<Item = (Option<S>, &T)> {
        S::ALL.iter().copied().map(Some).chain([None]).zip(self.values.iter())
    }

    /// Every state's value, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Option<S>, &mut T)> {
        S::ALL.iter().copied().map(Some).chain([None]).zip(self.values.iter_mut())
    }

    /// The same states with other values.
    pub(super) fn map<U>(&self, change: impl FnMut(&T) -> U) -> ByState<S, U> {
        ByState { values: self.values.iter().map(change).collect(), states: std::marker::PhantomData }
    }
}

/// The label value of a state, and `other` for one that we do not know.
#[must_use]
pub fn state_label<S: State>(state: Option<S>) -> &'static str {
    state.map_or("other", State::label)
}

/// The jobs of one state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFigures {
    /// Jobs in the state, by their status.
    pub count: u64,
    /// Of these, held by a daemon now.
    pub locked: u64,
    /// Of these, resumed at least once.
    pub retried: u64,
    /// The sum of their retries.
    pub retries: u64,
    /// Of these, held or failed by an operator.
    pub by_operator: u64,
    /// The sum of the working storage that they need, in bytes.
    pub space_needed_bytes: u64,
    /// When the unlocked job longest in the state entered it.
    pub oldest_unlocked: Option<Timestamp>,
    /// When the locked job longest in the state entered it.
    pub oldest_locked: Option<Timestamp>,
    /// When the oldest lock on a job of the state was created.
    pub oldest_lock: Option<Timestamp>,
    /// Jobs by time in the state.
    pub by_age: ByAge,
}

impl JobFigures {
    /// When the job longest in the state entered it.
    #[must_use]
    pub fn oldest(&self) -> Option<Timestamp> {
        match (self.oldest_unlocked, self.oldest_locked) {
            (Some(unlocked), Some(locked)) => Some(unlocked.min(locked)),
            (unlocked, locked) => unlocked.or(locked),
        }
    }
}

/// The batches, or the access requests of one queue, in one state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemFigures {
    /// Items in the state.
    pub count: u64,
    /// The sum of the bytes that they ask for; 0 for batches.
    pub requested_bytes: u64,
    /// When the item longest in the state entered it.
    pub oldest: Option<Timestamp>,
}

/// The kinds of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockKind {
    /// A daemon works on a job.
    Job,
    /// A daemon works on a batch.
    Batch,
    /// A daemon works on an access request.
    Access,
    /// An object is being stored.
    Storage,
    /// An object is being recorded.
    Inventory,
    /// A local id is being minted.
    LocalId,
    /// A queue is paused.
    Queue,
    /// A collection is held.
    Collection,
}

impl LockKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Job,
        Self::Batch,
        Self::Access,
        Self::Storage,
        Self::Inventory,
        Self::LocalId,
        Self::Queue,
        Self::Collection,
    ];

    /// The label value.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Batch => "batch",
            Self::Access => "access",
            Self::Storage => "storage",
            Self::Inventory => "inventory",
            Self::LocalId => "localid",
            Self::Queue => "queue",
            Self::Collection => "collection",
        }
    }

    /// What is locked, as pages and the command line show it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Job => "Jobs",
            Self::Batch => "Batches",
            Self::Access => "Access requests",
            Self::Storage => "Objects being stored",
            Self::Inventory => "Objects being recorded",
            Self::LocalId => "Local ids",
            Self::Queue => "Paused queues",
            Self::Collection => "Held collections",
        }
    }
}

/// The locks of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockFigures {
    /// Locks held.
    pub count: u64,
    /// When the oldest was created.
    pub oldest: Option<Timestamp>,
    /// Locks by age.
    pub by_age: ByAge,
}

/// The figures of the whole queue at one moment. Instants are by our own clock.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Jobs by state.
    pub jobs: ByState<JobState, JobFigures>,
    /// Batches by state.
    pub batches: ByState<BatchState, ItemFigures>,
    /// Requests for small objects by state.
    pub access_small: ByState<AccessState, ItemFigures>,
    /// Requests for large objects by state.
    pub access_large: ByState<AccessState, ItemFigures>,
    /// The highest number of retries of any job.
    pub retries_max: u64,
    /// Jobs by number of retries: 0, 1, 2, and 3 or more.
    pub by_retries: [u64; 4],
    /// Jobs in Provisioning that need more than the space given to [`super::MirrorStore::summary`]; 0 where none was
    /// given.
    pub waiting_for_space: u64,
    /// Workers of our own daemons that take the jobs of each state, in the processes that say so.
    pub workers: ByState<JobState, u64>,
    /// Locks, in the order of [`LockKind::ALL`].
    pub locks: [LockFigures; 8],
    /// Since when the queues of [`QueueName::ALL`] are paused.
    pub paused: [Option<Timestamp>; 3],
    /// Collections that are held.
    pub collections_held: u64,
    /// Stores that are held.
    pub stores_held: u64,
    /// Held jobs of held collections, but for those that an operator held by themselves.
    pub held_with_collection: u64,
    /// Znodes in the image.
    pub znodes: u64,
    /// How many of these cannot be decoded, are not readable, or have an unexpected name.
    pub unreadable: u64,
    /// States and folders of states that we do not know, at most 20 of them; what is counted as `other`.
    pub unknown_states: Vec<Arc<str>>,
    /// Sessions that hold at least one lock.
    pub lock_sessions: u64,
    /// Failed jobs by cause, in the order of [`FailureCause::ALL`].
    pub failed_by_cause: [u64; FailureCause::ALL.len()],
    /// Items that show each fault, in the order of [`Fault::ALL`].
    pub faults: [FaultFigures; Fault::ALL.len()],
}

impl Summary {
    /// Access requests of a queue by state.
    #[must_use]
    pub fn access(&self, queue: AccessQueue) -> &ByState<AccessState, ItemFigures> {
        match queue {
            AccessQueue::Small => &self.access_small,
            AccessQueue::Large => &self.access_large,
        }
    }

    /// The locks of a kind.
    #[must_use]
    pub fn locks(&self, kind: LockKind) -> &LockFigures {
        &self.locks[kind as usize]
    }

    /// The items that show a fault.
    #[must_use]
    pub fn faults(&self, fault: Fault) -> FaultFigures {
        self.faults[fault as usize]
    }

    /// Since when a queue is paused; `None` while it runs.
    #[must_use]
    pub fn paused(&self, queue: QueueName) -> Option<Timestamp> {
        self.paused[queue as usize]
    }
}

/// The jobs of the collections with the most unfinished ones.
#[derive(Clone, Debug, Default)]
pub struct LargestCollections {
    /// How many collections have jobs.
    pub all: u64,
    /// Those with the most unfinished jobs, the largest first.
    pub largest: Vec<CollectionFigures>,
    /// The jobs of all others, and of jobs that name no collection.
    pub rest: ByState<JobState, u64>,
}

/// How many jobs of each state a collection has.
#[derive(Clone, Debug)]
pub struct CollectionFigures {
    /// The mnemonic; empty for jobs whose configuration names none. Text of a znode: anything at all.
    pub collection: Arc<str>,
    /// Jobs by state.
    pub jobs: ByState<JobState, u64>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_oldest_job_may_be_locked_or_not() {
        let [first, second] = [1, 2].map(|second| Some(Timestamp::from_second(second).unwrap()));
        for (oldest_unlocked, oldest_locked, expected) in [
            (first, second, first),
            (second, first, first),
            (first, None, first),
            (None, second, second),
            (None, None, None),
        ] {
            assert_eq!(JobFigures { oldest_unlocked, oldest_locked, ..JobFigures::default() }.oldest(), expected);
        }
    }

    #[test]
    fn each_state_has_a_value_of_its_own_and_so_has_other() {
        let mut values: ByState<JobState, usize> = ByState::default();
        for (at, (state, value)) in values.iter_mut().enumerate() {
            assert_eq!(state, JobState::ALL.get(at).copied());
            *value = at + 1;
        }
        *values.get_mut(None) += 100;
        let count = JobState::ALL.len();
        assert_eq!((*values.get(Some(JobState::Pending)), *values.get(None)), (1, count + 101));
        let listed: Vec<_> = values.iter().map(|(state, value)| (state, *value)).collect();
        assert_eq!((listed.len(), listed[count]), (count + 1, (None, count + 101)));
        assert!(values.map(|value| value * 2).iter().zip(listed).all(|((_, twice), (_, value))| *twice == value * 2));
    }

    #[test]
    fn labels_are_distinct() {
        let kinds: BTreeSet<_> = LockKind::ALL.into_iter().map(LockKind::label).collect();
        assert_eq!(kinds.len(), LockKind::ALL.len());
        assert!(
            LockKind::ALL.into_iter().enumerate().all(|(at, kind)| at == kind as usize && !kind.label().is_empty())
        );
        assert_eq!((state_label(Some(JobState::Failed)), state_label::<JobState>(None)), ("failed", "other"));
    }

    #[test]
    fn figures_are_found_by_what_they_are_of() {
        let at = |second| Some(Timestamp::from_second(second).unwrap());
        let mut summary = Summary { paused: [at(1), at(2), at(3)], ..Summary::default() };
        for (count, locks) in (1..).zip(&mut summary.locks) {
            locks.count = count;
        }
        for (count, faults) in (1..).zip(&mut summary.faults) {
            faults.count = count;
        }
        summary.access_small.get_mut(None).count = 1;
        summary.access_large.get_mut(None).count = 2;
        assert!(LockKind::ALL.iter().zip(1..).all(|(kind, count)| summary.locks(*kind).count == count));
        assert!(Fault::ALL.iter().zip(1..).all(|(fault, count)| summary.faults(*fault).count == count));
        assert!(QueueName::ALL.iter().zip(1..).all(|(queue, second)| summary.paused(*queue) == at(second)));
        assert!(AccessQueue::ALL.iter().zip(1..).all(|(queue, count)| summary.access(*queue).get(None).count == count));
    }
}
