//! The jobs of the image.

mod odd;

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use zookeeper_client::Stat;

use self::odd::{holds, set_odd};
use super::beside::{Beside, Sight};
use super::change::Change;
use super::figures::Figures;
use super::row::{LockStat, Nodes, Row, Standing, UNKNOWN_MS, text};
use crate::mirror::read::Found;
use crate::mirror::text::{Arena, Texts};
use crate::queue::id::{BatchId, JobId, Priority};
use crate::queue::path::{EntryName, JobNode, StateFolder};
use crate::queue::record::{self, Configuration, Decoded, Identifiers, JobStatus};
use crate::queue::state::{JobState, Outcome};
use crate::queue::time;

/// Every job, its entries and references, and the figures over them.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    rows: Vec<Row>,
    by_id: HashTable<u32>,
    free: Vec<u32>,
    hasher: DefaultHashBuilder,
    pub(super) arena: Arena,
    pub(super) texts: Texts,
    /// Entries that do not fit into a row: of a job that has another one or is gone, with an impossible priority, or in
    /// a folder of an unknown state. Few on a healthy tree.
    odd_entries: HashMap<JobId, Vec<(StateFolder, EntryName)>>,
    /// References that do not fit into a row, likewise.
    odd_references: HashMap<JobId, Vec<(BatchId, Outcome)>>,
    /// How many entries each folder of a state holds.
    pub(super) in_folder: HashMap<StateFolder, u64>,
    pub(super) figures: Figures,
    pub(super) beside: Beside,
    /// Whether `figures` follow every change. A walk fills the rows first and counts them once, at its end.
    is_counted: bool,
    pub(super) znodes: i64,
    pub(super) unreadable: i64,
}

impl Jobs {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    fn find(&self, job: JobId) -> Option<u32> {
        let number = job.number();
        self.by_id.find(self.hasher.hash_one(number), |row| self.rows[*row as usize].number == number).copied()
    }

    fn find_or_add(&mut self, job: JobId) -> u32 {
        if let Some(row) = self.find(job) {
            return row;
        }
        let number = job.number();
        let standing = Standing { entered_ms: UNKNOWN_MS, ..Standing::default() };
        let new = Row { number, standing, created_ms: UNKNOWN_MS, status_version: -1, ..Row::default() };
        let row = if let Some(row) = self.free.pop() {
            self.rows[row as usize] = new;
            row
        } else {
            self.rows.push(new);
            u32::try_from(self.rows.len() - 1).expect("there is a row a job id, and these are 32 bits")
        };
        let Self { rows, by_id, hasher, .. } = self;
        by_id.insert_unique(hasher.hash_one(number), row, |row| hasher.hash_one(rows[*row as usize].number));
        if self.is_counted {
            self.figures.enter(row, standing);
        }
        self.fill_places(row);
        row
    }

    /// Moves an entry and a reference that are kept apart into the row, where it has room for them. Reads come in any
    /// order, so they may have come before their job.
    fn fill_places(&mut self, row: u32) {
        let row = &mut self.rows[row as usize];
        let job = row.id();
        if row.entry.is_none() {
            row.entry = take_odd(&mut self.odd_entries, job, |(folder, entry)| place_of(folder, *entry));
        }
        if row.reference.is_none() {
            row.reference =
                take_odd(&mut self.odd_references, job, |(batch, outcome)| Some((batch.number(), *outcome)));
        }
    }

    /// The row of a job, if it has one.
    pub(super) fn get(&self, job: JobId) -> Option<&Row> {
        self.find(job).map(|row| &self.rows[row as usize])
    }

    /// The row of that number, as the figures name it.
    pub(super) fn at(&self, row: u32) -> &Row {
        &self.rows[row as usize]
    }

    pub(super) fn is_unreadable(&self, job: JobId, node: Option<JobNode>) -> bool {
        let bit = node.map_or(Nodes::SELF, |node| node as u8);
        self.get(job).is_some_and(|row| row.unreadable.has(bit))
    }

    /// The rows in a range of the table, in no order: a way to visit all of them in pieces.
    pub(super) fn slice(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = &Row> {
        let end = range.end.min(self.rows.len());
        self.rows[range.start.min(end)..end].iter().filter(|row| !row.nodes.is_empty())
    }

    /// The end of the table for [`Jobs::slice`].
    pub(super) fn slots(&self) -> usize {
        self.rows.len()
    }

    /// Takes note of what a read found at a job's znode (`None`) or one of its children.
    pub(super) fn apply(&mut self, job: JobId, node: Option<JobNode>, found: &Found) -> Change {
        if !found.is_present() && self.find(job).is_none() {
            return Change::Nothing;
        }
        let row = self.find_or_add(job);
        let bit = node.map_or(Nodes::SELF, |node| node as u8);
        let had = self.rows[row as usize].nodes.has(bit);
        // Where the job was is asked before its status is noted as there: without one it was nowhere.
        let was = self.rows[row as usize].sight();
        let before = self.rows[row as usize].standing;
        let beside = Sight::of(&self.rows[row as usize]);
        self.znodes += self.rows[row as usize].nodes.set(bit, found.is_present());
        let (changed, malformed) = self.set(row, node, found);
        let unreadable = malformed || matches!(found, Found::Denied);
        let reread = self.rows[row as usize].unreadable.set(bit, unreadable);
        self.rows[row as usize].malformed.set(bit, malformed);
        self.unreadable += reread;
        self.settle(row, before);
        self.beside.moved(row, beside, Sight::of(&self.rows[row as usize]));
        let moved = Change::of_job(was, self.rows[row as usize].sight());
        if self.rows[row as usize].nodes.is_empty() {
            self.forget(row);
        }
        if self.arena.is_sparse() {
            self.squeeze();
        }
        moved.or_quiet(changed || had != found.is_present() || reread != 0)
    }

    pub(super) fn squeeze(&mut self) {
        let Self { arena, rows, .. } = self;
        arena.squeeze(rows.iter_mut().map(|row| &mut row.text));
    }

    /// Sets what a node says in the row. Gives whether that changed anything, and whether the value was malformed.
    fn set(&mut self, row: u32, node: Option<JobNode>, found: &Found) -> (bool, bool) {
        let (data, stat) = found.node().map_or((None, None), |(data, stat)| (Some(data), Some(stat)));
        let Self { rows, arena, texts, .. } = self;
        let row = &mut rows[row as usize];
        match node {
            None => {
                let changed = replace(&mut row.created_ms, stat.map_or(UNKNOWN_MS, |stat| stat.ctime));
                // A status that is there and not ours to read dates nothing either.
                if row.status_version() < 0 {
                    row.standing.entered_ms = row.created_ms;
                }
                (changed, false)
            }
            Some(JobNode::Bid) => {
                plain(data.map(record::bid), |batch| replace(&mut row.batch, batch.map(BatchId::number)))
            }
            Some(JobNode::Priority) => {
                let is_out = data.is_some_and(record::is_priority_out_of_range);
                let is_other = replace(&mut row.is_priority_out_of_range, is_out);
                let (changed, malformed) = plain(data.map(record::priority), |priority| {
                    replace(&mut row.priority, priority.map(Priority::number))
                });
                (changed || is_other, malformed)
            }
            Some(JobNode::SpaceNeeded) => plain(data.map(record::space_needed), |space| {
                replace(&mut row.standing.space_needed_bytes, space.flatten().unwrap_or(0))
            }),
            Some(JobNode::Status) => set_status(row, texts, data, stat),
            Some(JobNode::Configuration) => {
                let Decoded { value, malformed } = data.map_or_else(nothing, Configuration::decode);
                let submitted = time::read(&value.submission_date).map(jiff::Timestamp::as_millisecond);
                let local_ids = value.local_ids.join("; ");
                let fields = [
                    (text::FILENAME, &*value.filename),
                    (text::TITLE, &*value.title),
                    (text::OBJECT_ID, &*value.object_id),
                    (text::NAMED_LOCAL_IDS, &*local_ids),
                ];
                let changed = [
                    arena.set(&mut row.text, &fields),
                    texts.set(&mut row.standing.collection, &value.collection),
                    texts.set(&mut row.submitter, &value.submitter),
                    replace(&mut row.submitted_ms, submitted),
                ];
                (changed.contains(&true), malformed.is_some())
            }
            Some(JobNode::Identifiers) => set_identifiers(row, arena, data, [text::ARK, text::LOCAL_IDS]),
            Some(JobNode::Identifier) => set_identifiers(row, arena, data, [text::OLD_ARK, text::OLD_LOCAL_IDS]),
            Some(JobNode::Metadata | JobNode::Store | JobNode::Inventory) => {
                (false, data.is_some_and(|data| record::object_form(data).is_err()))
            }
            Some(JobNode::Lock) => {
                let lock = stat.map(LockStat::of);
                row.standing.locked_ms = lock.map(|lock| lock.created_ms);
                (replace(&mut row.lock, lock.map(Box::new)), false)
            }
        }
    }

    fn settle(&mut self, row: u32, before: Standing) {
        let after = self.rows[row as usize].standing;
        if self.is_counted && before != after {
            self.figures.leave(row, before);
            self.figures.enter(row, after);
        }
    }

    fn forget(&mut self, row: u32) {
        let Self { rows, by_id, hasher, arena, texts, .. } = self;
        let mut gone = std::mem::take(&mut rows[row as usize]);
        let job = gone.id();
        if self.is_counted {
            self.figures.leave(row, gone.standing);
        }
        // The row's number is already taken out of the table's reach; the entry is found by its position.
        if let Ok(entry) = by_id.find_entry(hasher.hash_one(gone.number), |other| *other == row) {
            entry.remove();
        }
        arena.release(&mut gone.text);
        for text in [&mut gone.submitter, &mut gone.message, &mut gone.odd_status, &mut gone.standing.collection] {
            texts.release(text);
        }
        self.free.push(row);
        if let Some(entry) = gone.entry_name() {
            self.odd_entries.entry(job).or_default().push(entry);
        }
        if let Some(reference) = gone.reference_of() {
            self.odd_references.entry(job).or_default().push(reference);
        }
    }

    /// Takes note of a queue entry being there or not. Gives whether that is new.
    pub(super) fn apply_entry(&mut self, folder: &StateFolder, entry: EntryName, present: bool) -> bool {
        let fits = place_of(folder, entry);
        let number = self.find(entry.job);
        let row = number.map(|row| &mut self.rows[row as usize]);
        let odd = (folder.clone(), entry);
        let changed = match (row, fits) {
            (Some(row), Some(own)) if row.entry == Some(own) => {
                if !present {
                    row.entry = None;
                }
                !present
            }
            (Some(row), Some(own)) if present && row.entry.is_none() && !holds(&self.odd_entries, entry.job, &odd) => {
                row.entry = Some(own);
                true
            }
            (_, _) => set_odd(&mut self.odd_entries, entry.job, odd, present),
        };
        if changed {
            let count = self.in_folder.entry_ref(folder).or_default();
            *count = if present { *count + 1 } else { count.saturating_sub(1) };
        }
        if let (false, Some(row)) = (present, number) {
            self.fill_places(row);
        }
        self.znodes += if changed { i64::from(present) * 2 - 1 } else { 0 };
        changed
    }

    /// Takes note of a batch's reference to a job being there or not. Gives whether that is new.
    pub(super) fn apply_reference(&mut self, batch: BatchId, outcome: Outcome, job: JobId, present: bool) -> bool {
        let number = self.find(job);
        let row = number.map(|row| &mut self.rows[row as usize]);
        let own = Some((batch.number(), outcome));
        let changed = match row {
            Some(row) if row.reference == own => {
                if !present {
                    row.reference = None;
                }
                !present
            }
            Some(row) if present && row.reference.is_none() && !holds(&self.odd_references, job, &(batch, outcome)) => {
                row.reference = own;
                true
            }
            Some(_) | None => set_odd(&mut self.odd_references, job, (batch, outcome), present),
        };
        if let (false, Some(row)) = (present, number) {
            self.fill_places(row);
        }
        self.znodes += if changed { i64::from(present) * 2 - 1 } else { 0 };
        changed
    }

    /// The queue entries of a job, in no order.
    pub(super) fn entries(&self, job: JobId) -> impl Iterator<Item = (StateFolder, EntryName)> {
        let own = self.get(job).and_then(Row::entry_name);
        own.into_iter().chain(self.odd_entries.get(&job).into_iter().flatten().cloned())
    }

    /// The batch references of a job, in no order.
    pub(super) fn references(&self, job: JobId) -> impl Iterator<Item = (BatchId, Outcome)> {
        let own = self.get(job).and_then(Row::reference_of);
        own.into_iter().chain(self.odd_references.get(&job).into_iter().flatten().copied())
    }

    /// Jobs that have entries or references which do not fit into a row, among them jobs that are gone.
    pub(super) fn odd(&self) -> impl Iterator<Item = JobId> {
        self.odd_entries.keys().chain(self.odd_references.keys()).copied()
    }

    /// Every lock on a job.
    pub(super) fn locked(&self) -> impl Iterator<Item = (JobId, LockStat)> {
        let rows = self.figures.states.iter().flat_map(|(_, state)| state.locked.iter());
        let rows = rows.map(|(_, row)| &self.rows[*row as usize]);
        rows.filter_map(|row| row.lock.as_deref().map(|lock| (row.id(), *lock)))
    }

    /// The status texts that name no state that we know; empty for a status that names none at all.
    pub(super) fn unknown_states(&self) -> impl Iterator<Item = std::sync::Arc<str>> {
        // Jobs of unknown states are few, or all of them: then the first ones say it.
        let rows = self.figures.states.get(None).entered.iter().flat_map(|bands| bands.iter().take(1000));
        rows.map(|(_, row)| self.texts.get(self.rows[row as usize].odd_status))
    }

    /// Counts all rows and gives back the memory that filling them has set aside.
    pub(super) fn count(&mut self) {
        let standing = |(row, job): (usize, &Row)| {
            (!job.nodes.is_empty()).then(|| (u32::try_from(row).expect("rows are numbered by 32 bits"), job.standing))
        };
        self.figures = Figures::of(self.rows.iter().enumerate().filter_map(standing));
        self.is_counted = true;
        self.rows.shrink_to_fit();
        self.arena.shrink();
    }
}

fn set_identifiers(row: &mut Row, arena: &mut Arena, data: Option<&[u8]>, fields: [usize; 2]) -> (bool, bool) {
    let Decoded { value, malformed } = data.map_or_else(nothing, Identifiers::decode);
    let local_ids = value.local_ids.join("; ");
    (arena.set(&mut row.text, &[(fields[0], &*value.ark), (fields[1], &*local_ids)]), malformed.is_some())
}

fn set_status(row: &mut Row, texts: &mut Texts, data: Option<&[u8]>, stat: Option<&Stat>) -> (bool, bool) {
    let Decoded { value, malformed } = data.map_or_else(nothing, JobStatus::decode);
    let odd = if value.status.is_canonical() { "" } else { &value.status.text };
    let changed = [
        replace(&mut row.standing.state, value.status.state),
        replace(&mut row.standing.entered_ms, stat.map_or(row.created_ms, |stat| stat.mtime)),
        replace(&mut row.standing.retries, value.retry_count.unwrap_or(0)),
        replace(&mut row.has_retry_count, value.retry_count.is_some()),
        replace(&mut row.status_version, stat.map_or(-1, |stat| stat.version)),
        replace(&mut row.last_successful, value.last_successful),
        texts.set(&mut row.message, &value.message),
        texts.set(&mut row.odd_status, odd),
    ];
    (changed.contains(&true), malformed.is_some())
}

/// What is known of a znode that is not there, or not ours to read.
fn nothing<T: Default>() -> Decoded<T> {
    Decoded { value: T::default(), malformed: None }
}

fn plain<T, E>(read: Option<Result<T, E>>, set: impl FnOnce(Option<T>) -> bool) -> (bool, bool) {
    let malformed = matches!(read, Some(Err(_)));
    (set(read.and_then(Result::ok)), malformed)
}

fn replace<T: PartialEq>(place: &mut T, value: T) -> bool {
    let changed = *place != value;
    *place = value;
    changed
}

/// An entry as a row keeps it; `None` for one with an impossible priority or in the folder of an unknown state.
fn place_of(folder: &StateFolder, entry: EntryName) -> Option<(JobState, u8)> {
    folder.state().zip(u8::try_from(entry.priority).ok().filter(|priority| *priority <= Priority::MAX.number()))
}

/// Takes the first of a job's items that a row has room for.
fn take_odd<T, U>(odd: &mut HashMap<JobId, Vec<T>>, job: JobId, fits: impl Fn(&T) -> Option<U>) -> Option<U> {
    let items = odd.get_mut(&job)?;
    let (at, place) = items.iter().enumerate().find_map(|(at, item)| fits(item).map(|place| (at, place)))?;
    items.swap_remove(at);
    if items.is_empty() {
        odd.remove(&job);
    }
    Some(place)
}
