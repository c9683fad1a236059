//! Who was granted how much of the working storage: `/queuekeeper/space/VOLUME`, written by version, so that two
//! processes never grant the same byte.
//!
//! A grant is written in the `multi` that moves its job to Downloading. It ends when its job has ended, or failed: what
//! a failed job has on the disk is used like everything else there. Where there are several volumes, a failed job with
//! files keeps a grant of no bytes, which says on which of them they are.

mod locked;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::record::GrantsNote;
use queuekeeper_queue::{Queue, RequestFailure};
use uuid::Uuid;

use crate::progress;
use crate::space::{self, Round, Rules};
use crate::step::StepError;

/// The grants as they were read or written last.
#[derive(Debug, Default)]
struct Known {
    granted: GrantsNote,
    /// How many bytes the jobs have written that are being downloaded, by all processes.
    downloads: HashMap<JobId, u64>,
    /// The version of the znode; `None` where there is none.
    version: Option<i32>,
    is_read: bool,
}

/// All that becomes free is reserved, as was decided last.
#[derive(Debug)]
struct Reservation {
    /// The job for which it is.
    job: JobId,
    /// Those that come before it, and were given room in the same round.
    before: BTreeSet<JobId>,
}

impl Reservation {
    fn of(round: &Round<JobId>) -> Option<Self> {
        let mut waiting = round.waiting.iter();
        let (job, _) = waiting.find(|(_, wait)| matches!(wait, space::Wait::Reserving { .. }))?;
        Some(Self { job: *job, before: round.passed.iter().map(|(job, _)| *job).collect() })
    }

    fn keeps_back(&self, job: JobId) -> bool {
        job != self.job && !self.before.contains(&job)
    }
}

/// The grants of a volume, as a process sees them.
#[derive(Debug)]
pub struct Grants {
    known: tokio::sync::Mutex<Known>,
    /// The jobs of ours that have ended since the last write, and those that have failed and keep a grant of no bytes.
    ended: Mutex<BTreeSet<JobId>>,
    failed: Mutex<BTreeSet<JobId>>,
    /// How many bytes the jobs of ours have written.
    written: Mutex<HashMap<JobId, Arc<AtomicU64>>>,
    /// How many bytes the jobs have that were downloaded, by any process.
    downloaded: Mutex<HashMap<JobId, u64>>,
    reserved: Mutex<Option<Reservation>>,
    path: Path,
    rules: Rules,
}

/// The grants while nothing else of this process changes them.
#[derive(Debug)]
pub struct LockedGrants<'a> {
    of: &'a Grants,
    known: tokio::sync::MutexGuard<'a, Known>,
    next: Option<(GrantsNote, BTreeSet<JobId>)>,
}

/// What becomes of a job that needs more than it was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// It may go on.
    Granted,
    /// There is too little room.
    Waits,
    /// There is too little, no other job frees any, and it is the youngest: it gives up what it has.
    GivesUp(space::Failure),
}

/// A job that wants room.
#[derive(Clone, Copy, Debug)]
pub struct GrantRequest {
    /// The job.
    pub job: JobId,
    /// How many bytes it needs, if that is known.
    pub bytes: Option<u64>,
    /// Its priority.
    pub priority: u8,
    /// For how long it is in its state.
    pub age: Duration,
}

impl Grants {
    /// The grants of a volume.
    ///
    /// # Panics
    /// Never: a UUID is a name that a znode can have.
    #[must_use]
    pub fn new(volume: Uuid, rules: Rules) -> Self {
        let path = Path::space(&volume.to_string()).expect("a UUID is the name of a znode");
        let (known, ended, failed, written, downloaded) = Default::default();
        Self { known, ended, failed, written, downloaded, reserved: Mutex::default(), path, rules }
    }

    /// Takes them for a change, as they are in ZooKeeper.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn lock(&self, queue: &Queue) -> Result<LockedGrants<'_>, StepError> {
        let mut known = self.known.lock().await;
        if !known.is_read {
            known.read(queue, &self.path).await?;
        }
        Ok(LockedGrants { of: self, known, next: None })
    }

    /// Has them read again before the next change: another process may have changed them, which nothing reports.
    pub async fn refresh(&self) {
        self.known.lock().await.is_read = false;
    }

    /// The counter of what a job has written to the disk.
    #[must_use]
    pub fn written(&self, job: JobId) -> Arc<AtomicU64> {
        Arc::clone(self.written.lock().entry(job).or_default())
    }

    /// These jobs were downloaded, by any process: so many bytes each.
    pub fn set_downloaded(&self, jobs: HashMap<JobId, u64>) {
        *self.downloaded.lock() = jobs;
    }

    /// A job has ended: its grant goes with the next write.
    pub fn ended(&self, job: JobId) {
        self.written.lock().remove(&job);
        self.failed.lock().remove(&job);
        self.ended.lock().insert(job);
    }

    /// A job has failed, and its files stay: with the next write its grant says no more than where they are.
    pub fn failed(&self, job: JobId) {
        self.written.lock().remove(&job);
        self.failed.lock().insert(job);
    }

    /// The grants of these jobs are written as they are to be.
    fn forget(&self, jobs: &BTreeSet<JobId>) {
        self.ended.lock().retain(|job| !jobs.contains(job));
        self.failed.lock().retain(|job| !jobs.contains(job));
    }

    /// A job has not ended: an operator resumed it after it had failed.
    fn goes_on(&self, job: JobId) {
        self.ended.lock().remove(&job);
        self.failed.lock().remove(&job);
    }
}

impl Known {
    async fn read(&mut self, queue: &Queue, path: &Path) -> Result<(), StepError> {
        (self.granted, self.version) = match queue.within(queue.client().get_data(&path.to_string())).await {
            Ok((data, stat)) => {
                let granted = GrantsNote::decode(&data);
                let wrong = |error| StepError::temporary(format_args!("{path} is not a list of grants: {error}"));
                (granted.map_err(wrong)?, Some(stat.version))
            }
            Err(RequestFailure::Client(zookeeper_client::Error::NoNode)) => (GrantsNote::default(), None),
            Err(cause) => return Err(StepError::temporary(format_args!("cannot read {path}: {cause}"))),
        };
        let wrong = |cause| StepError::temporary(format_args!("cannot read the progress of downloads: {cause}"));
        self.downloads = queue.within(progress::written(queue.client())).await.map_err(wrong)?;
        self.is_read = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
