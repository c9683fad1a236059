//! Going through all rows, block by block, with nothing but comparisons of whole columns.
//!
//! Each step leaves a mark for the rows that are still wanted, one byte each. Its loop has no branches, so that many
//! rows are looked at at once; a row by itself is looked at only if it may be on the page.

use std::ops::Range;

use super::select::{Selection, TURNED};
use super::{Filter, TextMatches};
use crate::mirror::image::columns::Columns;

/// How many rows are looked at at once: so many that their marks stay in the processor's nearest cache, and at most 255
/// times eight, so that [`count`] can add them up byte by byte. A multiple of 64, since the bits of a
/// search are looked at by the word. The fewest in tests, whose jobs fill several blocks then.
const BLOCK: usize = if cfg!(test) { 64 } else { 1024 };

/// One mark a row: 1 where it is wanted, else 0.
type Marks = [u8; BLOCK];

/// A value that jobs are sorted by.
pub(super) trait Value: Copy + Ord {
    /// The value as the upper bits of a place.
    fn wide(self) -> u64;

    /// The value that has these upper bits; `None` where they are above those of all values.
    fn narrow(wide: u64) -> Option<Self>;
}

/// For an order by nothing but the number.
impl Value for () {
    fn wide(self) -> u64 {
        0
    }

    fn narrow(wide: u64) -> Option<Self> {
        (wide == 0).then_some(())
    }
}

impl Value for u8 {
    fn wide(self) -> u64 {
        self.into()
    }

    fn narrow(wide: u64) -> Option<Self> {
        wide.try_into().ok()
    }
}

impl Value for u32 {
    fn wide(self) -> u64 {
        self.into()
    }

    fn narrow(wide: u64) -> Option<Self> {
        wide.try_into().ok()
    }
}

impl Value for u64 {
    fn wide(self) -> u64 {
        self
    }

    fn narrow(wide: u64) -> Option<Self> {
        Some(wide)
    }
}

/// As unsigned numbers in the same order.
impl Value for i64 {
    fn wide(self) -> u64 {
        self.cast_unsigned() ^ 1 << 63
    }

    fn narrow(wide: u64) -> Option<Self> {
        Some((wide ^ 1 << 63).cast_signed())
    }
}

/// An order of the rows: by a value, and by the job's number where values are alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<'a, T> {
    pub(super) values: &'a [T],
    pub(super) numbers: &'a [u32],
    /// What all places have above the value: [`SECOND`](super::select::SECOND) for rows that come behind others.
    pub(super) group: u128,
    pub(super) is_turned: bool,
}

impl<T: Value> Order<'_, T> {
    fn turn(&self, place: u128) -> u128 {
        if self.is_turned { place ^ TURNED } else { place }
    }

    pub(super) fn place(&self, row: usize) -> u128 {
        self.turn(self.group | u128::from(self.values[row].wide()) << 32 | u128::from(self.numbers[row]))
    }

    /// Takes the marks off the rows that do not come behind a place.
    fn only_behind(&self, place: u128, rows: Range<usize>, marks: &mut Marks) {
        self.only(place, true, rows, marks);
    }

    /// Takes the marks off the rows that do not come before a place.
    fn only_before(&self, place: u128, rows: Range<usize>, marks: &mut Marks) {
        self.only(place, false, rows, marks);
    }

    fn only(&self, place: u128, is_behind: bool, rows: Range<usize>, marks: &mut Marks) {
        if place > TURNED {
            if is_behind {
                marks.fill(0);
            }
            return;
        }
        let is_above = is_behind != self.is_turned;
        // From a place in the first group, all rows of the second one are above it.
        let Some(place) = self.turn(place).checked_sub(self.group) else {
            if !is_above {
                marks.fill(0);
            }
            return;
        };
        let number = u32::try_from(place & u128::from(u32::MAX)).expect("these are 32 bits");
        let value = u64::try_from(place >> 32).ok().and_then(T::narrow);
        let (values, numbers) = (&self.values[rows.clone()], &self.numbers[rows]);
        match value {
            None if is_above => marks.fill(0),
            None => {}
            Some(value) if is_above => {
                only(marks, values, |other| other >= value);
                if count(marks) > 0 {
                    only_both(marks, values, numbers, |other, its| other != value || its > number);
                }
            }
            Some(value) => {
                only(marks, values, |other| other <= value);
                if count(marks) > 0 {
                    only_both(marks, values, numbers, |other, its| other != value || its < number);
                }
            }
        }
    }
}

impl Filter<'_> {
    /// Counts the rows that pass, and puts those before a selection that may be on its page.
    pub(super) fn find<T: Value>(&self, columns: &Columns, order: Order<'_, T>, selection: &mut Selection) {
        let Some(few) = &self.few else { return self.scan(columns, order, selection) };
        for row in few {
            let at = *row as usize;
            if !self.has(columns, at) {
                continue;
            }
            let place = order.place(at);
            let is_beyond = selection.start().is_none_or(|start| place > start);
            selection.count(1, usize::from(is_beyond));
            if is_beyond {
                selection.push(place, *row);
            }
        }
    }

    pub(super) fn has(&self, columns: &Columns, row: usize) -> bool {
        let Self { kinds, few: _, collection, batch, entered_until, min_retries, sets, text } = self;
        kinds.has(columns.kind[row])
            && collection.is_none_or(|collection| columns.collection[row] == collection)
            && batch.is_none_or(|batch| columns.batch[row] == batch.number())
            && entered_until.is_none_or(|until| columns.entered_ms[row] <= until)
            && columns.retries[row] >= *min_retries
            && sets.iter().all(|set| set.has(row))
            && text.is_none_or(|text| text.has(columns, row))
    }

    fn scan<T: Value>(&self, columns: &Columns, order: Order<'_, T>, selection: &mut Selection) {
        let blocks = columns.len().div_ceil(BLOCK);
        let mut marks = [0; BLOCK];
        for block in 0..blocks {
            // The rows are mostly in the order of the ids, and so of time. In descending order, the
            // scan starts at the end, and can then skip most other rows quickly.
            let start = if order.is_turned { blocks - 1 - block } else { block } * BLOCK;
            let rows = start..(start + BLOCK).min(columns.len());
            marks[rows.len()..].fill(0);
            self.mark(columns, rows.clone(), &mut marks);
            let total = count(&marks);
            if total == 0 {
                continue;
            }
            let beyond = selection.start().map_or(total, |place| {
                order.only_behind(place, rows.clone(), &mut marks);
                count(&marks)
            });
            selection.count(total, beyond);
            if beyond == 0 {
                continue;
            }
            order.only_before(selection.end(), rows, &mut marks);
            marked(&marks, |at| {
                let row = start + at;
                selection.push(order.place(row), u32::try_from(row).expect("rows are numbered by 32 bits"));
            });
        }
    }

    /// Calls for each row that passes.
    pub(super) fn visit_all(&self, columns: &Columns, mut call: impl FnMut(usize)) {
        let mut marks = [0; BLOCK];
        for start in (0..columns.len()).step_by(BLOCK) {
            let rows = start..(start + BLOCK).min(columns.len());
            marks[rows.len()..].fill(0);
            self.mark(columns, rows, &mut marks);
            marked(&marks, |at| call(start + at));
        }
    }

    fn mark(&self, columns: &Columns, rows: Range<usize>, marks: &mut Marks) {
        let Self { kinds, few: _, collection, batch, entered_until, min_retries, sets, text } = self;
        kinds.mark(&columns.kind[rows.clone()], marks);
        if let Some(collection) = collection {
            only(marks, &columns.collection[rows.clone()], |value| value == *collection);
        }
        if let Some(batch) = batch {
            only(marks, &columns.batch[rows.clone()], |value| value == batch.number());
        }
        if let Some(until) = entered_until {
            only(marks, &columns.entered_ms[rows.clone()], |value| value <= *until);
        }
        if *min_retries > 0 {
            only(marks, &columns.retries[rows.clone()], |value| value >= *min_retries);
        }
        for set in sets {
            let mut found = [0; BLOCK];
            unpack(rows.clone(), |at| set.window(at), &mut found);
            both(marks, &found);
        }
        if let Some(text) = text {
            text.mark(columns, rows, marks);
        }
    }
}

impl TextMatches {
    /// With so few shared texts each of them is looked for in the whole column.
    const FEW: usize = 4;

    fn mark(&self, columns: &Columns, rows: Range<usize>, marks: &mut Marks) {
        let mut found = [0; BLOCK];
        unpack(rows.clone(), |at| self.own.window(at), &mut found);
        let mut shared = self.shared_texts().take(Self::FEW + 1);
        let few: [_; Self::FEW] = std::array::from_fn(|_| shared.next());
        if shared.next().is_none() {
            for text in few.into_iter().flatten() {
                let texts = columns.message[rows.clone()].iter().zip(&columns.submitter[rows.clone()]);
                for (found, (message, submitter)) in found.iter_mut().zip(texts) {
                    *found |= u8::from(*message == text || *submitter == text);
                }
            }
            both(marks, &found);
        } else {
            let own = found;
            marked(marks, |at| found[at] |= u8::from(own[at] == 0 && self.has_shared(columns, rows.start + at)));
            both(marks, &found);
        }
    }
}

/// Calls for each row that has a mark.
fn marked(marks: &Marks, mut call: impl FnMut(usize)) {
    for (word, bytes) in marks.as_chunks::<8>().0.iter().enumerate() {
        let mut rest = u64::from_le_bytes(*bytes);
        while rest != 0 {
            call(word * 8 + rest.trailing_zeros() as usize / 8);
            rest &= rest - 1;
        }
    }
}

/// How many rows have a mark.
fn count(marks: &Marks) -> usize {
    // Eight at once: in each byte of the sum there is room for as many as there are words.
    let words = marks.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    words.sum::<u64>().to_le_bytes().iter().map(|byte| usize::from(*byte)).sum()
}

/// Writes bits as marks, 64 of them at once where they are alike.
fn unpack(rows: Range<usize>, window: impl Fn(usize) -> u64, marks: &mut Marks) {
    for (at, marks) in rows.step_by(64).zip(marks.as_chunks_mut::<64>().0) {
        match window(at) {
            0 => marks.fill(0),
            u64::MAX => marks.fill(1),
            bits => marks.iter_mut().enumerate().for_each(|(bit, mark)| *mark = u8::from(bits >> bit & 1 == 1)),
        }
    }
}

fn both(marks: &mut Marks, other: &Marks) {
    marks.iter_mut().zip(other).for_each(|(mark, other)| *mark &= other);
}

fn only<T: Copy>(marks: &mut Marks, column: &[T], test: impl Fn(T) -> bool) {
    for (mark, value) in marks.iter_mut().zip(column) {
        *mark &= u8::from(test(*value));
    }
}

fn only_both<T: Copy, U: Copy>(marks: &mut Marks, column: &[T], other: &[U], test: impl Fn(T, U) -> bool) {
    for (mark, (value, other)) in marks.iter_mut().zip(column.iter().zip(other)) {
        *mark &= u8::from(test(*value, *other));
    }
}
