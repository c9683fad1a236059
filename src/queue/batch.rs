//! A batch as its znodes say it, and changes of its state.

use jiff::Timestamp;
use zookeeper_client::Stat;

use super::error::{ConflictKind, Error};
use super::handle::{Found, Queue, Read, instant};
use super::id::BatchId;
use super::lock::{Lock, Unlocked};
use super::path::{BatchNode, Path};
use super::record::{self, Decoded, ItemStatus, Malformed, Submission};
use super::state::{BatchState, Outcome, State};
use super::transaction::Transaction;

mod report;

pub use report::BatchReport;

/// A batch as one request found it.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Its id.
    pub id: BatchId,
    /// The data of its submission, if it has one.
    pub submission: Option<Vec<u8>>,
    /// How many jobs each outcome's folder refers to, in the order of [`Outcome::ALL`]; `None` where there is no such
    /// folder.
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
}

/// A change of a batch's or an access request's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemChange<S> {
    /// `None` for the next state on the success path.
    pub(super) to: Option<S>,
    pub(super) message: String,
    pub(super) operator: bool,
}

impl<S: State> ItemChange<S> {
    /// To the next state on the success path.
    #[must_use]
    pub fn success() -> Self {
        Self { to: None, message: String::new(), operator: false }
    }

    /// To a named state.
    #[must_use]
    pub fn to(state: S) -> Self {
        Self { to: Some(state), message: String::new(), operator: false }
    }

    /// Says so in the status.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Allows what only an operator may order.
    #[must_use]
    pub fn by_operator(mut self) -> Self {
        self.operator = true;
        self
    }

    pub(super) fn target(&self, item: &Path, from: S) -> Result<S, Error> {
        let to = self.to.or(from.success());
        let operator_may = to.is_some_and(|to| from.is_admin(to));
        match to {
            Some(to) if from.may_become(to) && (self.operator || !operator_may) => Ok(to),
            to => {
                let to = to.map_or_else(|| "the next state".to_owned(), |to| to.to_string());
                Err(Error::Transition { item: item.clone(), from: from.to_string(), to, operator_may })
            }
        }
    }
}

/// A change of a batch's or an access request's state that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemChanged<S> {
    /// The state that it left.
    pub from: S,
    /// The state that it entered.
    pub to: S,
    /// The version of its status.
    pub version: i32,
}

/// Which batch a change is meant for: made from a [`BatchId`], the batch in whatever state it is; from a [`Batch`], only
/// in the version that was seen; from a [`LockedBatch`], under the lock that is held.
#[derive(Clone, Debug)]
pub struct BatchTarget {
    pub(super) id: BatchId,
    pub(super) lock: Option<Lock>,
    pub(super) version: Option<i32>,
}

impl BatchTarget {
    /// Lets the change apply only to this version of the batch's status, the one its orderer saw.
    #[must_use]
    pub fn at_version(mut self, version: i32) -> Self {
        self.version = Some(version);
        self
    }

    /// Confirms that the batch is still what its orderer saw, and still ours where we hold it.
    pub(super) fn check(&self, batch: &Batch) -> Result<(), Error> {
        if let Some(lock) = &self.lock {
            lock.confirm(batch.lock.as_ref())?;
        } else if let Some(lock) = batch.lock() {
            return Err(Error::conflict(lock.path, ConflictKind::Locked { session: lock.session, since: lock.since }));
        }
        let path = Path::BatchNode(self.id, BatchNode::Status);
        check_version(path, self.version, batch.status.as_ref().map(|(_, stat)| stat))
    }
}

impl From<BatchId> for BatchTarget {
    fn from(id: BatchId) -> Self {
        Self { id, lock: None, version: None }
    }
}

impl From<&Batch> for BatchTarget {
    fn from(batch: &Batch) -> Self {
        Self { id: batch.id, lock: None, version: batch.version() }
    }
}

impl From<&LockedBatch> for BatchTarget {
    fn from(locked: &LockedBatch) -> Self {
        Self { id: locked.batch.id, lock: Some(locked.lock.clone()), version: Some(locked.version) }
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
    pub(super) const READS: usize = 6 + Outcome::ALL.len();

    pub(super) fn reads(id: BatchId) -> Vec<Read> {
        let nodes =
            [BatchNode::Submission, BatchNode::Status, BatchNode::StatusReport, BatchNode::States, BatchNode::Lock];
        let nodes = nodes.into_iter().map(|node| Path::BatchNode(id, node));
        let folders = Outcome::ALL.into_iter().map(|outcome| Path::BatchOutcome(id, outcome));
        std::iter::once(Path::Batch(id)).chain(nodes).chain(folders).map(Read::Data).collect()
    }

    /// Takes what [`Self::reads`] found; `None` where there is no such batch.
    pub(super) fn from_found(id: BatchId, found: impl IntoIterator<Item = Found>) -> Option<Self> {
        let mut found = found.into_iter().map(Found::data);
        found.next()??;
        let mut next = || found.next().flatten();
        let (submission, status, report) = (next().map(|(data, _)| data), next(), next());
        let (states, lock) = (next().map(|(_, stat)| stat), next().map(|(_, stat)| stat));
        let references = Outcome::ALL.map(|_| next().map(|(_, stat)| stat.num_children.unsigned_abs()));
        Some(Self { id, submission, references, status, report, states, lock })
    }

    /// What its status says.
    #[must_use]
    pub fn status(&self) -> Decoded<ItemStatus<'_, BatchState>> {
        ItemStatus::decode(self.status.as_ref().map(|(data, _)| data.as_slice()).unwrap_or_default())
    }

    /// The state that its status names, in any spelling; `None` for one that we do not know, or none.
    #[must_use]
    pub fn state(&self) -> Option<BatchState> {
        self.status().value.status.state
    }

    /// The version of its status; `None` where it has none.
    #[must_use]
    pub fn version(&self) -> Option<i32> {
        self.status.as_ref().map(|(_, stat)| stat.version)
    }

    /// When it entered its state, by the server's clock; `None` where it has no status.
    #[must_use]
    pub fn entered(&self) -> Option<Timestamp> {
        self.status.as_ref().map(|(_, stat)| instant(stat.mtime))
    }

    /// What was submitted; empty where that cannot be read.
    #[must_use]
    pub fn submitted(&self) -> Decoded<Submission<'_>> {
        Submission::decode(self.submission.as_deref().unwrap_or_default())
    }

    /// Its lock, if anybody holds it.
    #[must_use]
    pub fn lock(&self) -> Option<Lock> {
        self.lock.as_ref().map(|stat| Lock::from_stat(Path::BatchNode(self.id, BatchNode::Lock), stat))
    }

    /// Whether it was acquired, which its `states` tells.
    #[must_use]
    pub fn is_acquired(&self) -> bool {
        self.states.is_some()
    }

    /// How many jobs one outcome's folder refers to; `None` where there is no such folder.
    #[must_use]
    pub fn references(&self, outcome: Outcome) -> Option<u32> {
        self.references[outcome as usize]
    }

    /// Whether all its jobs are done: it has had some, and none is left in `batch-processing`.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.references(Outcome::Processing) == Some(0)
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
        if Path::parse(&path.to_string()) != path {
            return Ok(None);
        }
        let Some((data, _)) = self.read_data(path.clone()).await?.data() else { return Ok(None) };
        record::bid(&data).map(Some).map_err(|malformed| Error::Decode { path, malformed })
    }

    /// Plans a change of a batch's state without doing it.
    ///
    /// Holding a batch makes an empty `states`, so that no daemon acquires it; releasing it removes that again, or none
    /// ever would. Deleting a batch means its jobs too: see [`Queue::plan_delete`].
    ///
    /// # Errors
    /// As [`Queue::change_batch`].
    pub async fn plan_batch_change(
        &self,
        target: impl Into<BatchTarget>,
        change: &ItemChange<BatchState>,
        now: Timestamp,
    ) -> Result<(Transaction, ItemChanged<BatchState>), Error> {
        let target = target.into();
        let batch = self.load_batch(target.id).await?;
        target.check(&batch)?;
        let from = batch.state_to_change()?;
        let to = change.target(&Path::Batch(batch.id), from)?;
        if to == BatchState::Deleted {
            let reason = "a batch is deleted together with its jobs".to_owned();
            return Err(Error::Invalid { path: Path::Batch(batch.id), reason });
        }
        let mut transaction = Transaction::new();
        target.open(&mut transaction);
        let version = batch.set_status(&mut transaction, to, &change.message, now);
        let states = Path::BatchNode(batch.id, BatchNode::States);
        match (from, to, &batch.states) {
            (BatchState::Pending, BatchState::Held | BatchState::Processing, None) => {
                transaction.create(states, Vec::new());
            }
            (BatchState::Held, BatchState::Pending, Some(stat)) if stat.num_children == 0 => {
                transaction.delete(states, None);
            }
            (_, _, _) => {}
        }
        target.close(&mut transaction);
        Ok((transaction, ItemChanged { from, to, version }))
    }

    /// Changes a batch's state, in one `multi`. A lock that we hold is kept.
    ///
    /// # Errors
    /// [`Error::Transition`] where the states forbid it, [`Error::Conflict`] where another holds the batch or changed
    /// it, or where our own lock is gone, [`Error::Missing`] and [`Error::Decode`] for a batch without a status that
    /// can be read, [`Error::Invalid`] for Deleted; else as [`Queue::commit`].
    pub async fn change_batch(
        &self,
        target: impl Into<BatchTarget>,
        change: &ItemChange<BatchState>,
        now: Timestamp,
    ) -> Result<ItemChanged<BatchState>, Error> {
        let (transaction, changed) = self.plan_batch_change(target, change, now).await?;
        self.commit(&transaction).await.map(|_| changed)
    }

    /// Changes the state of a batch that we hold, and keeps the lock.
    ///
    /// # Errors
    /// As [`Queue::change_batch`].
    pub async fn step_batch(
        &self,
        locked: &mut LockedBatch,
        change: &ItemChange<BatchState>,
        now: Timestamp,
    ) -> Result<ItemChanged<BatchState>, Error> {
        let changed = self.change_batch(&*locked, change, now).await?;
        (locked.state, locked.version) = (changed.to, changed.version);
        Ok(changed)
    }

    /// Changes the state of a batch that we hold and releases it, in the same `multi`.
    ///
    /// # Errors
    /// As [`Queue::change_batch`].
    pub async fn finish_batch(
        &self,
        locked: &LockedBatch,
        change: &ItemChange<BatchState>,
        now: Timestamp,
    ) -> Result<ItemChanged<BatchState>, Error> {
        let (mut transaction, changed) = self.plan_batch_change(locked, change, now).await?;
        transaction.delete(locked.lock.path.clone(), None);
        self.commit(&transaction).await.map(|_| changed)
    }

    /// Releases a batch that we hold, unchanged.
    ///
    /// # Errors
    /// As [`Queue::commit`].
    pub async fn unlock_batch(&self, locked: &LockedBatch) -> Result<Unlocked, Error> {
        let status = Path::BatchNode(locked.batch.id, BatchNode::Status);
        self.unlock_checked(&locked.lock, Some((status, locked.version))).await
    }
}

impl Batch {
    /// Adds the change of its status, and gives the version that this will have.
    pub(super) fn set_status(
        &self,
        transaction: &mut Transaction,
        to: BatchState,
        message: &str,
        now: Timestamp,
    ) -> i32 {
        let (old, version) = self.status.as_ref().map_or((&[][..], 0), |(data, stat)| (data, stat.version));
        let data = record::item_status(old, to, message, now);
        transaction.set(Path::BatchNode(self.id, BatchNode::Status), data, version);
        version.wrapping_add(1)
    }
}

impl BatchTarget {
    /// Takes the lock for the time of the transaction, or proves that it is still held.
    pub(super) fn open(&self, transaction: &mut Transaction) {
        match &self.lock {
            Some(lock) => transaction.check_exists(lock.path.clone()),
            None => transaction.create_ephemeral(Path::BatchNode(self.id, BatchNode::Lock)),
        };
    }

    pub(super) fn close(&self, transaction: &mut Transaction) {
        if self.lock.is_none() {
            transaction.delete(Path::BatchNode(self.id, BatchNode::Lock), None);
        }
    }
}
