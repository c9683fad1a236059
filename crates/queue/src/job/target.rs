//! Which job a change is meant for, and what its caller knows of it.

use super::context::JobLocation;
use super::{Job, JobChange, JobChanged};
use crate::id::{BatchId, JobId, Priority};
use crate::lock::{Lock, PendingChange};
use crate::path::EntryName;
use crate::record::Retry;
use crate::state::JobState;

/// A job that we hold: as it was when we acquired it, and our lock. The lock ends with our session, or through
/// [`Queue::finish_job`](crate::Queue::finish_job) or [`Queue::unlock_job`](crate::Queue::unlock_job);
/// dropping this value does not release it.
#[derive(Clone, Debug)]
pub struct LockedJob {
    /// The job, as it was read last.
    pub job: Job,
    /// Its state.
    pub state: JobState,
    /// Its lock.
    pub lock: Lock,
    /// Its attempts so far, where it was given back to be tried again in this state.
    pub retry: Option<Retry>,
    /// Its queue entry.
    pub(crate) entry: EntryName,
    /// Whether a step of ours found all that is around it as it must be, and left it so: the next one needs no look.
    pub(super) is_regular: bool,
    pub(crate) pending: PendingChange<JobChange, JobChanged>,
}

/// Which job a change is meant for, and what its caller knows of it.
///
/// Made from a [`JobId`], a change applies to the job in whatever state it is; from a [`Job`], only to the state and
/// version that were seen there; from a [`LockedJob`], under the lock that is held.
#[derive(Clone, Debug)]
pub struct JobTarget {
    pub(crate) id: JobId,
    pub(super) lock: Option<Lock>,
    pub(super) version: Option<i32>,
    pub(super) hint: Option<LocationHint>,
    pub(super) collection: Option<String>,
}

/// Where a job is expected. A right hint saves a round trip; a wrong one does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocationHint {
    pub(super) batch: BatchId,
    pub(super) entry: EntryName,
}

impl JobTarget {
    /// The job of that id, in whatever state it is.
    #[must_use]
    pub fn new(id: JobId) -> Self {
        Self { id, lock: None, version: None, hint: None, collection: None }
    }

    /// Lets the change apply only to this version of the job's status, the one its caller saw.
    #[must_use]
    pub fn at_version(mut self, version: i32) -> Self {
        self.version = Some(version);
        self
    }

    /// Says where the job is expected, which saves a round trip.
    #[must_use]
    pub fn located_in(mut self, batch: BatchId, priority: Priority) -> Self {
        self.hint = Some(LocationHint { batch, entry: EntryName::of(priority, self.id) });
        self
    }

    /// Says which collection the job is thought to be of, by its mnemonic: a change that takes it to Pending then looks
    /// for a hold on that in the same round trip.
    #[must_use]
    pub fn in_collection(mut self, mnemonic: impl Into<String>) -> Self {
        self.collection = Some(mnemonic.into());
        self
    }
}

impl JobTarget {
    /// Where it is expected, if that is given.
    pub(crate) fn location(&self) -> Option<JobLocation> {
        self.hint.map(|LocationHint { batch, entry }| JobLocation { batch, old: entry, new: entry })
    }
}

impl From<JobId> for JobTarget {
    fn from(id: JobId) -> Self {
        Self::new(id)
    }
}

impl From<&Job> for JobTarget {
    fn from(job: &Job) -> Self {
        let collection = Some(job.configuration().value.collection.into_owned());
        Self { id: job.id, lock: None, version: job.version(), hint: LocationHint::of(job), collection }
    }
}

impl From<&LockedJob> for JobTarget {
    fn from(locked: &LockedJob) -> Self {
        let mut target = Self::from(&locked.job);
        target.lock = Some(locked.lock.clone());
        if let Some(hint) = &mut target.hint {
            hint.entry = locked.entry;
        }
        target
    }
}

impl LocationHint {
    /// Where a job is by its own znodes; `None` where they do not show it.
    fn of(job: &Job) -> Option<Self> {
        Some(Self { batch: job.batch().ok()?, entry: EntryName::of(job.priority().ok()?, job.id) })
    }
}

impl LockedJob {
    /// One that was just locked, by an entry of the folder of `state`.
    pub(crate) fn new(job: Job, state: JobState, entry: EntryName, lock: Lock, retry: Option<Retry>) -> Self {
        Self { job, state, lock, retry, entry, is_regular: false, pending: PendingChange::default() }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.job.id
    }
}
