//! The queue entries of jobs, and the references of batches to them.

use hashbrown::HashMap;

use super::Jobs;
use super::odd::{holds, set_odd};
use crate::mirror::image::row::{JobRow, Rest};
use queuekeeper_queue::id::{BatchId, JobId, Priority};
use queuekeeper_queue::path::{EntryName, StateFolder};
use queuekeeper_queue::state::{JobOutcome, JobState};

impl Jobs {
    /// Moves an entry and a reference that are kept apart into the row, where it has room for them. Reads come in any
    /// order, so they may have come before their job.
    pub(super) fn fill_places(&mut self, row: u32) {
        let job = JobId::new(self.columns.number[row as usize]);
        let row = &mut self.rest[row as usize];
        if row.entry.is_none() {
            row.entry = take_odd(&mut self.odd_entries, job, |(folder, entry)| place_of(folder, *entry));
        }
        if row.reference.is_none() {
            row.reference =
                take_odd(&mut self.odd_references, job, |(batch, outcome)| Some((batch.number(), *outcome)));
        }
    }

    /// Keeps the entry and the reference of a job that is gone apart.
    pub(super) fn keep_places(&mut self, job: JobId, gone: &Rest) {
        if let Some((state, priority)) = gone.entry {
            let entry = EntryName { priority: i32::from(priority), job };
            self.odd_entries.entry(job).or_default().push((state.into(), entry));
        }
        if let Some((batch, outcome)) = gone.reference {
            self.odd_references.entry(job).or_default().push((BatchId::new(batch), outcome));
        }
    }

    /// Takes note of a queue entry being there or not. Gives whether that is new.
    pub(in crate::mirror::image) fn apply_entry(
        &mut self,
        folder: &StateFolder,
        entry: EntryName,
        present: bool,
    ) -> bool {
        let fits = place_of(folder, entry);
        let number = self.find(entry.job);
        let row = number.map(|row| &mut self.rest[row as usize]);
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
            if self.is_counted {
                self.order.note(folder, entry, present);
            }
        }
        if let (false, Some(row)) = (present, number) {
            self.fill_places(row);
        }
        self.znodes += if changed { i64::from(present) * 2 - 1 } else { 0 };
        changed
    }

    /// Takes note of a batch's reference to a job being there or not. Gives whether that is new.
    pub(in crate::mirror::image) fn apply_reference(
        &mut self,
        batch: BatchId,
        outcome: JobOutcome,
        job: JobId,
        present: bool,
    ) -> bool {
        let number = self.find(job);
        let row = number.map(|row| &mut self.rest[row as usize]);
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
    pub(in crate::mirror::image) fn entries(&self, job: JobId) -> impl Iterator<Item = (StateFolder, EntryName)> {
        let own = self.get(job).and_then(JobRow::entry_name);
        own.into_iter().chain(self.odd_entries(job).iter().cloned())
    }

    /// Of these, the ones that do not fit into its row.
    pub(in crate::mirror::image) fn odd_entries(&self, job: JobId) -> &[(StateFolder, EntryName)] {
        self.odd_entries.get(&job).map_or(&[], Vec::as_slice)
    }

    /// The batch references of a job, in no order.
    pub(in crate::mirror::image) fn references(&self, job: JobId) -> impl Iterator<Item = (BatchId, JobOutcome)> {
        let own = self.get(job).and_then(JobRow::reference_of);
        own.into_iter().chain(self.odd_references(job).iter().copied())
    }

    /// Of these, the ones that do not fit into its row.
    pub(in crate::mirror::image) fn odd_references(&self, job: JobId) -> &[(BatchId, JobOutcome)] {
        self.odd_references.get(&job).map_or(&[], Vec::as_slice)
    }
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
