//! The in-memory image of the tree.
//!
//! [`Image::apply`] takes what a read found at a path and brings rows, indexes and figures up to date; it is the only
//! way in, for the walk as for a change.

mod batches;
mod change;
mod closed;
mod columns;
mod compare;
mod failures;
mod faults;
mod figures;
mod find;
mod item;
mod job_index;
mod jobs;
mod lists;
mod locks;
mod notes;
mod order;
mod own;
mod past;
mod requests;
mod row;
mod situation;
mod summarize;
mod tally;
#[cfg(test)]
mod tests;
mod unreadable;
mod uuids;
mod view;
mod watched;

use std::collections::BTreeSet;

use hashbrown::HashSet;

pub(super) use change::{Change, JobEnd, ObservedState};
pub(super) use faults::{FaultQuery, Undated};
pub(super) use figures::age_marks;
pub(super) use find::TextMatches;
#[cfg(test)]
pub(crate) use own::EXCHANGED_TOGETHER;
pub use own::{Grant, Granted, Process};
pub use row::LockStat;
pub(super) use unreadable::NAMED;
pub use view::{Batch, Job, JobStanding, Lock, Request};

use self::batches::Batches;
use self::faults::Faults;
use self::jobs::Jobs;
use self::locks::Locks;
use self::notes::Notes;
use self::own::Own;
use self::requests::Access;
use self::uuids::Uuids;
use self::watched::Watched;
use super::read::Found;
use super::summary::LockKind;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::{BatchNode, Path};
use queuekeeper_queue::state::BatchState;

/// The whole queue as it was read.
#[derive(Debug, Default)]
pub(super) struct Image {
    /// By itself, since tasks that hold an image would grow by it.
    jobs: Box<Jobs>,
    batches: Batches,
    access: Access,
    locks: Locks,
    uuids: Uuids,
    /// Folders that are there, the root among them.
    folders: BTreeSet<Path>,
    /// Of these, those that are not readable.
    denied: HashSet<Path>,
    /// Znodes with unexpected names.
    unexpected: BTreeSet<Box<str>>,
    /// Children of references. A walk looks for those below batches that have ended, which they keep from being cleaned
    /// up; below others only watch events report them.
    below_references: BTreeSet<(BatchId, Box<str>)>,
    faults: Faults,
    notes: Notes,
    own: Own,
    watched: Watched,
}

impl Image {
    /// Brings rows, indexes and figures up to date with what a read found at a path.
    fn apply_found(&mut self, path: Path, found: &Found) -> Change {
        let quiet = |changed| if changed { Change::Quiet } else { Change::Nothing };
        let present = found.is_present();
        match path {
            Path::Job(job) => self.jobs.apply(job, None, found),
            Path::JobNode(job, node) => self.jobs.apply(job, Some(node), found),
            Path::Entry(folder, entry) => quiet(self.jobs.apply_entry(&folder, entry, present)),
            Path::Batch(batch) => self.batches.apply(batch, None, found),
            Path::BatchNode(batch, node) => self.batches.apply(batch, Some(node), found),
            Path::BatchOutcome(batch, outcome) => self.batches.apply_folder(batch, outcome, found),
            Path::Reference(batch, outcome, job) => {
                let changed = self.jobs.apply_reference(batch, outcome, job, present);
                if changed {
                    self.batches.count_reference(batch, outcome, present);
                }
                quiet(changed)
            }
            Path::Request(queue, request) => quiet(self.access.apply(queue, request, None, found)),
            Path::RequestNode(queue, request, node) => quiet(self.access.apply(queue, request, Some(node), found)),
            Path::QueueLock(_) => quiet(self.locks.apply(LockKind::Queue, path, found)),
            Path::NamedLock(folder, _) => quiet(self.locks.apply(locks::kind(folder), path, found)),
            Path::PublishedLocalId(_) => quiet(self.locks.apply(LockKind::LocalId, path, found)),
            Path::BatchUuid(uuid) => quiet(self.uuids.apply(uuid, found)),
            Path::Unexpected(path) => quiet(self.apply_unexpected(path, present)),
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
            | Path::PublishedLocalIds => quiet(self.apply_folder(path, found)),
            Path::Own(_) => quiet(self.own.apply(&path, found)),
            Path::Foreign => Change::Nothing,
        }
    }

    fn apply_unexpected(&mut self, path: Box<str>, present: bool) -> bool {
        match parent(&path) {
            Path::Reference(batch, ..) => {
                let below = (batch, path);
                if present { self.below_references.insert(below) } else { self.below_references.remove(&below) }
            }
            // Of these only the names count, and what is below them is not looked at: a walk does not find it either.
            Path::Entry(..) | Path::BatchUuid(_) => false,
            _ if present => self.unexpected.insert(path),
            _ => self.unexpected.remove(&path),
        }
    }

    fn apply_folder(&mut self, path: Path, found: &Found) -> bool {
        let denied =
            if matches!(found, Found::Denied) { self.denied.insert(path.clone()) } else { self.denied.remove(&path) };
        let changed = if found.is_present() { self.folders.insert(path) } else { self.folders.remove(&path) };
        denied || changed
    }

    /// Makes a filled image ready for readers: counts it once and gives back the memory that filling has set aside.
    pub(super) fn finish(&mut self) {
        self.jobs.count();
    }

    /// Moves the marks of age and space to the present, so that reading figures has little to count.
    pub(super) fn set_marks(&mut self, ages: [i64; 5], space: i64) {
        self.jobs.figures.set_marks(ages, space);
        self.locks.kinds.iter_mut().for_each(|kind| kind.set_marks(ages));
    }

    /// Whether the root of the tree, which is the chroot, is there.
    pub(super) fn has_root(&self) -> bool {
        self.folders.contains(&Path::Root)
    }

    /// Whether the root is there and readable. Otherwise the image is empty, which is not to say that the queue is.
    pub(super) fn is_read(&self) -> bool {
        self.has_root() && !self.denied.contains(&Path::Root)
    }

    /// A folder that is not readable, if there is one: what lies below is missing from the image.
    pub(super) fn denied_folder(&self) -> Option<&Path> {
        self.denied.iter().min()
    }

    /// Whether the image has a znode that cannot be decoded, or is not readable.
    pub(super) fn is_unreadable(&self, path: &Path) -> bool {
        match path {
            Path::Job(job) => self.jobs.is_unreadable(*job, None),
            Path::JobNode(job, node) => self.jobs.is_unreadable(*job, Some(*node)),
            Path::Batch(batch) => self.batches.is_unreadable(*batch, None),
            Path::BatchNode(batch, node) => self.batches.is_unreadable(*batch, Some(*node)),
            Path::BatchOutcome(batch, outcome) => {
                self.batches.get(*batch).is_some_and(|entry| entry.denied[*outcome as usize])
            }
            Path::Request(queue, request) => self.access.is_unreadable(*queue, *request, None),
            Path::RequestNode(queue, request, node) => self.access.is_unreadable(*queue, *request, Some(*node)),
            Path::QueueLock(_) | Path::NamedLock(..) | Path::PublishedLocalId(_) => self.locks.is_unreadable(path),
            Path::Unexpected(path) => self.unexpected.contains(path),
            Path::BatchUuid(uuid) => self.uuids.is_unreadable(uuid),
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
            | Path::PublishedLocalIds => self.denied.contains(path),
            // Of these only the names count, so nothing of them is unreadable.
            Path::Entry(..) | Path::Reference(..) | Path::Foreign | Path::Own(_) => false,
        }
    }

    /// Whether a batch is one that the daemons' cleanup takes.
    pub(super) fn is_ended(&self, batch: BatchId) -> bool {
        let state = self.batches.get(batch).and_then(|entry| entry.item.state);
        matches!(state, Some(BatchState::Completed | BatchState::Deleted))
    }

    /// Whether a batch's `states` are there. It is not acquired until they are.
    pub(super) fn is_acquired(&self, batch: BatchId) -> bool {
        self.batches.get(batch).is_some_and(|entry| entry.item.nodes.has(BatchNode::States as u8))
    }
}

/// The znode above an unexpected one.
fn parent(path: &str) -> Path {
    Path::parse(path.rsplit_once('/').map_or("", |(parent, _)| parent))
}
