//! Sorted records, in memory or in blocks of a temporary file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use super::changed;
use super::record::{Record, Records};

/// From this size on, in bytes, a block is written. A longer record has a block of its own.
const BLOCK_BYTES: usize = 16 << 10;

/// The bytes of two lengths before each record in a file.
const LENGTHS: usize = 8;

/// Sorted records. A clone has the same ones.
#[derive(Clone)]
pub(crate) struct Table(Arc<TableData>);

enum TableData {
    Memory(Records),
    File {
        file: Arc<File>,
        blocks: Vec<Block>,
        /// Where the last block ends.
        end: u64,
    },
}

struct Block {
    first_key: Box<[u8]>,
    start: u64,
}

/// A temporary file to which tables are written, one behind the other.
pub(super) struct Spill {
    file: Arc<File>,
    end: u64,
}

/// A table on its way to a file.
pub(super) struct Writing<'a> {
    spill: &'a mut Spill,
    block: Vec<u8>,
    blocks: Vec<Block>,
}

/// A table that is being read, in ascending order.
pub(super) struct Scan {
    table: Table,
    /// The next record in memory, or the next block of the file.
    next: usize,
    block: Vec<u8>,
    /// Where the next record begins in the block.
    at: usize,
}

impl Spill {
    /// A file without a name in this directory.
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        Ok(Self { file: Arc::new(tempfile::tempfile_in(directory)?), end: 0 })
    }

    /// Begins a table behind the others.
    pub(super) fn table(&mut self) -> Writing<'_> {
        Writing { spill: self, block: Vec::with_capacity(BLOCK_BYTES), blocks: Vec::new() }
    }
}

impl Writing<'_> {
    /// Adds a record whose key is not below that of the last one.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if self.block.is_empty() {
            self.blocks.push(Block { first_key: key.into(), start: self.spill.end });
        }
        for part in [key, value] {
            let length = u32::try_from(part.len()).map_err(io::Error::other)?;
            self.block.extend_from_slice(&length.to_le_bytes());
        }
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(value);
        if self.block.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    pub(super) fn finish(mut self) -> io::Result<Table> {
        self.flush()?;
        self.blocks.shrink_to_fit();
        let file = Arc::clone(&self.spill.file);
        Ok(Table(Arc::new(TableData::File { file, blocks: self.blocks, end: self.spill.end })))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.spill.file.write_all_at(&self.block, self.spill.end)?;
        self.spill.end += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }
}

impl Table {
    /// Records that are sorted, in memory.
    pub(super) fn in_memory(mut records: Records) -> Self {
        records.shrink();
        Self(Arc::new(TableData::Memory(records)))
    }

    pub(super) fn scan(&self) -> Scan {
        Scan { table: self.clone(), next: 0, block: Vec::new(), at: 0 }
    }
}

impl Scan {
    /// The next record.
    pub(super) fn next(&mut self) -> io::Result<Option<Record>> {
        let record = self.current()?.map(|(key, value)| Record::new(key, value));
        if let Some(record) = &record {
            self.skip(record.key().len() + record.value().len());
        }
        Ok(record)
    }

    /// Goes forward to the first record whose key is not below this one.
    pub(super) fn seek(&mut self, key: &[u8]) -> io::Result<()> {
        match &*self.table.0 {
            TableData::Memory(records) => self.next = self.next.max(records.place(key)),
            TableData::File { blocks, .. } => {
                // A key may come several times, and then begins before the block that begins with it.
                let holding = blocks.partition_point(|block| *block.first_key < *key).saturating_sub(1);
                if (self.next..blocks.len()).contains(&holding) {
                    self.load(holding)?;
                }
                while let Some((here, value)) = self.current()?
                    && here < key
                {
                    let length = here.len() + value.len();
                    self.skip(length);
                }
            }
        }
        Ok(())
    }

    /// The key and the value of the next record, without going on.
    fn current(&mut self) -> io::Result<Option<(&[u8], &[u8])>> {
        if let TableData::File { blocks, .. } = &*self.table.0
            && self.at == self.block.len()
        {
            if self.next == blocks.len() {
                return Ok(None);
            }
            self.load(self.next)?;
        }
        match &*self.table.0 {
            TableData::Memory(records) => Ok(records.get(self.next)),
            TableData::File { .. } => parse(&self.block[self.at..]).ok_or_else(changed).map(Some),
        }
    }

    /// Passes over a record whose key and value have this length together.
    fn skip(&mut self, length: usize) {
        match &*self.table.0 {
            TableData::Memory(_) => self.next += 1,
            TableData::File { .. } => self.at += LENGTHS + length,
        }
    }

    fn load(&mut self, number: usize) -> io::Result<()> {
        let TableData::File { file, blocks, end } = &*self.table.0 else { return Ok(()) };
        let start = blocks[number].start;
        let end = blocks.get(number + 1).map_or(*end, |block| block.start);
        self.block.resize(usize::try_from(end - start).map_err(io::Error::other)?, 0);
        file.read_exact_at(&mut self.block, start)?;
        (self.next, self.at) = (number + 1, 0);
        Ok(())
    }
}

/// The key and the value of the record that some bytes begin with.
fn parse(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (lengths, rest) = bytes.split_first_chunk::<LENGTHS>()?;
    let length = |at: usize| Some(u32::from_le_bytes(*lengths[at..].first_chunk()?) as usize);
    let (key, rest) = rest.split_at_checked(length(0)?)?;
    Some((key, rest.get(..length(4)?)?))
}
