//! Texts that many items share.

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::cut;
use super::folded::Folded;
use super::search::{Matches, Needle};

/// A text in a [`Texts`] table. The default is the empty text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::mirror) struct TextId(u32);

impl TextId {
    /// Where [`Texts::search`] notes this text; `None` for the empty one, in which nothing is found.
    pub(in crate::mirror) fn slot(self) -> Option<usize> {
        self.0.checked_sub(1).map(|slot| slot as usize)
    }

    /// The text that is noted there.
    pub(in crate::mirror) fn at(slot: usize) -> Self {
        Self(u32::try_from(slot + 1).expect("texts are numbered by 32 bits"))
    }
}

/// Collections, submitters, messages: each text is kept once, for as long as someone uses it.
#[derive(Debug, Default)]
pub(in crate::mirror) struct Texts {
    text: Folded,
    /// Where each text starts, and how often it is used.
    slots: Vec<(usize, u32)>,
    by_text: HashTable<u32>,
    free: Vec<u32>,
    hasher: DefaultHashBuilder,
}

impl Texts {
    pub(in crate::mirror) fn get(&self, id: TextId) -> Arc<str> {
        self.str(id).into()
    }

    pub(in crate::mirror) fn str(&self, id: TextId) -> Cow<'_, str> {
        id.slot().map_or(Cow::Borrowed(""), |slot| self.text.field(self.slots[slot].0, 0))
    }

    /// The id of a text that somebody uses; `None` for the empty text and for one that nobody does.
    pub(in crate::mirror) fn find(&self, text: &str) -> Option<TextId> {
        let of = |slot: &u32| self.text.field(self.slots[*slot as usize].0, 0) == text;
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
            self.slots[id.0 as usize - 1].1 += 1;
            return id;
        }
        let Self { text: folded, slots, by_text, free, hasher } = self;
        let slot = free.pop().unwrap_or_else(|| {
            slots.push((0, 0));
            u32::try_from(slots.len() - 1).expect("there are fewer texts than bytes in 4 GiB")
        });
        slots[slot as usize] = (folded.push(slot, &[text]), 1);
        let rehash = |slot: &u32| hasher.hash_one(&*folded.field(slots[*slot as usize].0, 0));
        by_text.insert_unique(hasher.hash_one(text), slot, rehash);
        TextId(slot + 1)
    }

    pub(in crate::mirror) fn release(&mut self, id: &mut TextId) {
        let Some(slot) = id.0.checked_sub(1) else { return };
        *id = TextId::default();
        let Self { text, slots, by_text, free, hasher } = self;
        let (start, uses) = &mut slots[slot as usize];
        *uses -= 1;
        if *uses == 0 {
            let hash = hasher.hash_one(&*text.field(*start, 0));
            if let Ok(entry) = by_text.find_entry(hash, |other| *other == slot) {
                entry.remove();
            }
            text.release(*start);
            free.push(slot);
            if text.is_sparse() {
                text.squeeze(|slot, start| slots[slot as usize].0 = start);
            }
        }
    }

    /// Reads on for a search. The owners that are found are [`TextId::slot`]s.
    pub(in crate::mirror) fn search(&self, needle: &Needle, matches: &mut Matches, most: usize) -> bool {
        matches.read_on(&self.text, needle, most)
    }

    /// Gives back the memory that growing has set aside.
    pub(in crate::mirror) fn settle(&mut self) {
        self.text.settle();
        self.slots.shrink_to_fit();
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
            is_settled: bool,
        ) {
            let mut texts = Texts::default();
            if is_settled {
                texts.settle();
            }
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
            }
        }
    }
}
