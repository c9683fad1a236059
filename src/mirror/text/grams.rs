//! Which parts of a text may have a needle, told without reading them.
//!
//! For each part there are some bits, and each four bytes in a row that it has set one of them. A needle can only be
//! where the bits of all its fours are set. Nobody takes a bit back: a part whose text is given up is read for nothing
//! until it is squeezed out.

/// How many bytes of text a part has. In tests so few that there are many parts.
const PART: usize = if cfg!(test) { 64 } else { 64 * 1024 };

/// The logarithm of how many bits a part has: one for each byte of it, but in tests. That are three or four for each four that no
/// other job of the part has, so that a needle with several such fours is hardly ever looked for in vain.
const LOG: u32 = if cfg!(test) { 12 } else { 16 };

const WORDS: usize = 1 << LOG >> 6;

/// How many fours of a needle are looked up at most.
const MOST: usize = 16;

/// The bits of each part.
#[derive(Debug, Default)]
pub(super) struct Grams {
    words: Vec<u64>,
}

/// The fours of a needle, as the bits that stand for them.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    bits: Vec<usize>,
}

impl Wanted {
    pub(super) fn of(needle: &[u8]) -> Self {
        let mut bits: Vec<_> = fours(needle).collect();
        bits.sort_unstable();
        bits.dedup();
        bits.truncate(MOST);
        Self { bits }
    }
}

impl Grams {
    /// Takes note of a text in the part that has the position.
    pub(super) fn add(&mut self, at: usize, text: &[u8]) {
        let first = at / PART * WORDS;
        if self.words.len() < first + WORDS {
            self.words.resize(first + WORDS, 0);
        }
        let words = &mut self.words[first..first + WORDS];
        fours(text).for_each(|bit| words[bit / 64] |= 1 << (bit % 64));
    }

    /// The runs of parts in a range of positions that may have a needle. A range that ends within a part is cut off there.
    pub(super) fn parts(&self, range: std::ops::Range<usize>, wanted: &Wanted) -> Vec<std::ops::Range<usize>> {
        let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let part = start / PART;
            let end = ((part + 1) * PART).min(range.end);
            if self.may_have(part, wanted) {
                match runs.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    Some(_) | None => runs.push(start..end),
                }
            }
            start = end;
        }
        runs
    }

    fn may_have(&self, part: usize, wanted: &Wanted) -> bool {
        // Of a part without bits nothing is known.
        let words = self.words.get(part * WORDS..(part + 1) * WORDS);
        words.is_none_or(|words| wanted.bits.iter().all(|bit| words[bit / 64] >> (bit % 64) & 1 == 1))
    }

    pub(super) fn shrink(&mut self) {
        self.words.shrink_to_fit();
    }
}

/// The bits that stand for the fours of a text.
fn fours(text: &[u8]) -> impl Iterator<Item = usize> {
    text.array_windows::<4>().map(|four| {
        let mixed = u32::from_le_bytes(*four).wrapping_mul(0x9E37_79B1);
        (mixed >> (u32::BITS - LOG)) as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_without_a_four_of_the_needle_is_left_out() {
        let mut grams = Grams::default();
        grams.add(10, b"abcde");
        grams.add(2 * PART, b"xbcdex");
        grams.add(3 * PART + 5, b"cdefg");
        let parts = |needle: &[u8]| grams.parts(3..3 * PART + 9, &Wanted::of(needle));
        assert_eq!(parts(b"abcd"), vec![3..PART]);
        assert_eq!(parts(b"bcde"), [3..PART, 2 * PART..3 * PART]);
        assert_eq!(parts(b"cde"), vec![3..3 * PART + 9]);
        assert!(parts(b"nope").is_empty());
        // Of what was not taken note of everything may be true.
        assert_eq!(grams.parts(4 * PART..5 * PART, &Wanted::of(b"nope")), vec![4 * PART..5 * PART]);
    }
}
