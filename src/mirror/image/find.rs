//! Finding jobs: each filter reads its column, in blocks that stay in the processor's cache. What the figures tell to be
//! nowhere is not looked for.

use super::Image;
use super::columns::{Columns, Kinds};
use super::faults::Asked;
use super::view::Job;
use crate::mirror::find::{Direction, JobCursor, JobQuery, JobSort, PAGE_LIMIT, Page, SearchText};
use crate::mirror::text::{Bits, Matches, TextId};
use crate::queue::id::BatchId;
use crate::queue::path::Path;
use crate::queue::state::JobState;

mod scan;
mod select;
#[cfg(test)]
mod tests;

use scan::Order;
use select::Selection;

/// In which jobs a text was found, as far as it was looked for.
#[derive(Clone, Debug, Default)]
pub(in crate::mirror) struct TextMatches {
    own: Matches,
    shared: Matches,
}

impl TextMatches {
    fn has_shared(&self, columns: &Columns, row: usize) -> bool {
        let has = |id: TextId| id.slot().is_some_and(|slot| self.shared.owners().has(slot));
        has(columns.message[row]) || has(columns.submitter[row])
    }

    /// The texts that jobs share in which it was found.
    fn shared_texts(&self) -> impl Iterator<Item = TextId> {
        self.shared.owners().iter().map(TextId::at)
    }
}

/// A query in terms of rows.
struct Filter<'a> {
    kinds: Kinds,
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
            let is_turned = (query.direction == Direction::Descending) != selection.is_back();
            let numbers = &columns.number;
            let to = &mut selection;
            match query.sort {
                JobSort::Entered => filter.scan(columns, Order { values: &columns.entered_ms, numbers, is_turned }, to),
                JobSort::Id => filter.scan(columns, Order { values: &vec![(); columns.len()], numbers, is_turned }, to),
                JobSort::Priority => filter.scan(columns, Order { values: &columns.priority, numbers, is_turned }, to),
                JobSort::SpaceNeeded => {
                    filter.scan(columns, Order { values: &columns.space_needed_bytes, numbers, is_turned }, to);
                }
                JobSort::Retries => filter.scan(columns, Order { values: &columns.retries, numbers, is_turned }, to),
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
        let collection = match query.collection.as_deref() {
            None => None,
            Some("") => Some(TextId::default()),
            Some(mnemonic) => Some(self.jobs.texts.find(mnemonic)?),
        };
        let figures = &self.jobs.figures;
        let is_wanted = |state: &Option<JobState>| query.states.is_empty() || query.states.contains(state);
        let in_states = figures.states.iter().filter(|(state, _)| is_wanted(state)).any(|(_, state)| {
            let is_asked = |locked: bool| query.locked.is_none_or(|wanted| wanted == locked);
            [false, true].into_iter().any(|locked| is_asked(locked) && state.entered[usize::from(locked)].len() > 0)
        });
        let in_batch = query
            .batch
            .is_none_or(|batch| self.jobs.beside.of(batch).iter().any(|(state, jobs)| is_wanted(&state) && *jobs > 0));
        let is_resumed =
            |min: u32| min == 0 || figures.by_retries.last_key_value().is_some_and(|(most, _)| *most >= min);
        if !in_states || !in_batch || !query.min_retries.is_none_or(is_resumed) {
            return None;
        }
        let mut sets = Vec::new();
        if let Some(group) = query.group {
            let mut rows = Bits::default();
            self.jobs.failures.rows(group)?.iter().for_each(|(_, row)| rows.insert(*row as usize));
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
            kinds: Kinds::new(&query.states, query.locked, query.batch.is_some()),
            collection,
            batch: query.batch,
            entered_until: age_ms.map(|age_ms| now_ms.saturating_sub(age_ms)),
            min_retries: query.min_retries.unwrap_or(0),
            sets,
            text,
        })
    }
}
