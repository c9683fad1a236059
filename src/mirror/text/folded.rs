//! Text in lower case, with a note of what was in upper case.
//!
//! A search that heeds no case would have to fold each text as it reads it, which costs ten times as much as reading
//! folded text. A second, folded copy would cost as much memory as the text. So only the folded text is kept, and one bit
//! a byte says which letters were capitals.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::{memchr, memrchr};

use super::bits::Bits;
use super::grams::{Grams, Wanted};

/// Stands before each piece. No text has it: it is no byte of UTF-8.
const MARK: u8 = 0xFF;

/// Stands between the fields of a piece, likewise.
const BETWEEN: u8 = 0xFE;

/// Stands for a field that is the same as the one two before it, likewise.
const SAME: u8 = 0xFD;

/// The mark, the number of the piece's owner, and its length.
const HEADER: usize = 1 + OWNER + LENGTH;

/// How many digits of seven bits an owner's number has, so that none of them is a mark.
const OWNER: usize = 4;

/// How many the length of a piece has, likewise.
const LENGTH: usize = 2;

/// The owner of a piece that was given up.
const NOBODY: u32 = (1 << 28) - 1;

/// How many stores of text there were. Each has a number of its own, by which a search knows that it goes on where it
/// was.
static GENERATIONS: AtomicU64 = AtomicU64::new(1);

/// Pieces of folded text one behind the other, each with the number of its owner and some fields.
///
/// Pieces are only ever appended. What nobody owns any more is counted, and squeezed out by its owner's order.
#[derive(Debug)]
pub(super) struct Folded {
    bytes: Vec<u8>,
    capitals: Bits,
    /// Where a search has to look. Of text that is settled; before, nobody searches.
    grams: Grams,
    unused: usize,
    generation: u64,
    /// Whether a search may have read it: then nothing is taken back from its end.
    is_settled: bool,
}

impl Default for Folded {
    fn default() -> Self {
        let generation = GENERATIONS.fetch_add(1, Ordering::Relaxed);
        Self {
            bytes: Vec::new(),
            capitals: Bits::default(),
            grams: Grams::default(),
            unused: 0,
            generation,
            is_settled: false,
        }
    }
}

impl Folded {
    /// Appends a piece, and gives where it starts. Fields at its end that are empty cost nothing.
    pub(super) fn push<T: AsRef<str>>(&mut self, owner: u32, fields: &[T]) -> usize {
        let start = self.bytes.len();
        self.bytes.push(MARK);
        self.bytes.extend(digits::<OWNER>(owner));
        self.bytes.extend([0; LENGTH]);
        let used = fields.iter().rposition(|field| !field.as_ref().is_empty()).map_or(0, |last| last + 1);
        for at in 0..used {
            if at > 0 {
                self.bytes.push(BETWEEN);
            }
            let field = fields[at].as_ref();
            if at >= 2 && !field.is_empty() && field == fields[at - 2].as_ref() {
                self.bytes.push(SAME);
            } else {
                self.fold(field);
            }
        }
        let length = u32::try_from(self.bytes.len() - start).expect("the fields of a piece are cut");
        self.bytes[start + 1 + OWNER..start + HEADER].copy_from_slice(&digits::<LENGTH>(length));
        if self.is_settled {
            self.grams.add(start, &self.bytes[start + HEADER..]);
        }
        start
    }

    fn fold(&mut self, text: &str) {
        if text.is_ascii() {
            // As nearly all texts are.
            let start = self.bytes.len();
            self.bytes.extend_from_slice(text.as_bytes());
            for (at, byte) in (start..).zip(&mut self.bytes[start..]) {
                if byte.is_ascii_uppercase() {
                    byte.make_ascii_lowercase();
                    self.capitals.insert(at);
                }
            }
            return;
        }
        for c in text.chars() {
            let folded = fold(c);
            if folded != c {
                self.capitals.insert(self.bytes.len());
            }
            self.bytes.extend_from_slice(folded.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// A field of the piece that starts there, as it was pushed.
    pub(super) fn field(&self, start: usize, field: usize) -> Cow<'_, str> {
        let mut at = start + HEADER;
        let end = self.end(start);
        for _ in 0..field {
            match memchr(BETWEEN, &self.bytes[at..end]) {
                Some(length) => at += length + 1,
                None => return Cow::Borrowed(""),
            }
        }
        let end = memchr(BETWEEN, &self.bytes[at..end]).map_or(end, |length| at + length);
        if self.bytes[at..end] == [SAME] {
            return self.field(start, field - 2);
        }
        let folded = std::str::from_utf8(&self.bytes[at..end]).expect("only characters stand between the marks");
        if !self.capitals.meets(at..end) {
            return Cow::Borrowed(folded);
        }
        let unfold = |(offset, c)| if self.capitals.has(at + offset) { unfold(c).unwrap_or(c) } else { c };
        Cow::Owned(folded.char_indices().map(unfold).collect())
    }

    fn end(&self, start: usize) -> usize {
        start + number(&self.bytes[start + 1 + OWNER..start + HEADER]) as usize
    }

    /// Gives up the piece that starts there.
    pub(super) fn release(&mut self, start: usize) {
        let end = self.end(start);
        // One at the end can just be taken back: a walk fills a job's fields from two znodes, one after the other.
        if end == self.bytes.len() && !self.is_settled {
            self.bytes.truncate(start);
            self.capitals.truncate(start);
        } else {
            self.bytes[start + 1..start + 1 + OWNER].copy_from_slice(&digits::<OWNER>(NOBODY));
            self.unused += end - start;
        }
    }

    /// Whether more is unused than used.
    pub(super) fn is_sparse(&self) -> bool {
        self.unused > 64 * 1024 && self.unused * 2 > self.bytes.len()
    }

    /// Moves all pieces that have an owner into a new piece of memory. `moved` is told each owner and where its piece
    /// starts now.
    pub(super) fn squeeze(&mut self, mut moved: impl FnMut(u32, usize)) {
        let mut new = Self { is_settled: self.is_settled, ..Self::default() };
        new.bytes.reserve_exact(self.bytes.len() - self.unused);
        let mut start = 0;
        while start < self.bytes.len() {
            let end = self.end(start);
            let owner = self.owner(start);
            if owner != NOBODY {
                let at = new.bytes.len();
                moved(owner, at);
                new.bytes.extend_from_slice(&self.bytes[start..end]);
                if new.is_settled {
                    new.grams.add(at, &self.bytes[start + HEADER..end]);
                }
                for from in (start..end).step_by(64) {
                    let mut capitals = self.capitals.window(from);
                    while capitals != 0 {
                        let offset = from + capitals.trailing_zeros() as usize - start;
                        if offset < end - start {
                            new.capitals.insert(at + offset);
                        }
                        capitals &= capitals - 1;
                    }
                }
            }
            start = end;
        }
        *self = new;
    }

    fn owner(&self, start: usize) -> u32 {
        number(&self.bytes[start + 1..start + 1 + OWNER])
    }

    /// Gives back the memory that growing has set aside, and takes nothing back from the end from now on.
    pub(super) fn settle(&mut self) {
        self.bytes.shrink_to_fit();
        self.capitals.shrink();
        if !std::mem::replace(&mut self.is_settled, true) {
            let mut start = 0;
            while start < self.bytes.len() {
                let end = self.end(start);
                self.grams.add(start, &self.bytes[start + HEADER..end]);
                start = end;
            }
        }
        self.grams.shrink();
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How many bytes belong to somebody.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.bytes.len() - self.unused
    }

    /// The first start of a piece at or behind a position, or the end.
    pub(super) fn boundary(&self, at: usize) -> usize {
        let at = at.min(self.bytes.len());
        memchr(MARK, &self.bytes[at..]).map_or(self.bytes.len(), |length| at + length)
    }

    /// Tells the owner of each piece in a range (of whole pieces) that has a folded text in one of its fields, once each.
    pub(super) fn search(
        &self,
        range: Range<usize>,
        finder: &memchr::memmem::Finder<'_>,
        wanted: &Wanted,
        mut found: impl FnMut(u32),
    ) {
        for part in self.grams.parts(range.clone(), wanted) {
            // A piece belongs to the part in which it starts.
            let part = self.boundary(part.start)..self.boundary(part.end).min(range.end);
            self.search_all(part, finder, &mut found);
        }
    }

    fn search_all(&self, range: Range<usize>, finder: &memchr::memmem::Finder<'_>, found: &mut impl FnMut(u32)) {
        let bytes = &self.bytes[..range.end];
        let mut found = |start: usize| {
            let owner = self.owner(start);
            if owner != NOBODY {
                found(owner);
            }
        };
        // Where the next piece starts that has not been told of.
        let mut at = range.start;
        let mut from = at;
        while let Some(offset) = finder.find(&bytes[from..]) {
            let hit = from + offset;
            let is_near = hit < self.end(at);
            let start = if is_near { Some(at) } else { memrchr(MARK, &bytes[at..hit]).map(|offset| at + offset) };
            let start = start.expect("a hit lies behind the mark of its piece");
            if hit < start + HEADER {
                (at, from) = (start, hit + 1);
                continue;
            }
            found(start);
            at = self.end(start);
            // Jobs of one depositor look alike: where one has the text, the next one mostly has it in the same place.
            let place = hit - start..hit - start + finder.needle().len();
            while at < range.end && at + place.end <= self.end(at) && bytes[at..][place.clone()] == *finder.needle() {
                found(at);
                at = self.end(at);
            }
            from = at;
        }
    }

    /// Tells the owner of each piece in a range (of whole pieces).
    pub(super) fn owners(&self, range: Range<usize>, mut found: impl FnMut(u32)) {
        let mut start = range.start;
        while start < range.end {
            let owner = self.owner(start);
            if owner != NOBODY {
                found(owner);
            }
            start = self.end(start);
        }
    }
}

fn digits<const N: usize>(number: u32) -> [u8; N] {
    assert!(number < 1 << (7 * N), "there are fewer rows, and shorter pieces, than these digits can number");
    std::array::from_fn(|at| (number >> (7 * (N - 1 - at)) & 0x7F) as u8)
}

fn number(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |number, digit| number << 7 | u32::from(*digit))
}

/// A character in lower case, where that takes as many bytes and leads back. Others stay as they are: a text keeps its
/// length, and can be told again as it was.
pub(super) fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    match single(c.to_lowercase()) {
        Some(lower) if lower.len_utf8() == c.len_utf8() && unfold(lower) == Some(c) => lower,
        Some(_) | None => c,
    }
}

fn unfold(c: char) -> Option<char> {
    single(c.to_uppercase())
}

fn single(mut characters: impl Iterator<Item = char>) -> Option<char> {
    let first = characters.next()?;
    characters.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_comes_back_as_it_was() {
        let all: Vec<_> = (0..=u32::from(char::MAX)).filter_map(char::from_u32).collect();
        let mut folded = Folded::default();
        for some in all.chunks(4_000) {
            let some: String = some.iter().collect();
            let before = folded.len();
            let start = folded.push(7, &["", &some]);
            assert_eq!(folded.field(start, 1), some);
            assert_eq!(folded.field(start, 0), "");
            assert_eq!(folded.field(start, 2), "");
            assert_eq!(folded.len() - before, some.len() + HEADER + 1);
        }
        let start = folded.push(7, &["The Mixed CASE", "next"]);
        assert_eq!((&*folded.field(start, 0), &*folded.field(start, 1)), ("The Mixed CASE", "next"));
        assert!(folded.bytes[start..].windows(14).any(|bytes| bytes == b"the mixed case"));
        assert_eq!([fold('É'), fold('ж'), fold('Ж'), fold('ẞ'), fold('İ')], ['é', 'ж', 'ж', 'ẞ', 'İ']);
    }
}
