//! The entries below `/batch-uuids`.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::row::UNKNOWN_MS;
use crate::mirror::read::Found;
use crate::queue::id::BatchId;
use crate::queue::record;

/// What one entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    /// It is not ours to read.
    Unknown,
    /// Its text is no id of a batch.
    Nowhere,
    /// To this batch, whether that is there or not.
    To(BatchId),
}

/// Every entry.
#[derive(Debug, Default)]
pub(super) struct Uuids {
    entries: HashMap<Box<str>, (Leads, i64)>,
    by_batch: BTreeSet<(BatchId, Box<str>)>,
    /// How many of them are not ours to read.
    pub(super) unreadable: i64,
}

impl Uuids {
    /// Takes note of what a read found at an entry. Gives whether that is new.
    pub(super) fn apply(&mut self, uuid: Box<str>, found: &Found) -> bool {
        let new = found.is_present().then(|| match found.node() {
            Some((data, stat)) => (record::bid(data).map_or(Leads::Nowhere, Leads::To), stat.mtime),
            None => (Leads::Unknown, UNKNOWN_MS),
        });
        let old = self.entries.get(&uuid).copied();
        if old == new {
            return false;
        }
        if let Some((Leads::To(batch), _)) = old {
            self.by_batch.remove(&(batch, uuid.clone()));
        }
        if let Some((Leads::To(batch), _)) = new {
            self.by_batch.insert((batch, uuid.clone()));
        }
        let denied = |entry: Option<(Leads, i64)>| i64::from(matches!(entry, Some((Leads::Unknown, _))));
        self.unreadable += denied(new) - denied(old);
        match new {
            Some(new) => self.entries.insert(uuid, new),
            None => self.entries.remove(&uuid),
        };
        true
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether an entry is there and not ours to read.
    pub(super) fn is_unreadable(&self, uuid: &str) -> bool {
        matches!(self.get(uuid), Some((Leads::Unknown, _)))
    }

    /// What an entry says and when it was written, in milliseconds by the servers' clock; `None` for one that is not
    /// there.
    pub(super) fn get(&self, uuid: &str) -> Option<(Leads, i64)> {
        self.entries.get(uuid).copied()
    }

    /// Every entry.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, (Leads, i64))> {
        self.entries.iter().map(|(uuid, entry)| (&**uuid, *entry))
    }

    /// The entries that lead to a batch.
    pub(super) fn of(&self, batch: BatchId) -> impl Iterator<Item = &str> {
        let from = (batch, Box::default());
        self.by_batch.range(from..).take_while(move |(of, _)| *of == batch).map(|(_, uuid)| &**uuid)
    }
}
