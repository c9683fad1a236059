//! The faults of the image. Only items that a change touches are evaluated again.
//!
//! Applying a read only records the item that it touched. Items are evaluated when a whole batch of reads has been
//! applied, so that most changes of several writes are never evaluated halfway.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashMap, HashSet};

use super::Image;
use super::change::{Change, ObservedState};
use super::row::{JobRow, UNKNOWN_MS};
use crate::mirror::faults::{RawFinding, Suspects};
use crate::mirror::read::Found;
use crate::mirror::summary::ByState;
use queuekeeper_queue::fault::{Fault, FaultFinding, Limits};
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::{AccessQueue, JobNode, LockFolder, OwnNode, Path, QueueName};
use queuekeeper_queue::state::{JobState, State};

mod facts;
mod standing;
mod touched;
mod undated;
mod view;

pub(in crate::mirror) use undated::Undated;
pub(in crate::mirror) use view::FaultQuery;

use self::touched::Touched;

/// Suspected faults, and the items to evaluate again.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Whether changes are recorded. A walk fills the image first and evaluates all of it once, at its end.
    is_live: bool,
    touched: Touched,
    pub(super) suspects: Suspects,
    /// Whether a batch became one that its jobs can be loaded with, or ceased to be.
    is_regrouped: bool,
    /// Whether the queue was paused, and whether a store was held, when the states were evaluated last.
    was_stopped: (bool, bool),
    /// States that a job has left since they were evaluated.
    left: ByState<JobState, bool>,
    /// When a job last left each state, in milliseconds by the servers' clock.
    left_ms: ByState<JobState, Option<i64>>,
    /// The lock name of the object of each job in Storing, as a hash: there may be many of them.
    storing: HashMap<JobId, u64>,
    /// How many jobs in Storing have it.
    stored: HashMap<u64, u32>,
    /// The locks of objects being stored.
    storage_locks: HashMap<u64, Path>,
    hasher: DefaultHashBuilder,
}

/// What of a batch matters to others.
type BatchKey = (bool, bool, Arc<str>);

impl Image {
    /// Applies what a read found at a path, and records the items to evaluate again.
    pub(in crate::mirror) fn apply(&mut self, path: Path, found: &Found) -> Change {
        // Nearly all changes are of jobs and their entries.
        if self.faults.is_live {
            if let Path::Job(job) = path {
                return self.apply_live(job, None, found);
            }
            if let Path::JobNode(job, node) = path {
                return self.apply_live(job, Some(node), found);
            }
            if let Path::Entry(folder, entry) = &path {
                if !self.jobs.apply_entry(folder, *entry, found.is_present()) {
                    return Change::Nothing;
                }
                self.faults.touched.insert_job(entry.job);
                return Change::Quiet;
            }
            return self.apply_beside(path, found);
        }
        self.notes.note(&path, found);
        self.apply_found(path, found)
    }

    fn apply_live(&mut self, job: JobId, node: Option<JobNode>, found: &Found) -> Change {
        let change = self.apply_to_job(job, node, found);
        if change != Change::Nothing {
            self.faults.touched.insert_job(job);
        }
        if let Change::Job { from: ObservedState::In(state), .. }
        | Change::OtherJob { from: ObservedState::In(state), .. } = change
        {
            *self.faults.left.get_mut(Some(state)) = true;
        }
        change
    }

    fn apply_beside(&mut self, path: Path, found: &Found) -> Change {
        self.notes.note(&path, found);
        let batch = match &path {
            Path::Batch(batch) | Path::BatchNode(batch, _) => Some(*batch),
            _ => None,
        };
        let before = batch.map(|batch| self.batch_sight(batch));
        // The note is gone with the job's entry, and named it.
        self.touch_last(&path);
        let touched = path.clone();
        let change = match batch {
            Some(batch) => self.apply_to_batch(batch, path, found),
            None => self.apply_found(path, found),
        };
        if change != Change::Nothing {
            self.touch(touched);
        }
        if let (Some(batch), Some(before)) = (batch, before) {
            let after = self.batch_sight(batch);
            if before != after {
                self.regroup(batch, before, after);
            }
        }
        change
    }

    /// Records the last job of a batch whose jobs are being created: whether it lacks an entry depends on that.
    fn touch_last(&mut self, path: &Path) {
        if let Some(OwnNode::Expansion(batch)) = path.own_node()
            && let Some(job) = self.own.expansion(batch).and_then(|expansion| expansion.last)
        {
            self.faults.touched.insert_job(job);
        }
    }

    fn batch_sight(&self, batch: BatchId) -> BatchKey {
        let entry = self.batches.get(batch);
        let uuid = entry.map(|entry| entry.uuid.clone()).unwrap_or_default();
        (entry.is_some_and(|entry| !entry.item.nodes.is_empty()), self.is_acquired(batch), uuid)
    }

    fn regroup(&mut self, batch: BatchId, before: BatchKey, after: BatchKey) {
        self.faults.is_regrouped |= before.1 != after.1;
        let named = [before.2, after.2].into_iter().filter(|uuid| !uuid.is_empty());
        self.faults.touched.extend(named.map(|uuid| Path::BatchUuid((*uuid).into())));
        self.faults.touched.extend(self.uuids.of(batch).map(|uuid| Path::BatchUuid(uuid.into())));
    }

    /// Records the items to evaluate again after a change of a znode.
    fn touch(&mut self, path: Path) {
        let touched = &mut self.faults.touched;
        match path {
            Path::Job(job) | Path::JobNode(job, _) => touched.insert_job(job),
            Path::Entry(_, entry) => touched.insert_job(entry.job),
            Path::Reference(batch, _, job) => {
                touched.insert_job(job);
                touched.insert(Path::Batch(batch));
            }
            Path::Batch(batch) | Path::BatchNode(batch, _) | Path::BatchOutcome(batch, _) => {
                touched.insert(Path::Batch(batch));
            }
            Path::Request(queue, request) | Path::RequestNode(queue, request, _) => {
                touched.insert(Path::Request(queue, request));
            }
            Path::QueueLock(QueueName::Ingest) => {
                // No report is due while all daemons are stopped.
                touched.extend(self.batches.iter().map(|(batch, _)| Path::Batch(batch)));
                touched.insert(path);
            }
            Path::BatchUuid(ref uuid) => {
                touched.extend(self.batches.named(uuid).map(Path::Batch));
                touched.insert(path);
            }
            Path::QueueLock(_) | Path::NamedLock(..) | Path::PublishedLocalId(_) => touched.insert(path),
            Path::Unexpected(ref text) => {
                if let Some(Path::Reference(batch, ..)) = path.parent() {
                    touched.insert(Path::Batch(batch));
                }
                // A batch's UUID may lead to it by such a name.
                let name = text.strip_prefix("/batches/").unwrap_or_default();
                touched.extend(self.uuids.to_misnamed(name).map(|uuid| Path::BatchUuid(uuid.into())));
                touched.insert(path);
            }
            // The number of their children is looked at with each change.
            Path::Root
            | Path::BatchUuids
            | Path::Batches
            | Path::Jobs
            | Path::JobStates
            | Path::StateFolder(_)
            | Path::Access
            | Path::AccessQueue(_)
            | Path::Locks
            | Path::QueueLocks
            | Path::LockFolder(_)
            | Path::PublishedLocalIds
            | Path::Foreign => {}
            Path::Own(_) => match path.own_node() {
                Some(OwnNode::StoreHold(_)) => touched.insert(path),
                Some(OwnNode::Expansion(batch)) => {
                    touched.insert(Path::Batch(batch));
                    self.touch_last(&path);
                }
                // Which batches it waits for may be others now.
                Some(OwnNode::Daemon(_)) => touched.extend(self.own.expanding().map(Path::Batch)),
                _ => {}
            },
        }
    }

    /// Evaluates up to `most` of the touched items, at an instant by the servers' clock. Returns whether there are
    /// more.
    pub(in crate::mirror) fn evaluate(&mut self, now_ms: i64, limits: &Limits, most: usize) -> bool {
        let mut faults = std::mem::take(&mut self.faults);
        if std::mem::take(&mut faults.is_regrouped) {
            faults.touched.extend(faults.suspects.suspected(Fault::UnloadableJob).cloned());
        }
        for _ in 0..most {
            let Some(item) = faults.touched.next() else { break };
            self.evaluate_item(&mut faults, &item, now_ms, limits, false);
        }
        let has_more = !faults.touched.is_empty();
        if !has_more {
            let crossed = std::mem::take(&mut self.jobs.figures.crossed);
            self.evaluate_standing(&mut faults, &crossed, now_ms, limits, false);
        }
        self.faults = faults;
        has_more
    }

    /// Evaluates a finished image. Faults that counted in the old image at `until_ms`, until when it was known to be
    /// current, continue to count; all others must last for their grace period again.
    pub(in crate::mirror) fn evaluate_all(&mut self, old: Option<&Self>, until_ms: i64, now_ms: i64, limits: &Limits) {
        let mut faults = Faults { is_live: true, ..Faults::default() };
        if let Some(old) = old {
            faults.suspects = old.faults.suspects.counting(until_ms);
            faults.left_ms = old.faults.left_ms.clone();
        }
        let jobs = self.jobs.slice(0..self.jobs.slots()).map(super::row::JobRow::id).chain(self.jobs.odd());
        let batches = self.batches.iter().map(|(batch, _)| Path::Batch(batch));
        let requests = AccessQueue::ALL
            .iter()
            .flat_map(|queue| self.access.queue(*queue).iter().map(|(request, _)| Path::Request(*queue, request)));
        let locks = self.locks.iter().map(|(_, path, _)| path.clone());
        let uuids = self.uuids.iter().map(|uuid| Path::BatchUuid(uuid.into()));
        let names = self.unexpected.iter().map(|path| Path::Unexpected(path.clone()));
        let holds = self.own.holds().filter_map(|(store, _)| Path::store_hold(store));
        let before: Vec<_> = faults.suspects.all().cloned().collect();
        let items = jobs.map(Path::Job).chain(batches).chain(requests).chain(locks).chain(uuids).chain(names);
        let items = items.chain(holds).chain(before);
        for item in items {
            self.evaluate_item(&mut faults, &item, now_ms, limits, true);
        }
        // Storage locks again: the job that stores the object may have been evaluated after its lock.
        let locks: Vec<_> = faults.storage_locks.values().cloned().collect();
        for item in locks {
            self.evaluate_item(&mut faults, &item, now_ms, limits, true);
        }
        let crossed: HashSet<_> = self.jobs.figures.collections.keys().copied().collect();
        self.jobs.figures.crossed.clear();
        self.infer_left(&mut faults);
        self.evaluate_standing(&mut faults, &crossed, now_ms, limits, true);
        faults.touched.clear();
        self.faults = faults;
    }

    fn evaluate_item(&self, faults: &mut Faults, item: &Path, now_ms: i64, limits: &Limits, at_first_sight: bool) {
        let mut found: Vec<RawFinding> = Vec::new();
        let mut sink = |finding: FaultFinding<'_>| found.push(finding.into());
        if let Path::Job(job) = item {
            let row = self.jobs.get(*job);
            Self::note_storing(faults, *job, row);
            self.job_findings(*job, row, limits, &mut sink);
        } else {
            self.note_storage_lock(faults, item);
            self.findings(faults, item, limits, &mut sink);
        }
        faults.suspects.note(item, &found, now_ms, at_first_sight);
    }

    /// Records whether the storage lock of an object exists.
    fn note_storage_lock(&self, faults: &mut Faults, item: &Path) {
        let Path::NamedLock(LockFolder::Storage, name) = item else { return };
        let hash = faults.hasher.hash_one(&**name);
        if self.locks.has(item) {
            faults.storage_locks.insert(hash, item.clone());
        } else {
            faults.storage_locks.remove(&hash);
        }
    }

    /// Records the object of a job in Storing, and that its lock has to be evaluated.
    fn note_storing(faults: &mut Faults, job: JobId, row: Option<JobRow<'_>>) {
        let name = row.and_then(Self::stored_name);
        let new = name.map(|name| faults.hasher.hash_one(&*name));
        let old = match new {
            Some(hash) => faults.storing.insert(job, hash),
            None => faults.storing.remove(&job),
        };
        if old == new {
            return;
        }
        if let Some(old) = old
            && let Some(jobs) = faults.stored.get_mut(&old)
        {
            *jobs -= 1;
            if *jobs == 0 {
                faults.stored.remove(&old);
            }
            shrink(&mut faults.stored);
            shrink(&mut faults.storing);
        }
        if let Some(new) = new {
            *faults.stored.entry(new).or_default() += 1;
        }
        let locks = [old, new].into_iter().flatten().filter_map(|hash| faults.storage_locks.get(&hash));
        faults.touched.extend(locks.cloned());
    }

    fn infer_left(&self, faults: &mut Faults) {
        for state in JobState::ALL.iter().copied() {
            let known = faults.left_ms.get_mut(Some(state));
            // A failed job may have left any of them.
            let left = self.last_passed(state).max(self.last_entered(JobState::Failed));
            *known = (*known).max(left);
        }
    }

    /// When a job last went on from a state, as far as the jobs themselves show: a job that entered a later state has.
    pub(super) fn last_passed(&self, state: JobState) -> Option<i64> {
        let later = state.steps_to(JobState::Completed);
        later.into_iter().filter_map(|later| self.last_entered(later)).max()
    }

    pub(super) fn last_entered(&self, state: JobState) -> Option<i64> {
        let entered = &self.jobs.figures.states.get(Some(state)).entered;
        entered.iter().filter_map(crate::mirror::bands::Bands::last).filter(|at| *at != UNKNOWN_MS).max()
    }

    /// Moves the marks of all suspicions to an instant by the servers' clock.
    pub(in crate::mirror) fn set_fault_mark(&mut self, now_ms: i64) {
        self.faults.suspects.set_mark(now_ms);
    }
}

/// Gives memory back when a table that was large holds little any more: half the queue may wait for the storage service
/// once, and never again.
fn shrink<K: Eq + Hash, V>(table: &mut HashMap<K, V>) {
    const SPARSE: usize = 8;
    if table.len() < table.capacity() / SPARSE {
        table.shrink_to(table.len() * 2);
    }
}
