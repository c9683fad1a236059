//! A record, and records that are sorted in memory.

use std::cmp::Ordering;

/// A key with its value. Records are compared by their keys.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    bytes: Vec<u8>,
    key_length: usize,
}

impl Record {
    pub(super) fn new(key: &[u8], value: &[u8]) -> Self {
        Self { bytes: [key, value].concat(), key_length: key.len() }
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes[..self.key_length]
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.bytes[self.key_length..]
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Record {}

impl PartialOrd for Record {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Record {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(other.key())
    }
}

/// Records in one piece of memory.
#[derive(Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
    places: Vec<RecordSpan>,
}

/// Where a record lies: its key, and its value behind it.
struct RecordSpan {
    start: usize,
    value: usize,
    end: usize,
}

impl Records {
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.places.push(RecordSpan { start, value: start + key.len(), end: self.bytes.len() });
    }

    pub(super) fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |place: &RecordSpan| &bytes[place.start..place.value];
        self.places.sort_unstable_by(|one, other| key(one).cmp(key(other)));
    }

    /// The key and the value of the record at a place in the order.
    pub(super) fn get(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let RecordSpan { start, value, end } = *self.places.get(at)?;
        Some((&self.bytes[start..value], &self.bytes[value..end]))
    }

    /// The place of the first record whose key is not below this one.
    pub(super) fn place(&self, key: &[u8]) -> usize {
        self.places.partition_point(|place| &self.bytes[place.start..place.value] < key)
    }

    /// All of them in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.places.len()).filter_map(|at| self.get(at))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many bytes of memory they take.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.places.len() * size_of::<RecordSpan>()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.places.shrink_to_fit();
    }
}
