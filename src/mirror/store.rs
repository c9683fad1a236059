//! One writer, many readers.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use parking_lot::RwLock;

use super::clock::Offset;
use super::freshness::Freshness;
use super::image::{Batch, Change, Image, Job, Lock, Request, age_marks};
use super::read::Found;
use super::summary::{CollectionFigures, Summary};
use crate::queue::id::JobId;
use crate::queue::path::Path;

/// How many reads are applied under one lock. Each takes a few microseconds, and readers wait meanwhile.
const APPLIED_AT_ONCE: usize = 128;

#[derive(Debug, Default)]
struct Shared {
    /// `None` before the first walk.
    image: RwLock<Option<Image>>,
    freshness: RwLock<Freshness>,
    /// What readers last asked about space, for the writer to prepare; see [`Image::set_marks`].
    space: AtomicI64,
    offset: RwLock<Offset>,
}

/// A reader's handle to the image; cheap to clone.
///
/// Every call takes what it needs under a short read lock and gives it back as values of its own, so that nobody holds
/// the lock while rendering.
#[derive(Clone, Debug, Default)]
pub struct Store {
    shared: Arc<Shared>,
}

impl Store {
    /// How far the image can be trusted now.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.shared.freshness.read().clone()
    }

    /// The figures of the whole queue; `None` before the first walk, and while the tree's root is missing or not ours
    /// to read: nobody knows how many jobs there are then.
    ///
    /// `now` is our own clock. `space` is how many bytes of working storage a job may need and not be kept back; jobs
    /// in Provisioning that need more are counted as waiting for space.
    #[must_use]
    pub fn summary(&self, now: Timestamp, space: Option<i64>) -> Option<Summary> {
        if let Some(space) = space {
            self.shared.space.store(space, Ordering::Relaxed);
        }
        self.read(|image, offset| image.is_read().then(|| image.summary(now, offset, space))).flatten()
    }

    /// Jobs by collection and state, in no order; `None` before the first walk.
    #[must_use]
    pub fn collections(&self) -> Option<Vec<CollectionFigures>> {
        self.read(|image, _| image.collections())
    }

    /// One job.
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<Job> {
        self.read(|image, offset| image.job(id, offset)).flatten()
    }

    /// The jobs in a piece of the table, in no order, and where the table ends: a way to visit all of them without
    /// keeping the writer from its work.
    #[must_use]
    pub fn jobs(&self, range: Range<usize>) -> Option<(Vec<Job>, usize)> {
        self.read(|image, offset| (image.jobs(range, offset), image.job_slots()))
    }

    /// Every batch, in no order.
    #[must_use]
    pub fn batches(&self) -> Option<Vec<Batch>> {
        self.read(Image::batches)
    }

    /// Every access request, in no order.
    #[must_use]
    pub fn requests(&self) -> Option<Vec<Request>> {
        self.read(Image::requests)
    }

    /// Every lock, in no order.
    #[must_use]
    pub fn locks(&self) -> Option<Vec<Lock>> {
        self.read(|image, _| image.locks())
    }

    /// Queue entries and batch references of jobs that do not exist.
    #[must_use]
    pub fn strays(&self) -> Option<Vec<Path>> {
        self.read(|image, _| image.strays())
    }

    /// The paths of znodes with names that nobody expects, at most `limit` of them.
    #[must_use]
    pub fn unexpected(&self, limit: usize) -> Option<Vec<Box<str>>> {
        self.read(|image, _| image.unexpected(limit))
    }

    /// Takes note of how we stand with ZooKeeper. This is the connection's word, not the image's, so the writer need not
    /// be asked.
    pub(super) fn set_connection(&self, session: Option<String>, problem: Option<String>, now: Timestamp) {
        let mut freshness = self.shared.freshness.write();
        if session.is_none() {
            freshness.stale_since = freshness.stale_since.or(Some(now));
            freshness.problem = problem;
        } else if freshness.session.is_none() {
            // Why there was no connection is no reason any more for the image to be behind.
            freshness.problem = None;
        }
        freshness.session = session;
    }

    /// Makes the image wrong behind the writer's back.
    #[cfg(test)]
    pub(super) fn falsify(&self, path: Path, found: &Found) -> Option<Change> {
        self.shared.image.write().as_mut().map(|image| image.apply(path, found))
    }

    fn read<T>(&self, take: impl FnOnce(&Image, Offset) -> T) -> Option<T> {
        let offset = *self.shared.offset.read();
        self.shared.image.read().as_ref().map(|image| take(image, offset))
    }
}

/// The only one who changes the image. It cannot be cloned.
#[derive(Debug, Default)]
pub struct Writer {
    shared: Arc<Shared>,
}

impl Writer {
    /// A writer without an image.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader's handle to what this writer writes.
    #[must_use]
    pub fn store(&self) -> Store {
        Store { shared: Arc::clone(&self.shared) }
    }

    /// Puts a finished image in the place of the old one, which it gives back.
    pub(super) fn swap(&self, image: Image) -> Option<Image> {
        self.shared.image.write().replace(image)
    }

    /// Applies reads, handing on what each changed. Readers come in between.
    pub(super) fn apply(&self, reads: Vec<(Path, Found)>, mut changed: impl FnMut(&Found, Change)) {
        let mut reads = reads.into_iter().peekable();
        while reads.peek().is_some() {
            let mut changes = Vec::with_capacity(APPLIED_AT_ONCE);
            if let Some(image) = self.shared.image.write().as_mut() {
                for (path, found) in reads.by_ref().take(APPLIED_AT_ONCE) {
                    let change = image.apply(path, &found);
                    changes.push((found, change));
                }
            } else {
                return;
            }
            for (found, change) in changes {
                changed(&found, change);
            }
        }
    }

    /// Brings the image's marks to the present.
    pub(super) fn set_marks(&self, now: Timestamp) {
        let ages = age_marks(self.shared.offset.read().to_server(now));
        let space = self.shared.space.load(Ordering::Relaxed);
        if let Some(image) = self.shared.image.write().as_mut() {
            image.set_marks(ages, space);
        }
    }

    pub(super) fn set_offset(&self, offset: Offset) {
        if *self.shared.offset.read() != offset {
            *self.shared.offset.write() = offset;
        }
    }

    pub(super) fn with_freshness(&self, change: impl FnOnce(&mut Freshness)) {
        change(&mut self.shared.freshness.write());
    }

    pub(super) fn with_image<T>(&self, take: impl FnOnce(&Image) -> T) -> Option<T> {
        self.shared.image.read().as_ref().map(take)
    }
}
