//! The text of many rows, some fields of each.

use std::ops::Range;

use super::bits::Bits;
use super::cut;
use super::folded::{Folded, Needle, pack};

/// How many rows lie in one piece of memory: so few that replacing one moves some KB at most, and so many that a search
/// scans from end to end instead of waiting for the memory of each row.
const ROWS: usize = if cfg!(test) { 4 } else { 32 };

/// Some rows of text, one behind the other.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    /// Where each row ends.
    ends: [u32; ROWS],
}

impl Block {
    fn range(&self, at: usize) -> Range<usize> {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        start as usize..self.ends[at] as usize
    }

    fn replace(&mut self, at: usize, packed: &[u8]) {
        let range = self.range(at);
        let length = |length: usize| u32::try_from(length).expect("the fields of a row are cut");
        let (before, after) = (length(range.len()), length(packed.len()));
        self.bytes.splice(range, packed.iter().copied());
        self.ends[at..].iter_mut().for_each(|end| *end = *end - before + after);
    }

    /// Whether a row has a text at a place. Behind its text a row has the bits of its capitals, which may look like
    /// text.
    fn has(&self, at: usize, place: usize, needle: &Needle) -> bool {
        let row = Folded(&self.bytes[self.range(at)]);
        row.0[..row.len()].get(place..).is_some_and(|rest| needle.begins(rest))
    }

    /// The rows that contain a text.
    fn search(&self, needle: &Needle) -> impl Iterator<Item = usize> {
        let (mut from, mut at, mut place) = (0, 0, 0);
        std::iter::from_fn(move || {
            loop {
                while *self.ends.get(at)? as usize <= from {
                    at += 1;
                }
                // Jobs of one depositor look alike: where one has the text, the next one mostly has it in the same
                // place.
                let is_there = self.has(at, place, needle);
                if !is_there {
                    let hit = from + needle.find(&self.bytes[from..])?;
                    while self.ends[at] as usize <= hit {
                        at += 1;
                    }
                    place = hit - self.range(at).start;
                }
                from = self.range(at).end;
                if is_there || self.has(at, place, needle) {
                    return Some(at);
                }
            }
        })
    }
}

/// The text of many rows. A row that was never set is empty.
#[derive(Debug, Default)]
pub(in crate::mirror) struct TextColumn {
    blocks: Vec<Block>,
}

impl TextColumn {
    /// How many fields a row has at most.
    pub(in crate::mirror) const FIELDS: usize = 9;

    pub(in crate::mirror) fn get(&self, row: usize) -> Folded<'_> {
        let block = self.blocks.get(row / ROWS);
        block.map_or_else(Folded::default, |block| Folded(&block.bytes[block.range(row % ROWS)]))
    }

    /// Replaces all fields of a row.
    pub(in crate::mirror) fn put<T: AsRef<str>>(&mut self, row: usize, fields: &[T]) {
        if self.blocks.len() <= row / ROWS {
            self.blocks.resize_with(row / ROWS + 1, Block::default);
        }
        self.blocks[row / ROWS].replace(row % ROWS, &pack(fields));
    }

    /// Replaces some fields of a row, cut; the others stay as they are. Returns whether any text changed.
    pub(in crate::mirror) fn set(&mut self, row: usize, fields: &[(usize, &str)]) -> bool {
        let old = self.get(row);
        let fields: Vec<_> = fields.iter().map(|(field, text)| (*field, cut(text))).collect();
        if fields.iter().all(|(field, text)| old.field(*field) == *text) {
            return false;
        }
        let mut all: [_; Self::FIELDS] = std::array::from_fn(|field| old.field(field).into_owned());
        for (field, text) in fields {
            all[field] = text.into_owned();
        }
        self.put(row, &all);
        true
    }

    pub(in crate::mirror) fn clear(&mut self, row: usize) {
        self.put(row, &[""]);
    }

    /// The rows that have a text in one of their fields.
    pub(in crate::mirror) fn search(&self, needle: &Needle) -> Bits {
        let blocks = self.blocks.iter().enumerate();
        blocks.flat_map(|(at, block)| block.search(needle).map(move |row| at * ROWS + row)).collect()
    }

    /// Gives back the memory that growing has set aside.
    pub(in crate::mirror) fn shrink(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.bytes.shrink_to_fit());
        self.blocks.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_column_gives_back_what_was_set_and_finds_it(
            steps in proptest::collection::vec((0usize..10, 0..TextColumn::FIELDS, "[abAB0Éé]{0,5}", 0u8..9), 0..120),
        ) {
            let mut column = TextColumn::default();
            let mut plain: [[String; TextColumn::FIELDS]; 10] = Default::default();
            for (row, field, text, what) in steps {
                match what {
                    0 => {
                        column.clear(row);
                        plain[row] = Default::default();
                    }
                    1 => column.shrink(),
                    _ => {
                        prop_assert_eq!(column.set(row, &[(field, &text)]), plain[row][field] != text);
                        plain[row][field] = text;
                    }
                }
                for (row, plain) in plain.iter().enumerate() {
                    for (field, text) in plain.iter().enumerate() {
                        prop_assert_eq!(column.get(row).field(field), text.as_str());
                    }
                }
                for needle in ["aB", "É", "0", "bbb"] {
                    let folded = needle.to_lowercase();
                    let has = |plain: &[String; TextColumn::FIELDS]| plain.iter().any(|text| text.to_lowercase().contains(&folded));
                    let found = column.search(&Needle::new(needle));
                    prop_assert!(plain.iter().enumerate().all(|(row, plain)| found.has(row) == has(plain)));
                }
            }
        }
    }

    #[test]
    fn a_column_takes_no_more_room_than_its_rows_need() {
        let mut column = TextColumn::default();
        for row in 0..2 * ROWS + 3 {
            column.put(row, &["a text of some length"]);
        }
        assert_eq!(column.blocks.len(), 3);
        let spare = |column: &TextColumn| -> usize {
            column.blocks.iter().map(|block| block.bytes.capacity() - block.bytes.len()).sum()
        };
        assert!(spare(&column) > 0);
        column.shrink();
        assert_eq!(spare(&column), 0);
    }

    #[test]
    fn the_bits_of_capitals_are_not_found_as_text() {
        let mut column = TextColumn::default();
        column.put(0, &["XxxxxXXx"]);
        column.put(1, &["xyz"]);
        assert_eq!(column.blocks[0].bytes[..9], *b"xxxxxxxxa");
        assert!(column.search(&Needle::new("axyz")).is_empty());
        assert!(column.search(&Needle::new("a")).is_empty() && column.search(&Needle::new("xyz")).has(1));
    }
}
