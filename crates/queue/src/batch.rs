//! A batch as its znodes say it, and changes of its state.

use jiff::Timestamp;
use zookeeper_client::Stat;

use super::error::{ConflictKind, Error};
use super::handle::{Found, Queue, Read, instant};
use super::id::{BatchId, JobId};
use super::item::PendingUpdate;
use super::lock::{ChangeTarget, Lock};
use super::path::{BatchNode, Path};
use super::record::{self, Decoded, ItemStatus, Malformed, Submission};
use super::state::{BatchState, JobOutcome, State};
use super::status::impl_status;

mod change;
mod plan;
mod report;

pub use plan::BatchPlan;
pub use report::{BatchReport, LastReport};

/// A batch as one request found it.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Its id.
    pub id: BatchId,
    /// The data of its submission, if it has one.
    pub submission: Option<Vec<u8>>,
    /// How many jobs each outcome's folder refers to, in the order of [`JobOutcome::ALL`]; `None` where there is no
    /// such folder.
    pub references: [Option<u32>; 4],
    status: Option<(Vec<u8>, Stat)>,
    report: Option<(Vec<u8>, Stat)>,
    states: Option<Stat>,
    lock: Option<Stat>,
}

/// A batch that we hold. The lock ends with our session, or through [`Queue::finish_batch`] or
/// [`Queue::unlock_batch`]; dropping this value does not release it.
#[derive(Clone, Debug)]
pub struct LockedBatch {
    /// The batch, as it was read when it was acquired.
    pub batch: Batch,
    /// Its state, that which it entered by being acquired.
    pub state: BatchState,
    /// The version of its status.
    pub version: i32,
    /// Its lock.
    pub lock: Lock,
    /// The data of its status; `None` where a change of ours was found to be done, and its outcome not read.
    pub(super) status: Option<Vec<u8>>,
    /// Whether an expansion was made with the acquisition.
    pub(super) is_expansion_new: bool,
    pub(super) pending: PendingUpdate<BatchState, BatchReport>,
}

/// Which batch a change is meant for: made from a [`BatchId`], the batch in whatever state it is; from a [`Batch`],
/// only in the version that was seen; from a [`LockedBatch`], under the lock that is held.
#[derive(Clone, Debug)]
pub struct BatchTarget {
    pub(super) id: BatchId,
    pub(super) lock: Option<Lock>,
    pub(super) version: Option<i32>,
    pub(super) jobs: Option<Vec<JobId>>,
}

impl BatchTarget {
    /// Lets the change apply only to this version of the batch's status, the one its caller saw.
    #[must_use]
    pub fn at_version(mut self, version: i32) -> Self {
        self.version = Some(version);
        self
    }

    /// Says which jobs name this batch as theirs, as a mirror of the tree knows. Deleting or purging a batch means also
    /// a job of it that no reference leads to, and without this list the batch of every job in the queue is read.
    #[must_use]
    pub fn with_jobs(mut self, jobs: impl Into<Vec<JobId>>) -> Self {
        self.jobs = Some(jobs.into());
        self
    }

    /// Confirms that the batch is still what its caller saw, and still ours where we hold it.
    pub(super) fn check(&self, batch: &Batch) -> Result<(), Error> {
        self.check_lock(batch.lock.as_ref())?;
        let path = Path::BatchNode(self.id, BatchNode::Status);
        check_version(path, self.version, batch.status.as_ref().map(|(_, stat)| stat))
    }
}

impl From<BatchId> for BatchTarget {
    fn from(id: BatchId) -> Self {
        Self { id, lock: None, version: None, jobs: None }
    }
}

impl From<&Batch> for BatchTarget {
    fn from(batch: &Batch) -> Self {
        Self { id: batch.id, lock: None, version: batch.version(), jobs: None }
    }
}

impl From<&LockedBatch> for BatchTarget {
    fn from(locked: &LockedBatch) -> Self {
        Self { lock: Some(locked.lock.clone()), version: Some(locked.version), ..Self::from(locked.batch.id) }
    }
}

/// Confirms that a status still has the version that was seen.
pub(super) fn check_version(path: Path, seen: Option<i32>, found: Option<&Stat>) -> Result<(), Error> {
    match (seen, found) {
        (_, None) => Err(Error::Missing(path)),
        (Some(seen), Some(stat)) if seen != stat.version => {
            let kind = ConflictKind::Changed { seen, found: stat.version, since: instant(stat.mtime) };
            Err(Error::conflict(path, kind))
        }
        (_, Some(_)) => Ok(()),
    }
}

impl Batch {
    /// How many reads a batch takes.
    pub(super) const READS: usize = 6 + JobOutcome::ALL.len();

    pub(super) fn reads(id: BatchId) -> Vec<Read> {
        let nodes =
            [BatchNode::Submission, BatchNode::Status, BatchNode::StatusReport, BatchNode::States, BatchNode::Lock];
        let nodes = nodes.into_iter().map(|node| Path::BatchNode(id, node));
        let folders = JobOutcome::ALL.into_iter().map(|outcome| Path::BatchOutcome(id, outcome));
        std::iter::once(Path::Batch(id)).chain(nodes).chain(folders).map(Read::Data).collect()
    }

    /// Takes what [`Self::reads`] found; `None` where there is no such batch.
    pub(super) fn from_found(id: BatchId, found: impl IntoIterator<Item = Found>) -> Option<Self> {
        let mut found = found.into_iter().map(Found::data);
        found.next()??;
        let mut next = || found.next().flatten();
        let (submission, status, report) = (next().map(|(data, _)| data), next(), next());
        let (acquired, lock) = (next().map(|(_, stat)| stat), next().map(|(_, stat)| stat));
        let references = JobOutcome::ALL.map(|_| next().map(|(_, stat)| stat.num_children.unsigned_abs()));
        Some(Self { id, submission, references, status, report, states: acquired, lock })
    }

    /// What was submitted; empty where that cannot be read.
    #[must_use]
    pub fn submitted(&self) -> Decoded<Submission<'_>> {
        Submission::decode(self.submission.as_deref().unwrap_or_default())
    }

    /// What its status says besides the state; empty where that cannot be read.
    #[must_use]
    pub fn message(&self) -> String {
        let data = self.status.as_ref().map(|(data, _)| data.as_slice()).unwrap_or_default();
        ItemStatus::<BatchState>::decode(data).value.message.into_owned()
    }

    /// Checks that the daemons can read its submission. They do without one.
    pub(super) fn check_submission(&self) -> Result<(), Malformed> {
        self.submission.as_deref().map_or(Ok(()), |data| record::refused(data, self.submitted().malformed))
    }

    /// Its lock, if it is held.
    #[must_use]
    pub fn lock(&self) -> Option<Lock> {
        self.lock.as_ref().map(|stat| Lock::from_stat(Path::BatchNode(self.id, BatchNode::Lock), stat))
    }

    /// Whether a child of its znode is there.
    pub(super) fn has(&self, node: BatchNode) -> bool {
        match node {
            BatchNode::Submission => self.submission.is_some(),
            BatchNode::Status => self.status.is_some(),
            BatchNode::StatusReport => self.report.is_some(),
            BatchNode::Lock => self.lock.is_some(),
            BatchNode::States => self.states.is_some(),
        }
    }

    /// Whether it was acquired, that is, has `states`.
    #[must_use]
    pub fn is_acquired(&self) -> bool {
        self.states.is_some()
    }

    /// How many children its `states` has.
    pub(super) fn folders(&self) -> i32 {
        self.states.map_or(0, |stat| stat.num_children)
    }

    /// How many jobs one outcome's folder refers to; `None` where there is no such folder.
    #[must_use]
    pub fn references(&self, outcome: JobOutcome) -> Option<u32> {
        self.references[outcome as usize]
    }

    /// Whether any folder refers to a job of it.
    #[must_use]
    pub fn has_jobs(&self) -> bool {
        self.references.iter().any(|jobs| *jobs > Some(0))
    }

    /// Whether all its jobs are done: it has had some, and none is left in `batch-processing`.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.references(JobOutcome::Processing) == Some(0)
    }

    /// The state that its status names, as the daemons must be able to read it.
    ///
    /// # Errors
    /// What is wrong with its status or submission.
    pub fn check_loadable(&self) -> Result<BatchState, Error> {
        let node = |node| Path::BatchNode(self.id, node);
        let decode = |path, malformed| Error::Decode { path, malformed };
        let submission = self.submission.as_deref().ok_or(Error::Missing(node(BatchNode::Submission)))?;
        record::object_form(submission).map_err(|malformed| decode(node(BatchNode::Submission), malformed))?;
        check_status(&node(BatchNode::Status), self.status.is_some(), self.status())
    }

    /// The state to change from: any spelling will do.
    pub(super) fn state_to_change(&self) -> Result<BatchState, Error> {
        readable_state(Path::BatchNode(self.id, BatchNode::Status), self.status())
    }
}

/// The state that a status names, as the daemons must be able to read it.
pub(super) fn check_status<S: State>(
    path: &Path,
    exists: bool,
    decoded: Decoded<ItemStatus<'_, S>>,
) -> Result<S, Error> {
    if !exists {
        return Err(Error::Missing(path.clone()));
    }
    let is_canonical = decoded.value.status.is_canonical() && decoded.malformed.is_none();
    let state = readable_state(path.clone(), decoded)?;
    let expected = "the name of a state as the daemons write it";
    let malformed = Malformed::Wrong { what: "status", expected };
    if is_canonical { Ok(state) } else { Err(Error::Decode { path: path.clone(), malformed }) }
}

/// The state that a status names in any spelling.
pub(super) fn readable_state<S: State>(path: Path, decoded: Decoded<ItemStatus<'_, S>>) -> Result<S, Error> {
    let unknown = Malformed::Wrong { what: "status", expected: "the name of a state" };
    decoded.value.status.state.ok_or(Error::Decode { path, malformed: decoded.malformed.unwrap_or(unknown) })
}

impl Queue {
    /// Reads a batch, in one round trip.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is no such batch, [`Error::Read`] where it cannot be read.
    pub async fn load_batch(&self, id: BatchId) -> Result<Batch, Error> {
        let found = self.read(&Batch::reads(id)).await?;
        Batch::from_found(id, found).ok_or(Error::Missing(Path::Batch(id)))
    }

    /// Finds a batch by the UUID that its submission carries; `None` where there is no entry of that name. That the
    /// batch exists is not checked.
    ///
    /// # Errors
    /// [`Error::Decode`] for an entry that names no batch; [`Error::Read`] where it cannot be read.
    pub async fn find_batch(&self, uuid: &str) -> Result<Option<BatchId>, Error> {
        let path = Path::BatchUuid(uuid.into());
        if !path.is_nameable() {
            return Ok(None);
        }
        let Some((data, _)) = self.read_data(path.clone()).await?.data() else { return Ok(None) };
        record::bid(&data).map(Some).map_err(|malformed| Error::Decode { path, malformed })
    }
}

impl_status!(Batch, BatchState);

#[cfg(test)]
mod tests;
