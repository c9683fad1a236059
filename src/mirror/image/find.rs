//! Finding jobs: each filter reads its column, in blocks that stay in the processor's cache.

use super::Image;
use super::columns::{Columns, Kind};
use super::faults::Asked;
use super::view::Job;
use crate::mirror::find::{Direction, JobCursor, JobQuery, JobSort, PAGE_LIMIT, Page, SearchText};
use crate::mirror::text::{Bits, Matches, TextId};
use crate::queue::id::BatchId;
use crate::queue::path::Path;

mod select;
#[cfg(test)]
mod tests;

use select::Selection;

/// How many rows are looked at at once.
const BLOCK: usize = 1024;

/// In which jobs a text was found, as far as it was looked for.
#[derive(Clone, Debug, Default)]
pub(in crate::mirror) struct TextMatches {
    own: Matches,
    shared: Matches,
}

impl TextMatches {
    fn has(&self, columns: &Columns, row: usize) -> bool {
        let shared = |id: TextId| id.slot().is_some_and(|slot| self.shared.owners().has(slot));
        self.own.owners().has(row) || shared(columns.message[row]) || shared(columns.submitter[row])
    }
}

/// A query in terms of rows.
struct Filter<'a> {
    kinds: [bool; Kind::COUNT],
    collection: Option<TextId>,
    batch: Option<BatchId>,
    entered_until: Option<i64>,
    min_retries: u32,
    sets: Vec<Bits>,
    text: Option<&'a TextMatches>,
}

impl Image {
    /// Looks for a text further, in about `most` bytes. Gives whether there are more.
    pub(in crate::mirror) fn search(&self, text: &SearchText, matches: &mut TextMatches, most: usize) -> bool {
        let has_more_own = self.jobs.arena.search(text.needle(), &mut matches.own, most);
        has_more_own || self.jobs.texts.search(text.needle(), &mut matches.shared, most)
    }

    /// The page that a query asks for. `matches` says where its text was found; `asked` is by whose clock faults count,
    /// and `now_ms` the present by the servers' clock.
    pub(in crate::mirror) fn find_jobs(
        &self,
        query: &JobQuery,
        matches: Option<&TextMatches>,
        asked: Asked<'_>,
        now_ms: i64,
    ) -> Page<Job> {
        let cursor = query.cursor.filter(|cursor| cursor.is_of(query.sort, query.direction));
        let mut selection =
            Selection::new(query.limit.clamp(1, PAGE_LIMIT), cursor.map(|cursor| (cursor.is_back, cursor.at)));
        if let Some(filter) = self.filter(query, matches, asked, now_ms) {
            let columns = &self.jobs.columns;
            let is_down = query.direction == Direction::Descending;
            match query.sort {
                JobSort::Entered => {
                    filter.select(columns, is_down, &mut selection, |row| ordered(columns.entered_ms[row]));
                }
                JobSort::Id => filter.select(columns, is_down, &mut selection, |_| 0),
                JobSort::Priority => {
                    filter.select(columns, is_down, &mut selection, |row| columns.priority[row].into());
                }
                JobSort::SpaceNeeded => {
                    filter.select(columns, is_down, &mut selection, |row| columns.space_needed_bytes[row]);
                }
                JobSort::Retries => filter.select(columns, is_down, &mut selection, |row| columns.retries[row].into()),
            }
        }
        let text = |(is_back, at)| JobCursor { sort: query.sort, direction: query.direction, is_back, at }.to_string();
        let selected = selection.finish();
        Page {
            items: selected.rows.iter().map(|row| self.view(self.jobs.at(*row), asked.offset)).collect(),
            total: selected.total,
            before: selected.before,
            previous: selected.previous.map(|at| text((true, at))),
            next: selected.next.map(|at| text((false, at))),
        }
    }

    /// A query in terms of rows; `None` for one that no row can satisfy.
    fn filter<'a>(
        &self,
        query: &JobQuery,
        text: Option<&'a TextMatches>,
        asked: Asked<'_>,
        now_ms: i64,
    ) -> Option<Filter<'a>> {
        let mut kinds = [false; Kind::COUNT];
        for kind in Kind::all() {
            kinds[kind.index()] = kind.is_used()
                && (query.states.is_empty() || query.states.contains(&kind.state()))
                && query.locked.is_none_or(|locked| locked == kind.is_locked())
                && (query.batch.is_none() || kind.is_in_batch());
        }
        let collection = match query.collection.as_deref() {
            None => None,
            Some("") => Some(TextId::default()),
            Some(mnemonic) => Some(self.jobs.texts.find(mnemonic)?),
        };
        let mut sets = Vec::new();
        if let Some(group) = query.group {
            let mut rows = Bits::default();
            self.jobs.failures.rows(group).for_each(|row| rows.insert(row as usize));
            sets.push(rows);
        }
        if let Some(fault) = query.fault {
            let mut rows = Bits::default();
            for (item, _) in self.faults.suspects.items(fault, asked.now_ms) {
                if let Path::Job(job) = item
                    && let Some(row) = self.jobs.find(*job)
                {
                    rows.insert(row as usize);
                }
            }
            sets.push(rows);
        }
        if sets.iter().any(Bits::is_empty) {
            return None;
        }
        let age_ms = query.min_age.map(|age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        Some(Filter {
            kinds,
            collection,
            batch: query.batch,
            entered_until: age_ms.map(|age_ms| now_ms.saturating_sub(age_ms)),
            min_retries: query.min_retries.unwrap_or(0),
            sets,
            text,
        })
    }
}

impl Filter<'_> {
    /// Offers each row that passes to a selection.
    fn select(&self, columns: &Columns, is_down: bool, selection: &mut Selection, key: impl Fn(usize) -> u64) {
        let blocks = columns.len().div_ceil(BLOCK);
        let mut passing = [0; BLOCK];
        for block in 0..blocks {
            // The rows are mostly in the order of the ids, and so of time. Whoever wants the last ones first finds them at
            // the end, and then everything else can be told to be no better at a glance.
            let start = if is_down { blocks - 1 - block } else { block } * BLOCK;
            let end = (start + BLOCK).min(columns.len());
            let passing = &mut passing[..end - start];
            self.mark(columns, start..end, passing);
            let mut offer = |at: usize| {
                let row = start + at;
                let place = u128::from(key(row)) << 32 | u128::from(columns.number[row]);
                // Turned round in all its bits, the order is turned round, and nothing is lost of it.
                let place = if is_down { place ^ TURNED } else { place };
                selection.offer(place, u32::try_from(row).expect("rows are numbered by 32 bits"));
            };
            if is_down {
                (0..passing.len()).rev().filter(|at| passing[*at] != 0).for_each(&mut offer);
            } else {
                (0..passing.len()).filter(|at| passing[*at] != 0).for_each(&mut offer);
            }
        }
    }

    /// Marks the rows that pass, one byte a row: the loops have no branches, so many rows are looked at at once.
    fn mark(&self, columns: &Columns, rows: std::ops::Range<usize>, passing: &mut [u8]) {
        for (pass, kind) in passing.iter_mut().zip(&columns.kind[rows.clone()]) {
            *pass = self.kinds[kind.index() % Kind::COUNT].into();
        }
        if let Some(collection) = self.collection {
            only(passing, &columns.collection[rows.clone()], |value| value == collection);
        }
        if let Some(batch) = self.batch {
            only(passing, &columns.batch[rows.clone()], |value| value == batch.number());
        }
        if let Some(until) = self.entered_until {
            only(passing, &columns.entered_ms[rows.clone()], |value| value <= until);
        }
        if self.min_retries > 0 {
            only(passing, &columns.retries[rows.clone()], |value| value >= self.min_retries);
        }
        for set in &self.sets {
            for (pass, row) in passing.iter_mut().zip(rows.clone()) {
                *pass &= u8::from(set.has(row));
            }
        }
        if let Some(text) = self.text {
            for (pass, row) in passing.iter_mut().zip(rows) {
                *pass = u8::from(*pass != 0 && text.has(columns, row));
            }
        }
    }
}

/// The bits of a place in the order: 64 of the value, 32 of the job's number.
const TURNED: u128 = (1 << 96) - 1;

fn only<T: Copy>(passing: &mut [u8], column: &[T], test: impl Fn(T) -> bool) {
    for (pass, value) in passing.iter_mut().zip(column) {
        *pass &= u8::from(test(*value));
    }
}

/// A signed number as an unsigned one in the same order.
fn ordered(number: i64) -> u64 {
    number.cast_unsigned() ^ 1 << 63
}
