//! From when on something counts as a fault.

use std::time::Duration;

use super::Fault;
use crate::state::{AccessState, BatchState, JobState, State};

/// A duration for each state, and one for states that we do not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateLimits<S> {
    limits: Box<[Duration]>,
    states: std::marker::PhantomData<S>,
}

impl<S: State> StateLimits<S> {
    /// These limits for these states, and `others` for all others and for states that we do not know.
    #[must_use]
    pub fn new(others: Duration, limits: &[(S, Duration)]) -> Self {
        let mut all = Self { limits: vec![others; S::ALL.len() + 1].into(), states: std::marker::PhantomData };
        for (state, limit) in limits {
            all.set(*state, *limit);
        }
        all
    }

    /// The limit that `of` gives for each state, and `unknown` for states that we do not know.
    #[must_use]
    pub fn of(unknown: Duration, of: impl Fn(S) -> Duration) -> Self {
        let limits = S::ALL.iter().map(|state| of(*state)).chain([unknown]).collect();
        Self { limits, states: std::marker::PhantomData }
    }

    /// The limit of a state; `None` is a state that we do not know.
    #[must_use]
    pub fn get(&self, state: Option<S>) -> Duration {
        self.limits[state.map_or(S::ALL.len(), State::index)]
    }

    /// Sets the limit of a state.
    pub fn set(&mut self, state: S, limit: Duration) {
        self.limits[state.index()] = limit;
    }
}

/// How long each condition may last before it counts as a fault. The defaults are in [`Limits::default`], and those by
/// state beside the states ([`JobState::default_lock_limit`], [`JobState::default_stuck_limit`]): they are long enough
/// for an object of 500 GB and a batch of tens of thousands of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a fault by shape must last: the daemons change a job in separate writes.
    pub grace: Duration,
    /// How old a job, batch or request without any child must be.
    pub creation: Duration,
    /// How long a cleanup may leave behind references to deleted jobs, and its batch without UUID.
    pub clean_up: Duration,
    /// How long an item that no daemon processes (held, failed or final) may stay locked.
    pub lock_at_rest: Duration,
    /// How long a job may be locked, by its state.
    pub job_lock: StateLimits<JobState>,
    /// How long a batch may be locked, by its state: longer in Processing, while its jobs are created.
    pub batch_lock: StateLimits<BatchState>,
    /// How long an access request may be locked, by its state.
    pub request_lock: StateLimits<AccessState>,
    /// How long an object may be locked while it is recorded, or a local id while it is minted.
    pub object_lock: Duration,
    /// How old the lock of an object must be that no job in Storing has.
    pub storage_lock: Duration,
    /// How long a batch may be Pending or due for its report, and unlocked: ten polls by default.
    pub report: Duration,
    /// How long jobs may wait in a state of which no daemon takes any: ten polls by default.
    pub no_daemon: Duration,
    /// How long a batch may be locked in Processing.
    pub batch_processing: Duration,
    /// How long nothing may leave a state whose oldest job is as old.
    pub stuck: StateLimits<JobState>,
    /// How long jobs may stay Pending in a held collection, or Held in a free one: ten polls by default.
    pub held_backlog: Duration,
    /// How long a queue may be paused, or a collection or a store held.
    pub pause: Duration,
    /// How many children a folder may have: fewer than a Java client can list.
    pub folder_children: u64,
    /// How often it makes sense to resume a job.
    pub retries: u32,
}

/// One of the limits in time, as it is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultLimit {
    /// The fault that counts from it on.
    pub fault: Fault,
    /// What it is about, where the fault has limits of several kinds.
    pub item: Option<&'static str>,
    /// The label of the state that it holds for; `None` for one that holds for every state.
    pub state: Option<&'static str>,
    /// The limit.
    pub limit: Duration,
}

impl Limits {
    /// Every limit in time after which an item counts as faulty. Those that only give the daemons time for their own
    /// writes ([`Limits::grace`], [`Limits::creation`], [`Limits::clean_up`]) are none of them.
    #[must_use]
    pub fn by_fault(&self) -> Vec<FaultLimit> {
        let plain = |fault, item, limit| FaultLimit { fault, item, state: None, limit };
        let stuck = JobState::ALL.iter().filter(|state| state.is_worked_on()).map(|state| FaultLimit {
            fault: Fault::StuckState,
            item: None,
            state: Some(state.label()),
            limit: self.stuck.get(Some(*state)),
        });
        let mut all: Vec<_> = stuck.collect();
        all.extend(leaked("job", &self.job_lock, State::is_worked_on));
        all.extend(leaked("batch", &self.batch_lock, may_be_locked));
        all.extend(leaked("request", &self.request_lock, State::is_worked_on));
        all.extend([
            plain(Fault::LeakedLock, Some("object"), self.object_lock),
            plain(Fault::LeakedStorageLock, None, self.storage_lock),
            plain(Fault::OverdueBatch, Some("report"), self.report),
            plain(Fault::OverdueBatch, Some("processing"), self.batch_processing),
            plain(Fault::ContradictingBatch, None, self.report),
            plain(Fault::NoDaemon, None, self.no_daemon),
            plain(Fault::HeldCollectionBacklog, None, self.held_backlog),
            plain(Fault::ForgottenPause, None, self.pause),
        ]);
        all
    }
}

/// Whether a daemon may have reason to lock a batch of that state: a Failed one is reported again, or cleaned up.
pub(super) fn may_be_locked(state: BatchState) -> bool {
    state.is_worked_on() || state == BatchState::Failed
}

fn leaked<S: State>(
    item: &'static str,
    limits: &StateLimits<S>,
    is_worked_on: impl Fn(S) -> bool,
) -> impl Iterator<Item = FaultLimit> {
    let states = S::ALL.iter().copied().filter(move |state| is_worked_on(*state));
    states.map(move |state| FaultLimit {
        fault: Fault::LeakedLock,
        item: Some(item),
        state: Some(state.label()),
        limit: limits.get(Some(state)),
    })
}

impl Default for Limits {
    fn default() -> Self {
        let (minutes, hours) = (Duration::from_mins, Duration::from_hours);
        Self {
            grace: Duration::from_secs(2),
            creation: Duration::from_secs(5),
            clean_up: minutes(5),
            lock_at_rest: Duration::from_secs(30),
            job_lock: StateLimits::of(hours(24), JobState::default_lock_limit),
            batch_lock: StateLimits::new(hours(1), &[(BatchState::Processing, hours(12))]),
            request_lock: StateLimits::new(minutes(10), &[(AccessState::Processing, hours(24))]),
            object_lock: hours(2),
            storage_lock: minutes(1),
            report: minutes(5),
            no_daemon: minutes(5),
            batch_processing: hours(4),
            stuck: StateLimits::of(hours(24), JobState::default_stuck_limit),
            held_backlog: minutes(5),
            pause: hours(24),
            folder_children: 45_000,
            retries: 3,
        }
    }
}

/// A duration in milliseconds, as instants are counted.
pub(super) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
