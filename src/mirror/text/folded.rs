//! Text in lower case, with a record of which letters were in upper case.
//!
//! A search that ignores case would have to fold each text as it scans it, which costs ten times as much as scanning
//! folded text. A second, folded copy would cost as much memory as the text. So only the folded text is kept, and one
//! bit a byte marks the capitals.

use std::borrow::Cow;

use memchr::memchr;
use memchr::memmem::Finder;

/// Stands between two fields. No text contains it: it is no byte of UTF-8.
const SEPARATOR: u8 = 0xFE;

/// Stands for a field that is the same as the one two before it, likewise.
const SAME: u8 = 0xFD;

/// A text to search for, whatever the case of its letters.
#[derive(Clone, Debug)]
pub(in crate::mirror) struct Needle {
    finder: Finder<'static>,
}

impl Needle {
    pub(in crate::mirror) fn new(text: &str) -> Self {
        let folded: String = text.chars().map(fold).collect();
        Self { finder: Finder::new(folded.as_bytes()).into_owned() }
    }

    /// Where it is in folded text.
    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        self.finder.find(text)
    }

    /// Whether folded text begins with it.
    pub(super) fn begins(&self, text: &[u8]) -> bool {
        text.starts_with(self.finder.needle())
    }
}

/// Some fields of text as they are kept: the folded text, and behind it one bit for each of its bytes. Empty fields at
/// the end cost nothing.
pub(super) fn pack<T: AsRef<str>>(fields: &[T]) -> Vec<u8> {
    let used = fields.iter().rposition(|field| !field.as_ref().is_empty()).map_or(0, |last| last + 1);
    let (mut bytes, mut capitals) = (Vec::new(), Vec::new());
    for at in 0..used {
        if at > 0 {
            bytes.push(SEPARATOR);
        }
        let field = fields[at].as_ref();
        if at >= 2 && !field.is_empty() && field == fields[at - 2].as_ref() {
            bytes.push(SAME);
        } else {
            append(field, &mut bytes, &mut capitals);
        }
    }
    let length = bytes.len();
    bytes.resize(length + length.div_ceil(8), 0);
    for at in capitals {
        bytes[length + at / 8] |= 1 << (at % 8);
    }
    bytes
}

/// What [`pack`] made of some fields.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::mirror) struct Folded<'a>(pub(super) &'a [u8]);

impl<'a> Folded<'a> {
    /// How many bytes the folded text has.
    pub(super) fn len(self) -> usize {
        self.0.len() * 8 / 9
    }

    /// A field as it was given.
    pub(in crate::mirror) fn field(self, field: usize) -> Cow<'a, str> {
        let (text, capitals) = self.0.split_at(self.len());
        let mut start = 0;
        for _ in 0..field {
            match memchr(SEPARATOR, &text[start..]) {
                Some(length) => start += length + 1,
                None => return Cow::Borrowed(""),
            }
        }
        let end = memchr(SEPARATOR, &text[start..]).map_or(text.len(), |length| start + length);
        if text[start..end] == [SAME] {
            return self.field(field - 2);
        }
        let folded = std::str::from_utf8(&text[start..end]).expect("only characters stand between the separators");
        let is_capital = |at: usize| capitals[at / 8] >> (at % 8) & 1 == 1;
        if !(start..end).any(is_capital) {
            return Cow::Borrowed(folded);
        }
        let unfold = |(offset, c)| if is_capital(start + offset) { unfold(c).unwrap_or(c) } else { c };
        Cow::Owned(folded.char_indices().map(unfold).collect())
    }
}

/// Appends a text in lower case, and the positions of its capitals.
fn append(text: &str, bytes: &mut Vec<u8>, capitals: &mut Vec<usize>) {
    for c in text.chars() {
        let folded = fold(c);
        if folded != c {
            capitals.push(bytes.len());
        }
        bytes.extend_from_slice(folded.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// A character in lower case, where that takes as many bytes and leads back. Others stay as they are: a text keeps its
/// length, and can be restored.
fn fold(c: char) -> char {
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
        for some in all.chunks(4_000) {
            let some: String = some.iter().collect();
            let packed = pack(&["", &some]);
            let folded = Folded(&packed);
            assert_eq!(folded.field(1), some);
            assert_eq!(folded.field(0), "");
            assert_eq!(folded.field(2), "");
            assert_eq!(folded.len(), some.len() + 1);
        }
        let packed = pack(&["The Mixed CASE", "next"]);
        assert_eq!((&*Folded(&packed).field(0), &*Folded(&packed).field(1)), ("The Mixed CASE", "next"));
        assert!(packed.starts_with(b"the mixed case"));
        assert_eq!([fold('É'), fold('ж'), fold('Ж'), fold('ẞ'), fold('İ')], ['é', 'ж', 'ж', 'ẞ', 'İ']);
    }

    #[test]
    fn the_length_of_a_text_follows_from_that_of_the_whole() {
        for length in 0..100 {
            let text = "Z".repeat(length);
            let packed = pack(&[&text]);
            assert_eq!((Folded(&packed).len(), &*Folded(&packed).field(0)), (length, &*text));
        }
    }
}
