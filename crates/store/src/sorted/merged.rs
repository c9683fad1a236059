//! Several tables that are read as one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use super::record::Record;
use super::table::{Scan, Table};

/// The records of some tables whose keys begin with a prefix, in ascending order. Of equal keys, that of the first
/// table comes first. What is read after an error says nothing.
pub(crate) struct Merged {
    prefix: Vec<u8>,
    scans: Vec<Scan>,
    /// The next record of each table that has one.
    heads: BinaryHeap<Reverse<(Record, usize)>>,
    /// From which key on they will be read, as long as none has been.
    start: Option<Vec<u8>>,
}

impl Merged {
    /// Reads nothing yet.
    pub(crate) fn new<'a>(tables: impl IntoIterator<Item = &'a Table>, prefix: &[u8]) -> Self {
        let scans = tables.into_iter().map(Table::scan).collect();
        Self { prefix: prefix.to_vec(), scans, heads: BinaryHeap::new(), start: Some(prefix.to_vec()) }
    }

    /// Goes forward to the first record whose key is not below this one.
    pub(crate) fn seek(&mut self, key: &[u8]) -> io::Result<()> {
        if let Some(start) = &mut self.start {
            if key > start.as_slice() {
                start.clear();
                start.extend_from_slice(key);
            }
            return Ok(());
        }
        while let Some(Reverse((record, _))) = self.heads.peek()
            && record.key() < key
            && let Some(Reverse((_, scan))) = self.heads.pop()
        {
            self.scans[scan].seek(key)?;
            self.fill(scan)?;
        }
        Ok(())
    }

    /// The next record, which stays the next one.
    pub(crate) fn peek(&mut self) -> io::Result<Option<&Record>> {
        if let Some(start) = self.start.take() {
            for scan in 0..self.scans.len() {
                self.scans[scan].seek(&start)?;
                self.fill(scan)?;
            }
        }
        let prefix = &self.prefix;
        Ok(self.heads.peek().map(|Reverse((record, _))| record).filter(|record| record.key().starts_with(prefix)))
    }

    /// The next record, if something holds of it; else it stays the next one.
    pub(crate) fn next_if(&mut self, holds: impl FnOnce(&Record) -> bool) -> io::Result<Option<Record>> {
        if !self.peek()?.is_some_and(holds) {
            return Ok(None);
        }
        let Some(Reverse((record, scan))) = self.heads.pop() else { return Ok(None) };
        self.fill(scan)?;
        Ok(Some(record))
    }

    /// Whether there is a record with this key; goes forward to it.
    pub(crate) fn has(&mut self, key: &[u8]) -> io::Result<bool> {
        self.seek(key)?;
        Ok(self.peek()?.is_some_and(|record| record.key() == key))
    }

    fn fill(&mut self, scan: usize) -> io::Result<()> {
        if let Some(record) = self.scans[scan].next()? {
            self.heads.push(Reverse((record, scan)));
        }
        Ok(())
    }
}

impl Iterator for Merged {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<io::Result<Record>> {
        self.next_if(|_| true).transpose()
    }
}
