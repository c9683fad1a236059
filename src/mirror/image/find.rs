//! Finding jobs, in the cheapest of three ways. What is requested by state alone lies in order already; a few jobs that
//! something else leads to are looked at one by one; else each filter reads its column, in blocks that stay in the
//! processor's cache. What is in no job or in every job, by the figures, is not searched for.

use super::Image;
use super::columns::{Columns, Kinds};
use super::faults::FaultQuery;
use super::figures::is_final;
use super::view::Job;
use crate::mirror::bands::Bands;
use crate::mirror::find::{Direction, FoundPage, JobCursor, JobOrder, JobQuery, PAGE_LIMIT, SearchText};
use crate::mirror::text::{Bits, TextId};
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::Path;
use queuekeeper_queue::state::{JobState, State as _};

mod by_state;
mod ordered;
mod scan;
mod select;
#[cfg(test)]
mod tests;

use scan::Order;
use select::{SECOND, Selection};

/// Where a text was found.
#[derive(Debug)]
pub(in crate::mirror) struct TextMatches {
    /// Rows of jobs that have it in their own text.
    own: Bits,
    /// The texts that have it of those that jobs share.
    shared: Bits,
}

impl TextMatches {
    fn has(&self, columns: &Columns, row: usize) -> bool {
        self.own.has(row) || self.has_shared(columns, row)
    }

    fn has_shared(&self, columns: &Columns, row: usize) -> bool {
        let has = |id: TextId| id.slot().is_some_and(|slot| self.shared.has(slot));
        has(columns.message[row]) || has(columns.submitter[row])
    }

    /// The texts that jobs share in which it was found.
    fn shared_texts(&self) -> impl Iterator<Item = TextId> {
        self.shared.iter().map(TextId::at)
    }
}

/// Of how many rows some are few: looking at one by itself takes as long as at so many of them in a block.
const FEW_OF: usize = if cfg!(test) { 2 } else { 16 };

/// What jobs without a batch are sorted by among those with one: behind every batch's number.
const NO_BATCH: u64 = u32::MAX as u64 + 1;

/// A query in terms of rows.
struct Filter<'a> {
    kinds: Kinds,
    /// No others than these can pass, and they are few.
    few: Option<Vec<u32>>,
    collection: Option<TextId>,
    batch: Option<BatchId>,
    entered_until: Option<i64>,
    min_retries: u32,
    sets: Vec<Bits>,
    text: Option<&'a TextMatches>,
}

/// The bit of the places of a group. In an order that is turned round, the second group comes second all the same.
fn group_bit(is_second: bool, direction: Direction) -> u128 {
    if is_second == (direction == Direction::Ascending) { SECOND } else { 0 }
}

/// The states that are requested, in two groups: those of unfinished jobs, and those of finished ones, whose places
/// come behind.
fn groups(states: &[Option<JobState>], direction: Direction) -> impl Iterator<Item = (u128, Vec<Option<JobState>>)> {
    let all = JobState::ALL.iter().copied().map(Some).chain([None]);
    let wanted = all.filter(|state| states.is_empty() || states.contains(state));
    let (finished, unfinished): (Vec<_>, Vec<_>) = wanted.partition(|state| is_final(*state));
    let groups = [(group_bit(false, direction), unfinished), (group_bit(true, direction), finished)];
    groups.into_iter().filter(|(_, states)| !states.is_empty())
}

impl Image {
    /// Scans the text of all jobs.
    pub(in crate::mirror) fn search(&self, text: &SearchText) -> TextMatches {
        let needle = text.needle();
        let own = if text.is_shared() { Bits::default() } else { self.jobs.columns.text.search(needle) };
        TextMatches { own, shared: self.jobs.texts.search(needle) }
    }

    /// The page that a query asks for. `matches` says where its text was found; `fault_query` is by whose clock faults
    /// count, and `now_ms` the present by the servers' clock.
    pub(in crate::mirror) fn find_jobs(
        &self,
        query: &JobQuery,
        matches: Option<&TextMatches>,
        fault_query: FaultQuery<'_>,
        now_ms: i64,
    ) -> FoundPage<Job> {
        let cursor = query.cursor.filter(|cursor| cursor.is_of(query.sort, query.direction));
        let mut selection =
            Selection::new(query.limit.clamp(1, PAGE_LIMIT), cursor.map(|cursor| (cursor.is_back, cursor.at)));
        let filter = self.filter(query, matches, fault_query, now_ms);
        let is_by_instant = matches!(query.sort, JobOrder::Unfinished | JobOrder::Entered);
        let is_in_order = is_by_instant && filter.as_ref().is_some_and(Filter::is_by_state);
        if let Some(mut filter) = filter {
            let columns = &self.jobs.columns;
            let is_turned = (query.direction == Direction::Descending) != selection.is_back();
            let (numbers, group) = (&columns.number, 0);
            let by_id = Order { values: &vec![(); columns.len()], numbers, group, is_turned };
            let to = &mut selection;
            match query.sort {
                JobOrder::Unfinished | JobOrder::Entered if is_in_order => {
                    let has_groups = query.sort == JobOrder::Unfinished;
                    let sets = self.entered(query).flat_map(|(state, sets)| {
                        let group = if has_groups { group_bit(is_final(state), query.direction) } else { 0 };
                        sets.into_iter().flatten().map(move |set| (group, set))
                    });
                    filter.take_in_order(sets, is_turned, to);
                }
                JobOrder::Unfinished => {
                    for (group, states) in groups(&query.states, query.direction) {
                        filter.kinds = Kinds::new(&states, query.locked, filter.batch.is_some());
                        filter.find(columns, Order { values: &columns.entered_ms, numbers, group, is_turned }, to);
                    }
                }
                JobOrder::Entered => {
                    filter.find(columns, Order { values: &columns.entered_ms, numbers, group, is_turned }, to);
                }
                JobOrder::Id => filter.find(columns, by_id, to),
                // By something that all have alike, it is the ids that sort them.
                JobOrder::Retries if self.jobs.figures.by_retries.is_empty() => filter.find(columns, by_id, to),
                JobOrder::Priority => {
                    filter.find(columns, Order { values: &columns.priority, numbers, group, is_turned }, to);
                }
                JobOrder::SpaceNeeded => {
                    filter.find(columns, Order { values: &columns.space_needed_bytes, numbers, group, is_turned }, to);
                }
                JobOrder::Retries => {
                    filter.find(columns, Order { values: &columns.retries, numbers, group, is_turned }, to);
                }
                JobOrder::Batch => {
                    let value = |row| columns.batch(row).map_or(NO_BATCH, |batch| batch.number().into());
                    let values: Vec<u64> = (0..columns.len()).map(value).collect();
                    filter.find(columns, Order { values: &values, numbers, group, is_turned }, to);
                }
            }
        }
        let text = |(is_back, at)| JobCursor { sort: query.sort, direction: query.direction, is_back, at }.to_string();
        let selected = selection.finish();
        let row = |at: u32| if is_in_order { self.jobs.find(JobId::new(at)) } else { Some(at) };
        let rows = selected.rows.iter().filter_map(|at| row(*at));
        FoundPage {
            items: rows.map(|row| self.view(self.jobs.at(row), fault_query.offset)).collect(),
            total: selected.total,
            before: selected.before,
            previous: selected.previous.map(|at| text((true, at))),
            next: selected.next.map(|at| text((false, at))),
        }
    }

    /// All jobs that a query asks for, in the order of their ids, with the versions of their statuses. Its order,
    /// cursor and limit do not matter.
    pub(in crate::mirror) fn matching(
        &self,
        query: &JobQuery,
        matches: Option<&TextMatches>,
        fault_query: FaultQuery<'_>,
        now_ms: i64,
    ) -> Vec<(JobId, i32)> {
        let columns = &self.jobs.columns;
        let mut selection = Selection::new(columns.len(), None);
        if let Some(filter) = self.filter(query, matches, fault_query, now_ms) {
            let numbers = &columns.number;
            let by_id = Order { values: &vec![(); columns.len()], numbers, group: 0, is_turned: false };
            filter.find(columns, by_id, &mut selection);
        }
        let rows = selection.finish().rows;
        rows.into_iter().map(|row| (self.jobs.at(row).id(), self.jobs.at(row).status_version())).collect()
    }

    /// The jobs in each state that is requested, by the instant of entering it: the unlocked ones, the locked ones, or
    /// both.
    fn entered(&self, query: &JobQuery) -> impl Iterator<Item = (Option<JobState>, [Option<&Bands<5>>; 2])> {
        let states = self.jobs.figures.states.iter();
        let states = states.filter(|(state, _)| query.states.is_empty() || query.states.contains(state));
        let is_asked = |is_locked| query.locked.is_none_or(|locked| locked == is_locked);
        states.map(move |(state, figures)| {
            let [unlocked, locked] = &figures.entered;
            (state, [is_asked(false).then_some(unlocked), is_asked(true).then_some(locked)])
        })
    }

    /// A query in terms of rows; `None` for one that no row can satisfy.
    fn filter<'a>(
        &self,
        query: &JobQuery,
        text: Option<&'a TextMatches>,
        fault_query: FaultQuery<'_>,
        now_ms: i64,
    ) -> Option<Filter<'a>> {
        let collection = match query.collection.as_deref() {
            None => None,
            Some("") => Some(TextId::default()),
            Some(mnemonic) => Some(self.jobs.texts.find(mnemonic)?),
        };
        let figures = &self.jobs.figures;
        let is_wanted = |state: &Option<JobState>| query.states.is_empty() || query.states.contains(state);
        let in_states: usize = self.entered(query).flat_map(|(_, sets)| sets).flatten().map(Bands::len).sum();
        if in_states == 0 {
            return None;
        }
        // The same jobs whether they are locked or not, since by collection and batch these are not counted apart.
        let wanted = figures.states.iter().filter(|(state, _)| is_wanted(state)).map(|(_, state)| &state.entered);
        let wanted: usize = wanted.flatten().map(Bands::len).sum();
        let is_everywhere = |count: usize| (count > 0).then_some(count == wanted);
        let collection = match collection {
            Some(id) => {
                let jobs = figures.collections.get(&id)?.iter().filter(|(state, _)| is_wanted(state));
                let jobs: u64 = jobs.map(|(_, jobs)| *jobs).sum();
                (!is_everywhere(usize::try_from(jobs).ok()?)?).then_some(id)
            }
            None => None,
        };
        let batch = match query.batch {
            Some(batch) => {
                let jobs = self.jobs.beside.of(batch);
                let jobs = jobs.iter().filter(|(state, _)| is_wanted(state)).map(|(_, jobs)| *jobs as usize);
                (!is_everywhere(jobs.sum())?).then_some(batch)
            }
            None => None,
        };
        let min_retries = query.min_retries.unwrap_or(0);
        if min_retries > 0 && figures.by_retries.range(min_retries..).next().is_none() {
            return None;
        }
        let mut lists: Vec<Vec<u32>> = Vec::new();
        if let Some(group) = query.group {
            lists.push(self.jobs.failures.rows(group)?.iter().map(|(_, row)| *row).collect());
        }
        if let Some(fault) = query.fault {
            let jobs = self.faults.suspects.items(fault, fault_query.now_ms).filter_map(|(item, _)| match item {
                Path::Job(job) => self.jobs.find(*job),
                _ => None,
            });
            lists.push(jobs.collect());
        }
        let columns = &self.jobs.columns;
        let is_few = |rows: usize| rows <= columns.len() / FEW_OF;
        if let Some(text) = text.filter(|text| text.shared.is_empty() && is_few(text.own.len())) {
            lists.push(text.own.iter().map(|row| u32::try_from(row).expect("rows are numbered by 32 bits")).collect());
        }
        if lists.iter().any(Vec::is_empty) {
            return None;
        }
        lists.sort_unstable_by_key(|list| std::cmp::Reverse(list.len()));
        let few = lists.pop_if(|list| is_few(list.len()));
        let sets = lists.iter().map(|list| list.iter().map(|row| *row as usize).collect());
        let age_ms = query.min_age.map(|age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        Some(Filter {
            kinds: Kinds::new(&query.states, query.locked, batch.is_some()),
            few,
            collection,
            batch,
            entered_until: age_ms.map(|age_ms| now_ms.saturating_sub(age_ms)),
            min_retries,
            sets: sets.collect(),
            text,
        })
    }
}
