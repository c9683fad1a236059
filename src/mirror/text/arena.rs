//! The text that is each job's own.

use std::borrow::Cow;

use super::cut;
use super::folded::Folded;
use super::search::{Matches, Needle};
use queuekeeper_queue::id::JobId;

/// A job's own fields of text in the arena, behind its id. The default is one that has no place there yet.
#[derive(Debug, Default)]
pub(in crate::mirror) struct Record {
    /// One more than where its piece starts; 0 for none.
    start: usize,
}

impl Record {
    pub(in crate::mirror) const FIELDS: usize = 8;

    fn start(&self) -> Option<usize> {
        self.start.checked_sub(1)
    }
}

/// The jobs' own text in one piece of memory, which a search reads from end to end.
#[derive(Debug, Default)]
pub(in crate::mirror) struct Arena {
    text: Folded,
}

impl Arena {
    /// A place for a job's text. Its id is found as if it were a text of its own.
    pub(in crate::mirror) fn add(&mut self, row: u32, job: JobId) -> Record {
        Record { start: self.text.push(row, &[job.to_string()]) + 1 }
    }

    pub(in crate::mirror) fn field(&self, record: &Record, field: usize) -> Cow<'_, str> {
        record.start().map_or(Cow::Borrowed(""), |start| self.text.field(start, field + 1))
    }

    /// Replaces some fields of a row's record; the others stay as they are. Says whether any text changed.
    pub(in crate::mirror) fn set(&mut self, row: u32, record: &mut Record, fields: &[(usize, &str)]) -> bool {
        let Some(start) = record.start() else { return false };
        let fields: Vec<_> = fields.iter().map(|(field, text)| (*field, cut(text))).collect();
        if fields.iter().all(|(field, text)| self.field(record, *field) == *text) {
            return false;
        }
        let mut all: [String; Record::FIELDS + 1] =
            std::array::from_fn(|field| self.text.field(start, field).into_owned());
        for (field, text) in fields {
            all[field + 1] = text.into_owned();
        }
        self.text.release(start);
        record.start = self.text.push(row, &all) + 1;
        true
    }

    /// Gives a record's text up.
    pub(in crate::mirror) fn release(&mut self, record: &mut Record) {
        if let Some(start) = std::mem::take(record).start() {
            self.text.release(start);
        }
    }

    /// Whether more is unused than used.
    pub(in crate::mirror) fn is_sparse(&self) -> bool {
        self.text.is_sparse()
    }

    /// Moves all records that are in use into a new piece of memory. `record` gives the one of a row.
    pub(in crate::mirror) fn squeeze(&mut self, records: &mut [impl AsMut<Record>]) {
        self.text.squeeze(|row, start| records[row as usize].as_mut().start = start + 1);
    }

    /// Reads on for a search. The owners that are found are rows.
    pub(in crate::mirror) fn search(&self, needle: &Needle, matches: &mut Matches, most: usize) -> bool {
        matches.read_on(&self.text, needle, most)
    }

    /// How many bytes belong to some record.
    #[cfg(test)]
    pub(in crate::mirror) fn used(&self) -> usize {
        self.text.used()
    }

    /// Gives back the memory that growing has set aside.
    pub(in crate::mirror) fn settle(&mut self) {
        self.text.settle();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl AsMut<Record> for Record {
        fn as_mut(&mut self) -> &mut Record {
            self
        }
    }

    proptest! {
        #[test]
        fn the_arena_gives_back_what_was_set_and_finds_it(
            steps in proptest::collection::vec((0usize..5, 0usize..Record::FIELDS, "[abAB0Éé]{0,5}", 0u8..9), 0..120),
            is_settled: bool,
        ) {
            let mut arena = Arena::default();
            if is_settled {
                arena.settle();
            }
            let mut records: [Record; 5] = Default::default();
            let mut plain: [Option<[String; Record::FIELDS]>; 5] = Default::default();
            let mut going_on = Matches::default();
            let needle = Needle::new("aB");
            for (row, field, text, what) in steps {
                let number = u32::try_from(row).unwrap();
                match what {
                    0 => {
                        arena.release(&mut records[row]);
                        plain[row] = None;
                    }
                    1 => arena.squeeze(&mut records),
                    _ => {
                        if plain[row].is_none() {
                            records[row] = arena.add(number, JobId::new(number));
                        }
                        let plain = plain[row].get_or_insert_default();
                        let changed = arena.set(number, &mut records[row], &[(field, &text)]);
                        prop_assert_eq!(changed, plain[field] != text);
                        plain[field] = text;
                    }
                }
                for (record, plain) in records.iter().zip(&plain) {
                    for field in 0..Record::FIELDS {
                        let expected = plain.as_ref().map_or("", |plain| &plain[field]);
                        prop_assert_eq!(arena.field(record, field), expected);
                    }
                }
                let has = |plain: &Option<[String; Record::FIELDS]>| {
                    plain.as_ref().is_some_and(|plain| plain.iter().any(|text| text.to_lowercase().contains("ab")))
                };
                let expected: Vec<bool> = plain.iter().map(has).collect();
                let mut anew = Matches::default();
                while arena.search(&needle, &mut anew, 7) {}
                prop_assert_eq!((0..5).map(|row| anew.owners().has(row)).collect::<Vec<_>>(), expected.clone());
                // A row that has no record may still be noted from before: nobody asks for it.
                let is_there = |row: &usize| plain[*row].is_some();
                while is_settled && arena.search(&needle, &mut going_on, 7) {}
                if is_settled {
                    let found = (0..5).filter(is_there).map(|row| going_on.owners().has(row));
                    prop_assert_eq!(
                        found.collect::<Vec<_>>(),
                        (0..5).filter(is_there).map(|row| expected[row]).collect::<Vec<_>>()
                    );
                }
            }
        }
    }
}
