//! The writer's side of the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::Timestamp;

use super::{MirrorStore, Shared};
use crate::mirror::freshness::Freshness;
use crate::mirror::image::{Change, Image, Undated, age_marks};
use crate::mirror::read::{Found, ReadBudget};
use crate::mirror::read_nodes::Nodes;
use queuekeeper_queue::fault::Limits;
use queuekeeper_queue::path::Path;

/// How many reads are applied under one lock. Each takes a few microseconds, and readers wait meanwhile.
const APPLIED_AT_ONCE: usize = 128;

/// Of how many batches in progress it is remembered how fast their jobs end: far more than any page shows.
const PACED_BATCHES: usize = 500;

/// The only one who changes the image. It cannot be cloned.
#[derive(Debug, Default)]
pub struct Writer {
    pub(super) shared: Arc<Shared>,
}

impl Writer {
    /// A writer without an image.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A writer without an image that goes by other limits than the default ones.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Self { shared: Arc::new(Shared { limits, ..Shared::default() }) }
    }

    /// Lets all reading of the tree have at most so many bytes of answers under way at once, by what is expected of
    /// them. ZooKeeper holds them in memory beside the tree.
    ///
    /// # Panics
    /// When a [`MirrorStore`] was taken from this writer before.
    #[must_use]
    pub fn with_read_budget(mut self, bytes: u64) -> Self {
        let shared = Arc::get_mut(&mut self.shared).expect("no reader has a handle yet");
        shared.read_budget = ReadBudget::new(bytes);
        shared.nodes = Nodes::with_budget(shared.read_budget);
        self
    }

    pub(in crate::mirror) fn read_budget(&self) -> ReadBudget {
        self.shared.read_budget
    }

    /// A reader's handle to what this writer writes.
    #[must_use]
    pub fn store(&self) -> MirrorStore {
        MirrorStore { shared: Arc::clone(&self.shared) }
    }

    /// Puts a finished image in the place of the old one, which it gives back.
    pub(in crate::mirror) fn swap(&self, mut image: Image, now: Timestamp) -> Option<Image> {
        self.shared.heed_clock();
        let (horizon, offset) = (self.store().horizon(now), self.shared.offset());
        let (until_ms, now_ms) = (offset.to_server(horizon), offset.to_server(now));
        image.evaluate_all(self.shared.image.read().as_ref(), until_ms, now_ms, &self.shared.limits);
        image.inherit(self.shared.image.read().as_ref(), now_ms);
        image.note_unserved(now_ms);
        let left = image.inferred_left();
        let old = self.shared.image.write().replace(image);
        self.shared.history.write().infer_left(&left);
        self.shared.has_changed();
        old
    }

    /// Takes note of changes that another image than the old one showed.
    pub(in crate::mirror) fn note(&self, changes: &[Change], now: Timestamp) {
        self.shared.history.write().note(changes.iter().copied(), now);
    }

    /// What the image shows to be broken since before it was first seen, and the znodes that would date it.
    pub(in crate::mirror) fn undated(&self, most: usize) -> Vec<Undated> {
        self.with_image(|image| image.undated(&self.shared.limits, most)).unwrap_or_default()
    }

    /// Dates it by when these znodes were created, in milliseconds by the servers' clock.
    pub(in crate::mirror) fn date(&self, undated: &[Undated], created_ms: impl Fn(&Path) -> Option<i64>) {
        if let Some(image) = self.shared.image.write().as_mut() {
            for undated in undated {
                image.date(undated, &created_ms);
            }
        }
    }

    /// Takes note of the present figures.
    pub(in crate::mirror) fn sample(&self, now: Timestamp) {
        self.shared.heed_clock();
        let offset = self.shared.offset();
        let sample = |image: &Image| image.is_read().then(|| image.sample(now, offset, PACED_BATCHES));
        if let Some(sample) = self.with_image(sample).flatten() {
            self.shared.history.write().sample(sample, now);
        }
    }

    /// Applies reads, handing on what each changed. Readers come in between.
    pub(in crate::mirror) fn apply(&self, reads: Vec<(Path, Found)>, mut changed: impl FnMut(&Found, Change)) {
        self.shared.heed_clock();
        let now_ms = self.shared.offset().to_server(Timestamp::now());
        let mut reads = reads.into_iter().peekable();
        while reads.peek().is_some() {
            let mut changes = Vec::with_capacity(APPLIED_AT_ONCE);
            if let Some(image) = self.shared.image.write().as_mut() {
                image.set_now(now_ms);
                for (path, found) in reads.by_ref().take(APPLIED_AT_ONCE) {
                    let change = image.apply(path, &found);
                    changes.push((found, change));
                }
                image.note_unserved(now_ms);
            } else {
                return;
            }
            self.shared.history.write().note(changes.iter().map(|(_, change)| *change), Timestamp::now());
            if changes.iter().any(|(_, change)| *change != Change::Nothing) {
                self.shared.has_changed();
            }
            for (found, change) in changes {
                changed(&found, change);
            }
        }
        let evaluate = |image: &mut Image| image.evaluate(now_ms, &self.shared.limits, APPLIED_AT_ONCE);
        while self.shared.image.write().as_mut().is_some_and(evaluate) {}
    }

    /// Takes note of changes that wait to be read since an instant, or of none that does.
    pub(in crate::mirror) fn set_behind(&self, since: Option<Timestamp>) {
        *self.shared.behind_since.write() = since;
    }

    /// Takes note of a change that waits to be read, unless others wait for longer.
    pub(in crate::mirror) fn falls_behind(&self, now: Timestamp) {
        let mut behind_since = self.shared.behind_since.write();
        *behind_since = behind_since.or(Some(now));
    }

    /// Brings the image's marks to the present.
    pub(in crate::mirror) fn set_marks(&self, now: Timestamp) {
        let now_ms = self.shared.offset().to_server(now);
        let ages = age_marks(now_ms);
        let space = self.shared.space.load(Ordering::Relaxed);
        if let Some(image) = self.shared.image.write().as_mut() {
            image.set_marks(ages, space);
            image.set_fault_mark(now_ms);
        }
    }

    /// Changes what readers see of connection and age.
    pub(in crate::mirror) fn with_freshness(&self, change: impl FnOnce(&mut Freshness)) {
        let mut freshness = self.shared.freshness.write();
        let before = freshness.clone();
        change(&mut freshness);
        // An event alone is nothing to see; what it brings is reported when it is applied.
        if *freshness != (Freshness { last_event: freshness.last_event, ..before }) {
            self.shared.has_changed();
        }
    }

    pub(in crate::mirror) fn with_image<T>(&self, take: impl FnOnce(&Image) -> T) -> Option<T> {
        self.shared.image.read().as_ref().map(take)
    }
}
