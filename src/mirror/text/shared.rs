//! Texts that many items share.

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::bits::Bits;
use super::column::TextColumn;
use super::cut;
use super::folded::Needle;

/// A text in a [`Texts`] table. The default is the empty text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::mirror) struct TextId(u32);

impl TextId {
    /// The number of this text in what [`Texts::search`] returns; `None` for the empty one, in which nothing is found.
    pub(in crate::mirror) fn slot(self) -> Option<usize> {
        self.0.checked_sub(1).map(|slot| slot as usize)
    }

    /// The text of that number.
    pub(in crate::mirror) fn at(slot: usize) -> Self {
        Self(u32::try_from(slot + 1).expect("texts are numbered by 32 bits"))
    }
}

/// Collections, submitters, messages: each text is kept once, for as long as a reader uses it.
#[derive(Debug, Default)]
pub(in crate::mirror) struct Texts {
    text: TextColumn,
    /// How often each text is used.
    uses: Vec<u32>,
    by_text: HashTable<u32>,
    free: Vec<u32>,
    hasher: DefaultHashBuilder,
}

impl Texts {
    pub(in crate::mirror) fn get(&self, id: TextId) -> Arc<str> {
        self.str(id).into()
    }

    pub(in crate::mirror) fn str(&self, id: TextId) -> Cow<'_, str> {
        id.slot().map_or(Cow::Borrowed(""), |slot| self.text.get(slot).field(0))
    }

    /// The id of a text in use; `None` for the empty text and for an unused one.
    pub(in crate::mirror) fn find(&self, text: &str) -> Option<TextId> {
        let of = |slot: &u32| self.text.get(*slot as usize).field(0) == text;
        self.by_text.find(self.hasher.hash_one(text), of).map(|slot| TextId(slot + 1))
    }

    /// Replaces a text by another. Says whether it changed.
    pub(in crate::mirror) fn set(&mut self, id: &mut TextId, text: &str) -> bool {
        let text = cut(text);
        if self.str(*id) == text {
            return false;
        }
        self.release(id);
        *id = self.take(&text);
        true
    }

    fn take(&mut self, text: &str) -> TextId {
        if text.is_empty() {
            return TextId::default();
        }
        if let Some(id) = self.find(text) {
            self.uses[id.0 as usize - 1] += 1;
            return id;
        }
        let Self { text: column, uses, by_text, free, hasher } = self;
        let slot = free.pop().unwrap_or_else(|| {
            uses.push(0);
            u32::try_from(uses.len() - 1).expect("there are fewer texts than bytes in 4 GiB")
        });
        column.put(slot as usize, &[text]);
        uses[slot as usize] = 1;
        let rehash = |slot: &u32| hasher.hash_one(&*column.get(*slot as usize).field(0));
        by_text.insert_unique(hasher.hash_one(text), slot, rehash);
        TextId(slot + 1)
    }

    pub(in crate::mirror) fn release(&mut self, id: &mut TextId) {
        let Some(slot) = id.0.checked_sub(1) else { return };
        *id = TextId::default();
        let Self { text: column, uses, by_text, free, hasher } = self;
        let at = slot as usize;
        uses[at] -= 1;
        if uses[at] == 0 {
            let hash = hasher.hash_one(&*column.get(at).field(0));
            if let Ok(entry) = by_text.find_entry(hash, |other| *other == slot) {
                entry.remove();
            }
            column.clear(at);
            free.push(slot);
        }
    }

    /// The texts that contain another one, as [`TextId::slot`]s.
    pub(in crate::mirror) fn search(&self, needle: &Needle) -> Bits {
        self.text.search(needle)
    }

    /// Gives back the memory that growing has set aside.
    pub(in crate::mirror) fn shrink(&mut self) {
        self.text.shrink();
        self.uses.shrink_to_fit();
    }

    /// How many texts are in use.
    #[cfg(test)]
    pub(in crate::mirror) fn len(&self) -> usize {
        self.by_text.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shared_texts_live_as_long_as_they_are_used(
            steps in proptest::collection::vec((0usize..6, "[aAb]{0,2}"), 0..100),
        ) {
            let mut texts = Texts::default();
            let mut ids = [TextId::default(); 6];
            let mut plain: [String; 6] = Default::default();
            for (item, text) in steps {
                texts.set(&mut ids[item], &text);
                plain[item] = text;
                for (id, plain) in ids.iter().zip(&plain) {
                    prop_assert_eq!(texts.str(*id), plain.as_str());
                    prop_assert_eq!(texts.find(plain), id.slot().map(|_| *id));
                }
                let used: std::collections::HashSet<_> = plain.iter().filter(|text| !text.is_empty()).collect();
                prop_assert_eq!(texts.len(), used.len());
                let found = texts.search(&Needle::new("Ab"));
                for (id, plain) in ids.iter().zip(&plain) {
                    let is_found = id.slot().is_some_and(|slot| found.has(slot));
                    prop_assert_eq!(is_found, plain.to_lowercase().contains("ab"));
                }
            }
        }
    }
}
