//! What a search looks for, and how far it has come.

use memchr::memmem::Finder;

use super::bits::Bits;
use super::folded::{Folded, fold};
use super::grams::Wanted;

/// A text to look for, whatever the case of its letters.
#[derive(Clone, Debug)]
pub(in crate::mirror) struct Needle {
    finder: Finder<'static>,
    wanted: Wanted,
}

impl Needle {
    pub(in crate::mirror) fn new(text: &str) -> Self {
        let folded: String = text.chars().map(fold).collect();
        Self { finder: Finder::new(folded.as_bytes()).into_owned(), wanted: Wanted::of(folded.as_bytes()) }
    }
}

/// Whose text has the needle, as far as the text was read.
///
/// Text is only ever appended, so a search that is made again goes on where it ended: what changed since is all that it
/// reads.
#[derive(Clone, Debug, Default)]
pub(in crate::mirror) struct Matches {
    generation: u64,
    until: usize,
    owners: Bits,
}

impl Matches {
    /// The owners that were found.
    pub(in crate::mirror) fn owners(&self) -> &Bits {
        &self.owners
    }

    /// Reads on, about `most` bytes. Gives whether there is more to read.
    pub(super) fn read_on(&mut self, text: &Folded, needle: &Needle, most: usize) -> bool {
        if self.generation != text.generation() {
            *self = Self { generation: text.generation(), ..Self::default() };
        }
        let range = self.until..text.boundary(self.until.saturating_add(most));
        if range.start > 0 {
            // Whoever has a new piece may have had another one before.
            text.owners(range.clone(), |owner| self.owners.remove(owner as usize));
        }
        text.search(range.clone(), &needle.finder, &needle.wanted, |owner| self.owners.insert(owner as usize));
        self.until = range.end;
        self.until < text.len()
    }
}
