//! The batches of the image.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use super::change::Change;
use super::item::Item;
use super::row::{LockStat, Nodes};
use crate::mirror::read::Found;
use crate::mirror::summary::ByState;
use crate::mirror::text::cut;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::BatchNode;
use queuekeeper_queue::record::{Decoded, Submission, object_form, refused};
use queuekeeper_queue::state::{BatchState, JobOutcome};

/// How the types of submissions end whose rows are objects.
const OF_ROWS: &str = "batch-manifest";

/// One batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) item: Item<BatchState>,
    pub(super) uuid: Arc<str>,
    pub(super) collection: Arc<str>,
    pub(super) submitter: Arc<str>,
    pub(super) filename: Arc<str>,
    pub(super) title: Arc<str>,
    pub(super) has_rows: bool,
    pub(super) part_of: Arc<str>,
    pub(super) parts: Option<u64>,
    pub(super) note: Arc<str>,
    pub(super) notification: Arc<str>,
    /// These texts but the collection, folded for a search, one a line.
    pub(super) folded: Arc<str>,
    /// Which folders of outcomes are there.
    pub(super) folders: [bool; 4],
    /// Of these, those that are not readable.
    pub(super) denied: [bool; 4],
    /// How many references each of them holds.
    pub(super) references: [u32; 4],
}

impl Entry {
    /// Nothing is left of it: no znode of its own, no folder and no reference below it.
    fn is_gone(&self) -> bool {
        self.item.nodes.is_empty() && self.folders == [false; 4] && self.references == [0; 4]
    }

    /// Whether its jobs are being created or worked on, or its report is due. A failed one is again, once an operator
    /// has resumed a job of it.
    fn is_in_progress(&self) -> bool {
        let has_jobs = self.references[JobOutcome::Processing as usize] > 0;
        !self.item.nodes.is_empty()
            && match self.item.state {
                Some(BatchState::Processing | BatchState::Reporting | BatchState::UpdateReporting) => true,
                Some(BatchState::Failed) | None => has_jobs,
                Some(BatchState::Pending | BatchState::Completed | BatchState::Held | BatchState::Deleted) => false,
            }
    }

    /// How many of its jobs have ended, well or not.
    pub(super) fn ended(&self) -> u32 {
        let ended = [JobOutcome::Failed, JobOutcome::Completed, JobOutcome::Deleted];
        ended.into_iter().map(|outcome| self.references[outcome as usize]).fold(0, u32::saturating_add)
    }

    /// Sets what a node says. Gives whether its value was malformed.
    fn set(&mut self, node: Option<BatchNode>, found: &Found) -> bool {
        let (data, stat) = found.node().map_or((None, None), |(data, stat)| (Some(data), Some(stat)));
        match node {
            None => self.item.set_own(stat),
            Some(BatchNode::Status) => return self.item.set_status(found),
            Some(BatchNode::Submission) => {
                let Decoded { value, malformed } =
                    data.map_or(Decoded { value: Submission::default(), malformed: None }, Submission::decode);
                self.uuid = cut(&value.uuid).into();
                self.collection = cut(&value.collection).into();
                self.submitter = cut(&value.submitter).into();
                self.filename = cut(&value.filename).into();
                self.title = cut(&value.title).into();
                self.has_rows = value.kind.ends_with(OF_ROWS);
                self.part_of = cut(&value.part_of).into();
                self.parts = value.parts;
                self.note = cut(&value.note).into();
                self.notification = cut(&value.notification).into();
                let texts = [&self.uuid, &self.filename, &self.title, &self.submitter, &self.part_of];
                let texts = texts.into_iter().filter(|text| !text.is_empty()).map(|text| text.to_lowercase());
                self.folded = texts.collect::<Vec<_>>().join("\n").into();
                return data.is_some_and(|data| refused(data, malformed).is_err());
            }
            Some(BatchNode::StatusReport) => return data.is_some_and(|data| object_form(data).is_err()),
            Some(BatchNode::Lock) => self.item.set_lock(stat),
            Some(BatchNode::States) => {}
        }
        false
    }
}

/// Every batch, and the figures over them.
#[derive(Debug, Default)]
pub(super) struct Batches {
    entries: HashMap<BatchId, Entry>,
    pub(super) entered: ByState<BatchState, BTreeSet<(i64, BatchId)>>,
    /// The batches in progress, by the instant of entering their state.
    pub(super) in_progress: BTreeSet<(i64, BatchId)>,
    pub(super) locks: HashMap<BatchId, LockStat>,
    /// How many batches each collection has.
    pub(super) collections: BTreeMap<Arc<str>, u32>,
    pub(super) znodes: i64,
    pub(super) unreadable: i64,
}

impl Batches {
    pub(super) fn iter(&self) -> impl Iterator<Item = (BatchId, &Entry)> {
        self.entries.iter().map(|(batch, entry)| (*batch, entry))
    }

    /// How many batches there are, with those of which only references are left.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The batches whose submission carries a UUID: one on a healthy tree.
    pub(super) fn named(&self, uuid: &str) -> impl Iterator<Item = BatchId> {
        self.entries.iter().filter(move |(_, entry)| *entry.uuid == *uuid).map(|(batch, _)| *batch)
    }

    pub(super) fn get(&self, batch: BatchId) -> Option<&Entry> {
        self.entries.get(&batch)
    }

    pub(super) fn is_unreadable(&self, batch: BatchId, node: Option<BatchNode>) -> bool {
        let bit = node.map_or(Nodes::SELF, |node| node as u8);
        self.get(batch).is_some_and(|entry| entry.item.unreadable.has(bit))
    }

    /// Takes note of what a read found at a batch's znode (`None`) or one of its children.
    pub(super) fn apply(&mut self, batch: BatchId, node: Option<BatchNode>, found: &Found) -> Change {
        self.change(batch, |entry| {
            let malformed = entry.set(node, found);
            entry.item.note(node.map_or(Nodes::SELF, |node| node as u8), found, malformed);
        })
    }

    /// Takes note of a folder of references being there or not.
    pub(super) fn apply_folder(&mut self, batch: BatchId, outcome: JobOutcome, found: &Found) -> Change {
        self.change(batch, |entry| {
            entry.folders[outcome as usize] = found.is_present();
            entry.denied[outcome as usize] = matches!(found, Found::Denied);
        })
    }

    /// Takes note of a reference having come or gone.
    pub(super) fn count_reference(&mut self, batch: BatchId, outcome: JobOutcome, present: bool) {
        self.change(batch, |entry| {
            let count = &mut entry.references[outcome as usize];
            *count = if present { *count + 1 } else { count.saturating_sub(1) };
        });
    }

    fn change(&mut self, batch: BatchId, change: impl FnOnce(&mut Entry)) -> Change {
        let old = self.entries.remove(&batch).unwrap_or_default();
        let mut new = old.clone();
        change(&mut new);
        if !old.is_gone() {
            self.entered.get_mut(old.item.state).remove(&(old.item.entered_ms, batch));
            self.in_progress.remove(&(old.item.entered_ms, batch));
            self.locks.remove(&batch);
        }
        self.count_collection(&old, &new);
        self.znodes += znodes(&new) - znodes(&old);
        self.unreadable += unreadable(&new) - unreadable(&old);
        let result = Change::of_batch(old.item.observation(), new.item.observation()).or_quiet(old != new);
        if !new.is_gone() {
            // A folder or reference whose batch is gone is a fault of the tree, but no batch to count.
            if !new.item.nodes.is_empty() {
                self.entered.get_mut(new.item.state).insert((new.item.entered_ms, batch));
            }
            if new.is_in_progress() {
                self.in_progress.insert((new.item.entered_ms, batch));
            }
            if let Some(lock) = new.item.lock {
                self.locks.insert(batch, lock);
            }
            self.entries.insert(batch, new);
        }
        result
    }

    fn count_collection(&mut self, old: &Entry, new: &Entry) {
        let counted = |entry: &Entry| (!entry.item.nodes.is_empty()).then(|| entry.collection.clone());
        let (old, new) = (counted(old), counted(new));
        if old == new {
            return;
        }
        if let Some(new) = new {
            *self.collections.entry(new).or_default() += 1;
        }
        if let Some(old) = old
            && let Some(count) = self.collections.get_mut(&old)
        {
            *count -= 1;
            if *count == 0 {
                self.collections.remove(&old);
            }
        }
    }
}

fn unreadable(entry: &Entry) -> i64 {
    entry.item.unreadable.count() + entry.denied.iter().map(|denied| i64::from(*denied)).sum::<i64>()
}

fn znodes(entry: &Entry) -> i64 {
    entry.item.nodes.count() + entry.folders.iter().map(|present| i64::from(*present)).sum::<i64>()
}

#[cfg(test)]
mod tests;
