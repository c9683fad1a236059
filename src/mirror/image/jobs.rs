//! The jobs of the image.

mod odd;
mod places;
mod set;

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use super::change::{Change, JobEnd, Observation};
use super::columns::Columns;
use super::failures::{Failed, Failures};
use super::figures::Figures;
use super::job_index::{CountedBy, JobIndex};
use super::order::Order;
use super::row::{JobRow, LockStat, Nodes, Rest, Standing};
use crate::mirror::failures::{FailureCause, FailureKey, pattern};
use crate::mirror::read::Found;
use crate::mirror::text::{TextId, Texts};
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::{EntryName, JobNode, StateFolder};
use queuekeeper_queue::state::{JobOutcome, JobPhase, JobState};

/// Every job, its entries and references, and the figures over them.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    pub(super) columns: Columns,
    rest: Vec<Rest>,
    by_id: HashTable<u32>,
    free: Vec<u32>,
    hasher: DefaultHashBuilder,
    pub(super) texts: Texts,
    /// Entries that do not fit into a row: of a job that has another one or is gone, with an impossible priority, or in
    /// a folder of an unknown state. Few on a healthy tree.
    odd_entries: HashMap<JobId, Vec<(StateFolder, EntryName)>>,
    /// References that do not fit into a row, likewise.
    odd_references: HashMap<JobId, Vec<(BatchId, JobOutcome)>>,
    /// How many entries each folder of a state holds.
    pub(super) in_folder: HashMap<StateFolder, u64>,
    pub(super) figures: Figures,
    pub(super) beside: JobIndex,
    pub(super) failures: Failures,
    /// The entries in the order of work; follows every change like `figures`.
    pub(super) order: Order,
    /// Whether `figures` and `failures` follow every change. A walk fills the rows first and counts them once, at its
    /// end.
    is_counted: bool,
    pub(super) znodes: i64,
    pub(super) unreadable: i64,
}

impl Jobs {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The row number of a job.
    pub(super) fn find(&self, job: JobId) -> Option<u32> {
        let number = job.number();
        let is_it = |row: &u32| self.columns.number[*row as usize] == number;
        self.by_id.find(self.hasher.hash_one(number), is_it).copied()
    }

    fn add(&mut self, job: JobId) -> u32 {
        let number = job.number();
        let row = self.free.pop().unwrap_or_else(|| {
            self.columns.grow();
            self.rest.push(Rest::default());
            u32::try_from(self.rest.len() - 1).expect("there is a row a job id, and these are 32 bits")
        });
        self.columns.begin(row as usize, job);
        self.rest[row as usize] = Rest::unknown();
        let Self { columns, by_id, hasher, .. } = self;
        by_id.insert_unique(hasher.hash_one(number), row, |row| hasher.hash_one(columns.number[*row as usize]));
        if self.is_counted {
            let standing = self.at(row).standing;
            self.figures.enter(row, job, standing);
            self.figures.rank(None, Some(standing));
        }
        self.fill_places(row);
        row
    }

    /// The row of a job, if it has one.
    pub(super) fn get(&self, job: JobId) -> Option<JobRow<'_>> {
        self.find(job).map(|row| self.at(row))
    }

    /// The row of that number, as the figures name it.
    pub(super) fn at(&self, row: u32) -> JobRow<'_> {
        JobRow::of(&self.columns, row as usize, &self.rest[row as usize])
    }

    /// What no column has of the row of that number.
    pub(super) fn rest(&self, row: u32) -> &Rest {
        &self.rest[row as usize]
    }

    pub(super) fn is_unreadable(&self, job: JobId, node: Option<JobNode>) -> bool {
        let bit = node.map_or(Nodes::SELF, |node| node as u8);
        self.get(job).is_some_and(|row| row.unreadable.has(bit))
    }

    /// The rows in a range of the table, in no order: a way to visit all of them in pieces.
    pub(super) fn slice(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = JobRow<'_>> {
        let end = range.end.min(self.rest.len());
        let rows = (range.start.min(end)..end).filter(|row| !self.rest[*row].nodes.is_empty());
        rows.map(|row| JobRow::of(&self.columns, row, &self.rest[row]))
    }

    /// The end of the table for [`Jobs::slice`].
    pub(super) fn slots(&self) -> usize {
        self.rest.len()
    }

    /// Every row that is a job's.
    pub(super) fn rows(&self) -> impl Iterator<Item = u32> {
        let end = u32::try_from(self.rest.len()).expect("rows are numbered by 32 bits");
        (0..end).filter(|row| !self.rest[*row as usize].nodes.is_empty())
    }

    /// Takes note of what a read found at a job's znode (`None`) or one of its children.
    pub(super) fn apply(&mut self, job: JobId, node: Option<JobNode>, found: &Found) -> Change {
        self.apply_at(self.find(job), job, node, found).0
    }

    /// The same for a job that [`Jobs::find`] has found in a row or in none. Gives its row now, too.
    pub(super) fn apply_at(
        &mut self,
        row: Option<u32>,
        job: JobId,
        node: Option<JobNode>,
        found: &Found,
    ) -> (Change, Option<u32>) {
        let row = match row {
            Some(row) => row,
            None if found.is_present() => self.add(job),
            None => return (Change::Nothing, None),
        };
        let at = row as usize;
        let bit = node.map_or(Nodes::SELF, |node| node as u8);
        let had = self.rest[at].nodes.has(bit);
        // Where the job was is looked up before its status is noted as there: without one it was nowhere.
        let was = self.at(row).observation();
        let before = self.counted(row);
        let beside = CountedBy::of(self.at(row));
        self.znodes += self.rest[at].nodes.set(bit, found.is_present());
        let (changed, malformed) = self.set(row, node, found);
        let unreadable = malformed || matches!(found, Found::Denied);
        let reread = self.rest[at].unreadable.set(bit, unreadable);
        self.rest[at].malformed.set(bit, malformed);
        self.unreadable += reread;
        self.settle(row, before);
        self.beside.moved(row, beside, CountedBy::of(self.at(row)));
        let moved = self.change(was, self.at(row));
        let is_gone = self.rest[at].nodes.is_empty();
        if is_gone {
            self.forget(row);
        }
        (moved.or_quiet(changed || had != found.is_present() || reread != 0), (!is_gone).then_some(row))
    }

    /// What became of a job between an earlier sight of it and what its row shows now.
    pub(super) fn change(&self, was: Observation<JobState>, row: JobRow<'_>) -> Change {
        Change::of_job(was, row.observation(), |state, lived| match state.phase() {
            JobPhase::Completed => {
                Some(JobEnd::Completed { lived, space_needed_bytes: row.standing.space_needed_bytes })
            }
            JobPhase::Failed if row.standing.is_by_operator => Some(JobEnd::Failed(FailureCause::Operator)),
            JobPhase::Failed => Some(JobEnd::Failed(FailureCause::of(&pattern(&self.texts.str(row.message))))),
            JobPhase::Underway | JobPhase::Held | JobPhase::Deleted => None,
        })
    }

    /// What the figures count a row by; and the failures, if it has failed.
    fn counted(&self, row: u32) -> Option<(Standing, Option<Failed>)> {
        self.is_counted.then(|| {
            let row = self.at(row);
            let key = |last, message| FailureKey::of(last, &pattern(&self.texts.str(message)));
            (row.standing, Failed::of(row, key))
        })
    }

    fn settle(&mut self, row: u32, before: Option<(Standing, Option<Failed>)>) {
        let Some(((before, failed), (after, fails))) = before.zip(self.counted(row)) else { return };
        if before != after {
            let job = self.at(row).id();
            self.figures.leave(row, job, before);
            self.figures.enter(row, job, after);
            self.figures.rank(Some(before), Some(after));
        }
        if failed != fails {
            if let Some(failed) = failed {
                self.failures.leave(row, failed);
            }
            if let Some(fails) = fails {
                let message = self.columns.message[row as usize];
                self.failures.enter(row, fails, || self.texts.str(message));
            }
        }
    }

    fn forget(&mut self, row: u32) {
        if let Some((standing, failed)) = self.counted(row) {
            self.figures.leave(row, self.at(row).id(), standing);
            self.figures.rank(Some(standing), None);
            if let Some(failed) = failed {
                self.failures.leave(row, failed);
            }
        }
        let Self { columns, rest, by_id, hasher, texts, .. } = self;
        let at = row as usize;
        let number = columns.number[at];
        if let Ok(entry) = by_id.find_entry(hasher.hash_one(number), |other| *other == row) {
            entry.remove();
        }
        let mut gone = std::mem::take(&mut rest[at]);
        let shared = [&mut columns.submitter[at], &mut columns.message[at], &mut columns.collection[at]];
        shared.into_iter().chain([&mut gone.status_text]).for_each(|text| texts.release(text));
        columns.clear(at);
        self.free.push(row);
        self.keep_places(JobId::new(number), &gone);
    }

    /// Jobs that have entries or references which do not fit into a row, among them jobs that are gone.
    pub(super) fn odd(&self) -> impl Iterator<Item = JobId> {
        self.odd_entries.keys().chain(self.odd_references.keys()).copied()
    }

    /// Every lock on a job.
    pub(super) fn locked(&self) -> impl Iterator<Item = (JobId, LockStat)> {
        let rows = self.figures.states.iter().flat_map(|(_, state)| state.locked.iter());
        let rows = rows.map(|(_, row)| self.at(*row));
        rows.filter_map(|row| row.lock.as_deref().map(|lock| (row.id(), *lock)))
    }

    /// The status texts that name no state that we know; empty for a status that names none at all.
    pub(super) fn unknown_states(&self) -> impl Iterator<Item = std::sync::Arc<str>> {
        // Jobs of unknown states are few, or all of them: then the first ones say it.
        let jobs = self.figures.states.get(None).entered.iter().flat_map(|bands| bands.iter().take(1000));
        let rows = jobs.filter_map(|(_, job)| self.get(JobId::new(job)));
        rows.map(|row| self.texts.get(row.status_text))
    }

    /// Counts all rows and gives back the memory that filling them has set aside.
    pub(super) fn count(&mut self) {
        self.figures = Figures::of(self.rows().map(|row| (row, self.at(row).id(), self.at(row).standing)));
        // Many jobs fail with one message: its pattern is looked for once.
        let mut keys: HashMap<(Option<JobState>, TextId), FailureKey> = HashMap::new();
        let mut key = |last, message| {
            *keys.entry((last, message)).or_insert_with(|| FailureKey::of(last, &pattern(&self.texts.str(message))))
        };
        let failed = self.rows().filter_map(|row| Some((row, Failed::of(self.at(row), &mut key)?)));
        self.failures = Failures::of(failed, |row| self.texts.str(self.columns.message[row as usize]));
        let own = self.rows().filter_map(|row| self.at(row).entry_name());
        self.order = Order::of(own.chain(self.odd_entries.values().flatten().cloned()));
        self.is_counted = true;
        self.rest.shrink_to_fit();
        self.columns.shrink();
        self.texts.shrink();
    }
}
