//! Sorting records.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::merged::Merged;
use super::record::Records;
use super::table::{Spill, Table};

/// How many bytes of records are sorted in memory; more are written to a file in sorted segments.
const SEGMENT_BYTES: usize = 256 << 10;

/// Takes records in any order.
pub(crate) struct Sorter {
    directory: Arc<Path>,
    records: Records,
    spill: Option<Spill>,
    segments: Vec<Table>,
}

impl Sorter {
    /// One whose temporary files are in this directory.
    pub(crate) fn new(directory: &Arc<Path>) -> Self {
        Self { directory: Arc::clone(directory), records: Records::default(), spill: None, segments: Vec::new() }
    }

    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.records.push(key, value);
        if self.records.size() < SEGMENT_BYTES {
            return Ok(());
        }
        self.records.sort();
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::new(&self.directory)?),
        };
        let mut segment = spill.table();
        for (key, value) in self.records.iter() {
            segment.push(key, value)?;
        }
        self.segments.push(segment.finish()?);
        self.records.clear();
        Ok(())
    }

    /// All records, to be read once.
    pub(crate) fn merged(self) -> Merged {
        Merged::new(&self.into_segments(), b"")
    }

    /// All records, to be read again and again and from any key on.
    pub(crate) fn finish(self) -> io::Result<Table> {
        let directory = Arc::clone(&self.directory);
        let segments = self.into_segments();
        if let [only] = segments.as_slice() {
            return Ok(only.clone());
        }
        let mut spill = Spill::new(&directory)?;
        let mut table = spill.table();
        for record in Merged::new(&segments, b"") {
            let record = record?;
            table.push(record.key(), record.value())?;
        }
        table.finish()
    }

    /// Sorted tables that have all records: at least one.
    fn into_segments(mut self) -> Vec<Table> {
        if self.segments.is_empty() || !self.records.is_empty() {
            self.records.sort();
            self.segments.push(Table::in_memory(self.records));
        }
        self.segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_out_in_order_whether_they_fit_into_memory_or_not() {
        for count in [0, 1, 1000, 120_000_u64] {
            let mut sorter = Sorter::new(&Arc::from(std::env::temp_dir()));
            // A permutation of the numbers, each tenth one twice.
            let numbers =
                (0..count).flat_map(|number| std::iter::repeat_n(number, if number % 10 == 0 { 2 } else { 1 }));
            for number in numbers.clone() {
                let key = number.wrapping_mul(7919) % count.max(1);
                sorter.push(&key.to_be_bytes(), &(2 * key).to_le_bytes()).unwrap();
            }
            let table = sorter.finish().unwrap();
            let found: Vec<_> = Merged::new([&table], b"").collect::<io::Result<_>>().unwrap();
            assert!(found.len() == numbers.count() && found.is_sorted());
            assert!(found.iter().all(|record| record.value().len() == 8));

            let (mut forward, mut number) = (Merged::new([&table], b""), 0);
            while number < count {
                assert!(forward.has(&number.to_be_bytes()).unwrap(), "{number} of {count}");
                number += 1 + number / 3;
            }
            assert!(!forward.has(&count.to_be_bytes()).unwrap());
            let prefix = 256_u64.to_be_bytes();
            let within = Merged::new([&table, &table], &prefix[..7]).count();
            let expected = found.iter().filter(|record| record.key().starts_with(&prefix[..7])).count();
            assert_eq!(within, 2 * expected);
        }
    }
}
