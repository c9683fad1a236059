//! Many strings, each kept once and named by a number: an inventory says every path once for each version.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

/// The number of a string in its [`Strings`].
pub(super) type StringId = u32;

/// Strings in one piece of memory, found by number or by text. The hasher has random keys, since paths are hostile.
#[derive(Clone, Debug, Default)]
pub(super) struct Strings {
    text: String,
    ends: Vec<usize>,
    ids: HashTable<StringId>,
    hasher: RandomState,
}

impl Strings {
    /// The number of a string, a new one where it is new.
    pub(super) fn intern(&mut self, string: &str) -> StringId {
        if let Some(id) = self.find(string) {
            return id;
        }
        let id = StringId::try_from(self.ends.len()).expect("the number of entries of an inventory is limited");
        self.text.push_str(string);
        self.ends.push(self.text.len());
        let hash = self.hasher.hash_one(string);
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        self.ids.insert_unique(hash, id, |other| hasher.hash_one(slice(text, ends, *other)));
        id
    }

    /// The number of a string, where it is there.
    pub(super) fn find(&self, string: &str) -> Option<StringId> {
        self.ids.find(self.hasher.hash_one(string), |id| self.get(*id) == string).copied()
    }

    /// The string with a number of these strings.
    pub(super) fn get(&self, id: StringId) -> &str {
        slice(&self.text, &self.ends, id)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many bytes of text they have together.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// All numbers, with their strings.
    pub(super) fn iter(&self) -> impl Iterator<Item = (StringId, &str)> {
        (0..).zip(0..self.ends.len()).map(|(id, _)| (id, self.get(id)))
    }
}

fn slice<'a>(text: &'a str, ends: &[usize], id: StringId) -> &'a str {
    let at = id as usize;
    let start = if at == 0 { 0 } else { ends[at - 1] };
    &text[start..ends[at]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_string_is_kept_once_and_found_by_number_and_text() {
        let mut strings = Strings::default();
        let ids: Vec<_> = ["a", "", "b/c", "a", "b/c", "é"].map(|string| strings.intern(string)).into();
        assert_eq!(ids, [0, 1, 2, 0, 2, 3]);
        assert_eq!(strings.iter().collect::<Vec<_>>(), [(0, "a"), (1, ""), (2, "b/c"), (3, "é")]);
        assert_eq!((strings.find("b/c"), strings.find("b"), strings.len()), (Some(2), None, 4));
        for number in 0..1000 {
            strings.intern(&number.to_string());
        }
        assert!((0..1000).all(|number: u32| strings.find(&number.to_string()) == Some(4 + number)));
    }
}
