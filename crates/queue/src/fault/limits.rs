//! From when on something counts as a fault.

use std::time::Duration;

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

/// From when on something counts as a fault. The defaults are long enough for an object of 500 GB and a batch of tens
/// of thousands of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a fault by shape must last: the daemons change a job in separate writes. 2 s by default.
    pub grace: Duration,
    /// How old a job, batch or request without any child must be. 5 s by default.
    pub creation: Duration,
    /// How long a clean-up may leave behind references to deleted jobs, and its batch without UUID. 5 min by default.
    pub clean_up: Duration,
    /// How long an item may stay locked that nobody works on: held, failed or final. 30 s by default.
    pub lock_at_rest: Duration,
    /// How long a job may be locked, by its state: 10 min in Pending, 1 h in Estimating and Notify, 2 h in Recording,
    /// 48 h in Provisioning, where a job is kept locked while it waits for space, and 24 h elsewhere by default.
    pub job_lock: StateLimits<JobState>,
    /// How long a batch may be locked, by its state: 12 h in Processing, while its jobs are created, and 1 h elsewhere
    /// by default.
    pub batch_lock: StateLimits<BatchState>,
    /// How long an access request may be locked, by its state: 24 h in Processing and 10 min elsewhere by default.
    pub request_lock: StateLimits<AccessState>,
    /// How long an object may be locked while it is recorded, or a local id while it is minted. 2 h by default.
    pub object_lock: Duration,
    /// How old the lock of an object must be that no job in Storing has. 1 min by default.
    pub storage_lock: Duration,
    /// How long a batch may be Pending or due for its report, and unlocked: ten polls, 5 min by default.
    pub report: Duration,
    /// How long jobs may wait in a state of which no daemon takes any: ten polls, 5 min by default.
    pub no_daemon: Duration,
    /// How long a batch may be locked in Processing. 4 h by default.
    pub batch_processing: Duration,
    /// How long nothing may leave a state whose oldest job is as old: 1 h in Pending, Estimating and Notify, 2 h in
    /// Recording, 6 h in Provisioning, and 24 h elsewhere by default.
    pub stuck: StateLimits<JobState>,
    /// How long jobs may stay Pending in a held collection, or Held in a free one: ten polls, 5 min by default.
    pub held_backlog: Duration,
    /// How long a queue may be paused or a collection held. A day by default.
    pub pause: Duration,
    /// How many children a folder may have. Below 45,000 by default.
    pub folder_children: u64,
    /// How often it makes sense to resume a job. 3 by default.
    pub retries: u32,
}

impl Default for Limits {
    fn default() -> Self {
        let (minutes, hours) = (Duration::from_mins, Duration::from_hours);
        Self {
            grace: Duration::from_secs(2),
            creation: Duration::from_secs(5),
            clean_up: minutes(5),
            lock_at_rest: Duration::from_secs(30),
            job_lock: StateLimits::new(
                hours(24),
                &[
                    (JobState::Pending, minutes(10)),
                    (JobState::Estimating, hours(1)),
                    (JobState::Provisioning, hours(48)),
                    (JobState::Recording, hours(2)),
                    (JobState::Notify, hours(1)),
                ],
            ),
            batch_lock: StateLimits::new(hours(1), &[(BatchState::Processing, hours(12))]),
            request_lock: StateLimits::new(minutes(10), &[(AccessState::Processing, hours(24))]),
            object_lock: hours(2),
            storage_lock: minutes(1),
            report: minutes(5),
            no_daemon: minutes(5),
            batch_processing: hours(4),
            stuck: StateLimits::new(
                hours(24),
                &[
                    (JobState::Pending, hours(1)),
                    (JobState::Estimating, hours(1)),
                    (JobState::Provisioning, hours(6)),
                    (JobState::Recording, hours(2)),
                    (JobState::Notify, hours(1)),
                ],
            ),
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
