//! The entries below `/batch-uuids`.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::row::UNKNOWN_MS;
use crate::mirror::read::Found;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::record;

/// What one entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    /// It is not readable.
    Unknown,
    /// Its text is no name of a batch.
    Nowhere,
    /// To this batch, whether that is there or not.
    To(BatchId),
    /// To this batch, with white space around the id, which the daemons do not pass over.
    InSpaces(BatchId),
    /// To what is named like a batch, by an id that has not ten digits.
    Misnamed(Box<str>),
}

impl Leads {
    fn of(data: &[u8]) -> Self {
        match record::bid(data) {
            Ok(batch) if data == batch.to_string().as_bytes() => Self::To(batch),
            Ok(batch) => Self::InSpaces(batch),
            Err(_) => record::misnamed_bid(data).map_or(Self::Nowhere, |name| Self::Misnamed(name.into())),
        }
    }

    /// The batch that it leads to.
    pub(super) fn batch(&self) -> Option<BatchId> {
        match self {
            Self::To(batch) | Self::InSpaces(batch) => Some(*batch),
            Self::Unknown | Self::Nowhere | Self::Misnamed(_) => None,
        }
    }
}

/// Every entry.
#[derive(Debug, Default)]
pub(super) struct Uuids {
    entries: HashMap<Box<str>, (Leads, i64)>,
    by_batch: BTreeSet<(BatchId, Box<str>)>,
    /// How many of them are not readable.
    pub(super) unreadable: i64,
}

impl Uuids {
    /// Takes note of what a read found at an entry. Gives whether that is new.
    pub(super) fn apply(&mut self, uuid: Box<str>, found: &Found) -> bool {
        let new = found.is_present().then(|| match found.node() {
            Some((data, stat)) => (Leads::of(data), stat.mtime),
            None => (Leads::Unknown, UNKNOWN_MS),
        });
        let old = self.entries.get(&uuid).cloned();
        if old == new {
            return false;
        }
        let batch = |entry: &Option<(Leads, i64)>| entry.as_ref().and_then(|(leads, _)| leads.batch());
        if let Some(batch) = batch(&old) {
            self.by_batch.remove(&(batch, uuid.clone()));
        }
        if let Some(batch) = batch(&new) {
            self.by_batch.insert((batch, uuid.clone()));
        }
        let denied = |entry: &Option<(Leads, i64)>| i64::from(matches!(entry, Some((Leads::Unknown, _))));
        self.unreadable += denied(&new) - denied(&old);
        match new {
            Some(new) => self.entries.insert(uuid, new),
            None => self.entries.remove(&uuid),
        };
        true
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether an entry is there and not readable.
    pub(super) fn is_unreadable(&self, uuid: &str) -> bool {
        matches!(self.get(uuid), Some((Leads::Unknown, _)))
    }

    /// What an entry says and when it was written, in milliseconds by the servers' clock; `None` for one that is not
    /// there.
    pub(super) fn get(&self, uuid: &str) -> Option<(&Leads, i64)> {
        self.entries.get(uuid).map(|(leads, at)| (leads, *at))
    }

    /// The UUID of every entry.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(|uuid| &**uuid)
    }

    /// The entries that lead to what is named so. There are few, and hardly ever one is requested.
    pub(super) fn to_misnamed(&self, name: &str) -> impl Iterator<Item = &str> {
        let leads_there =
            move |leads: &Leads| matches!(leads, Leads::Misnamed(to) if !name.is_empty() && **to == *name);
        self.entries.iter().filter(move |(_, (leads, _))| leads_there(leads)).map(|(uuid, _)| &**uuid)
    }

    /// The entries that lead to a batch.
    pub(super) fn of(&self, batch: BatchId) -> impl Iterator<Item = &str> {
        let from = (batch, Box::default());
        self.by_batch.range(from..).take_while(move |(of, _)| *of == batch).map(|(_, uuid)| &**uuid)
    }
}
