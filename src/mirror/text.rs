//! Where the image keeps text: one arena for what is each job's own, one table for what many share.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

/// The longest text kept of one field, in bytes. A znode's page reads the whole value from ZooKeeper.
pub(super) const FIELD_LIMIT: usize = 512;

/// At most [`FIELD_LIMIT`] bytes of a text, with an ellipsis where it was cut.
pub(super) fn cut(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= FIELD_LIMIT {
        return text.into();
    }
    let mut end = FIELD_LIMIT - '…'.len_utf8();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end]).into()
}

/// Eight fields of text that belong to one job, one behind the other in the arena.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record {
    start: usize,
    lengths: [u16; Record::FIELDS],
}

impl Record {
    pub(super) const FIELDS: usize = 8;

    fn len(&self) -> usize {
        self.lengths.iter().map(|length| usize::from(*length)).sum()
    }
}

/// The jobs' own text in one piece of memory, which a search reads from end to end.
///
/// Records are only ever appended. What no job points to any more is counted, and squeezed out when it is more than
/// what is in use.
#[derive(Debug, Default)]
pub(super) struct Arena {
    text: String,
    unused: usize,
}

impl Arena {
    pub(super) fn field(&self, record: &Record, field: usize) -> &str {
        let before: usize = record.lengths[..field].iter().map(|length| usize::from(*length)).sum();
        let start = record.start + before;
        &self.text[start..start + usize::from(record.lengths[field])]
    }

    /// Replaces some fields of a record; the others stay as they are. Says whether any text changed.
    pub(super) fn set(&mut self, record: &mut Record, fields: &[(usize, &str)]) -> bool {
        let fields: Vec<_> = fields.iter().map(|(field, text)| (*field, cut(text))).collect();
        if fields.iter().all(|(field, text)| self.field(record, *field) == text.as_ref()) {
            return false;
        }
        let mut all: [String; Record::FIELDS] = std::array::from_fn(|field| self.field(record, field).to_owned());
        for (field, text) in fields {
            all[field] = text.into_owned();
        }
        self.release(record);
        // An empty record stays at the start: text may be taken back from the end, and must not leave it pointing there.
        if all.iter().all(String::is_empty) {
            return true;
        }
        record.start = self.text.len();
        for (length, text) in record.lengths.iter_mut().zip(&all) {
            self.text.push_str(text);
            *length = u16::try_from(text.len()).expect("a field is cut to far less than 64 KiB");
        }
        true
    }

    /// Gives a record's text up.
    pub(super) fn release(&mut self, record: &mut Record) {
        let length = record.len();
        // A record at the end can just be taken back: a walk fills a job's fields from two znodes, one after the other.
        if record.start + length == self.text.len() {
            self.text.truncate(record.start);
        } else {
            self.unused += length;
        }
        *record = Record::default();
    }

    /// Whether more is unused than used.
    pub(super) fn is_sparse(&self) -> bool {
        self.unused > 64 * 1024 && self.unused * 2 > self.text.len()
    }

    /// Moves all records that are in use into a new piece of memory.
    pub(super) fn squeeze<'a>(&mut self, records: impl Iterator<Item = &'a mut Record>) {
        let mut text = String::with_capacity(self.text.len() - self.unused);
        for record in records.filter(|record| record.len() > 0) {
            let start = text.len();
            text.push_str(&self.text[record.start..record.start + record.len()]);
            record.start = start;
        }
        *self = Self { text, unused: 0 };
    }

    /// How many bytes belong to some record.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.text.len() - self.unused
    }

    /// Gives back the memory that growing has set aside.
    pub(super) fn shrink(&mut self) {
        self.text.shrink_to_fit();
    }
}

/// A text in a [`Texts`] table. The default is the empty text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct TextId(u32);

/// Texts that many items share: collections, submitters, messages. Each is kept once, for as long as someone uses it.
#[derive(Debug, Default)]
pub(super) struct Texts {
    slots: Vec<(Arc<str>, u32)>,
    by_text: HashTable<u32>,
    free: Vec<u32>,
    hasher: DefaultHashBuilder,
}

impl Texts {
    pub(super) fn get(&self, id: TextId) -> Arc<str> {
        self.slot(id).cloned().unwrap_or_default()
    }

    pub(super) fn str(&self, id: TextId) -> &str {
        self.slot(id).map_or("", |text| text)
    }

    /// How many use a text; 0 for the empty one.
    pub(super) fn uses(&self, id: TextId) -> u32 {
        id.0.checked_sub(1).and_then(|slot| self.slots.get(slot as usize)).map_or(0, |(_, uses)| *uses)
    }

    /// The id of a text that somebody uses; `None` for the empty text and for one that nobody does.
    pub(super) fn find(&self, text: &str) -> Option<TextId> {
        let of = |slot: &u32| *self.slots[*slot as usize].0 == *text;
        self.by_text.find(self.hasher.hash_one(text), of).map(|slot| TextId(slot + 1))
    }

    fn slot(&self, id: TextId) -> Option<&Arc<str>> {
        id.0.checked_sub(1).and_then(|slot| self.slots.get(slot as usize)).map(|(text, _)| text)
    }

    /// Replaces a text by another. Says whether it changed.
    pub(super) fn set(&mut self, id: &mut TextId, text: &str) -> bool {
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
        let Self { slots, by_text, free, hasher } = self;
        let hash = hasher.hash_one(text);
        if let Some(slot) = by_text.find(hash, |slot| *slots[*slot as usize].0 == *text) {
            slots[*slot as usize].1 += 1;
            return TextId(slot + 1);
        }
        let slot = free.pop().unwrap_or_else(|| {
            slots.push((Arc::default(), 0));
            u32::try_from(slots.len() - 1).expect("there are fewer texts than bytes in 4 GiB")
        });
        slots[slot as usize] = (text.into(), 1);
        by_text.insert_unique(hash, slot, |slot| hasher.hash_one(&*slots[*slot as usize].0));
        TextId(slot + 1)
    }

    pub(super) fn release(&mut self, id: &mut TextId) {
        let Some(slot) = id.0.checked_sub(1) else { return };
        *id = TextId::default();
        let Self { slots, by_text, free, hasher } = self;
        let (text, uses) = &mut slots[slot as usize];
        *uses -= 1;
        if *uses == 0 {
            let hash = hasher.hash_one(&**text);
            if let Ok(entry) = by_text.find_entry(hash, |other| *other == slot) {
                entry.remove();
            }
            slots[slot as usize].0 = Arc::default();
            free.push(slot);
        }
    }

    /// How many texts are in use.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_text.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let text = "é".repeat(FIELD_LIMIT);
        let kept = cut(&text);
        assert!(kept.len() <= FIELD_LIMIT && kept.ends_with("é…"), "{kept}");
        assert_eq!(cut("short"), "short");
    }

    proptest! {
        #[test]
        fn the_arena_gives_back_what_was_set(
            steps in proptest::collection::vec((0usize..5, 0usize..Record::FIELDS, "[a-zé]{0,9}", 0u8..8), 0..120),
        ) {
            let mut arena = Arena::default();
            let mut records = [Record::default(); 5];
            let mut plain: [[String; Record::FIELDS]; 5] = Default::default();
            for (record, field, text, what) in steps {
                if what == 0 {
                    arena.release(&mut records[record]);
                    plain[record] = Default::default();
                } else {
                    let changed = arena.set(&mut records[record], &[(field, &text)]);
                    prop_assert_eq!(changed, plain[record][field] != text);
                    plain[record][field] = text;
                }
                if what == 1 {
                    arena.squeeze(records.iter_mut());
                }
                for (record, plain) in records.iter().zip(&plain) {
                    for (field, text) in plain.iter().enumerate() {
                        prop_assert_eq!(arena.field(record, field), text);
                    }
                }
            }
        }

        #[test]
        fn shared_texts_live_as_long_as_they_are_used(steps in proptest::collection::vec((0usize..6, "[ab]{0,2}"), 0..100)) {
            let mut texts = Texts::default();
            let mut ids = [TextId::default(); 6];
            let mut plain: [String; 6] = Default::default();
            for (item, text) in steps {
                texts.set(&mut ids[item], &text);
                plain[item] = text;
                for (id, plain) in ids.iter().zip(&plain) {
                    prop_assert_eq!(texts.str(*id), plain);
                }
                let used: std::collections::HashSet<_> = plain.iter().filter(|text| !text.is_empty()).collect();
                prop_assert_eq!(texts.len(), used.len());
            }
        }
    }
}
