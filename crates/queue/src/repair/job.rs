//! The faults of a job: its entries, its references, its priority, and a job that the daemons cannot load.

use super::facts::JobInspection;
use super::{Repair, RepairOptions, Survey, gone};
use crate::error::Error;
use crate::fault::{Fault, detect_job};
use crate::handle::Queue;
use crate::id::{JobId, Priority};
use crate::job::{Job, state_of};
use crate::path::{EntryName, JobNode, Path};
use crate::record::{self, Malformed};
use crate::state::JobState;
use crate::transaction::Transaction;

impl Queue {
    pub(super) async fn repair_job(
        &self,
        fault: Fault,
        id: JobId,
        options: RepairOptions<'_>,
        survey: Option<&Survey>,
    ) -> Result<Repair, Error> {
        let item = Path::Job(id);
        let inspection = self.inspect_job(id, survey).await?;
        if inspection.job.is_none() && !matches!(fault, Fault::StrayEntry | Fault::MissingReference) {
            return Err(Error::Missing(item));
        }
        options.confirm(fault, &item, |limits, sink| detect_job(&inspection.facts(), limits, sink))?;
        let job = match (fault, &inspection.job) {
            (Fault::StrayEntry, None) => {
                let summary = format!("Removes the queue entries of job {id}, which is gone.");
                return Ok(Repair::new(fault, item, summary, deletion(inspection.entry_paths())));
            }
            (Fault::MissingReference, None) => {
                let summary = format!("Removes the references to job {id}, which is gone.");
                return Ok(Repair::new(fault, item, summary, deletion(inspection.reference_paths())));
            }
            (_, None) => return Err(gone(fault, &item)),
            (_, Some(job)) => job,
        };
        let mut loses = Vec::new();
        let mut writes_status = false;
        let (summary, changes) = match fault {
            Fault::OrphanEntry | Fault::DuplicateEntry | Fault::MissingEntry => {
                let (state, priority) = (needed(state_of(job))?, needed(job.priority())?);
                let mut transaction = Transaction::new();
                inspection.settle_entries(&mut transaction, state, priority);
                (format!("Leaves job {id} with one queue entry, in {state} with priority {priority}."), transaction)
            }
            Fault::PriorityOutOfRange => inspection.clamp_priority(job, &mut loses)?,
            Fault::DuplicateReference | Fault::MissingReference => inspection.settle_references(job)?,
            Fault::UnloadableJob => {
                let loadable = inspection.loadable(job, options.now)?;
                (loses, writes_status) = (loadable.loses, loadable.writes_status);
                (format!("Makes job {id} loadable. It writes {}.", loadable.words.join("; ")), loadable.changes)
            }
            _ => return Err(gone(fault, &item)),
        };
        if changes.is_empty() {
            return Err(gone(fault, &item));
        }
        let mut checked = Transaction::new();
        match job.version() {
            // The change itself checks it.
            Some(_) if writes_status => {}
            Some(version) => drop(checked.check(Path::JobNode(id, JobNode::Status), version)),
            None => drop(checked.check_exists(item.clone())),
        }
        checked.append(changes);
        let transaction = options.under_lock(Path::JobNode(id, JobNode::Lock), job.lock(), checked)?;
        Ok(Repair::new(fault, item, summary, transaction).losing(loses))
    }
}

/// What a repair goes by, where the job's own znodes say it.
fn needed<T>(value: Result<T, Error>) -> Result<T, Error> {
    value.map_err(|error| match error {
        Error::Missing(path) => {
            Error::Invalid { path, reason: "it does not exist: repair unloadable_job of the job first".to_owned() }
        }
        Error::Decode { path, malformed } => {
            // It names what is wrong itself, where that is a part of the value.
            let it = if matches!(malformed, Malformed::Wrong { .. }) { "" } else { "it " };
            Error::Invalid { path, reason: format!("{it}{malformed}: repair unloadable_job of the job first") }
        }
        other => other,
    })
}

fn deletion(paths: impl Iterator<Item = Path>) -> Transaction {
    let mut transaction = Transaction::new();
    for path in paths {
        transaction.delete(path, None);
    }
    transaction
}

impl JobInspection {
    /// Removes every entry but the one of that state and priority, and makes that where it is missing.
    fn settle_entries(&self, transaction: &mut Transaction, state: JobState, priority: Priority) {
        let own = (state.into(), EntryName::of(priority, self.id));
        for (folder, name) in self.entries.iter().filter(|entry| **entry != own) {
            transaction.delete(Path::Entry(folder.clone(), *name), None);
        }
        if !self.entries.contains(&own) {
            transaction.create(Path::Entry(own.0, own.1), Vec::new());
        }
    }

    /// Sets the nearest priority within 0 to 99, with its entry.
    fn clamp_priority(&self, job: &Job, loses: &mut Vec<(Path, Vec<u8>)>) -> Result<(String, Transaction), Error> {
        let state = needed(state_of(job))?;
        let path = Path::JobNode(job.id, JobNode::Priority);
        let data = job.data(JobNode::Priority).zip(job.stat(JobNode::Priority));
        let mut transaction = Transaction::new();
        let priority = match data.filter(|(data, _)| record::is_priority_out_of_range(data)) {
            Some((data, stat)) => {
                let is_negative = data.trim_ascii_start().starts_with(b"-");
                let nearest = Priority::new(0).filter(|_| is_negative).unwrap_or(Priority::MAX);
                loses.push((path.clone(), data.to_vec()));
                transaction.set(path, nearest.to_string(), stat.version);
                nearest
            }
            None => needed(job.priority())?,
        };
        self.settle_entries(&mut transaction, state, priority);
        Ok((format!("Sets job {} to priority {priority}, with one queue entry in {state}.", job.id), transaction))
    }

    /// Removes every reference but the one that matches the job's status below its own batch, and creates that where it
    /// is missing.
    fn settle_references(&self, job: &Job) -> Result<(String, Transaction), Error> {
        let (batch, state) = (needed(job.batch())?, needed(state_of(job))?);
        if !self.is_batch_acquired {
            let reason = format!("its batch {batch} is gone or has no states, so no reference can be made");
            return Err(Error::Invalid { path: Path::Job(job.id), reason });
        }
        let own = (batch, state.outcome());
        let mut transaction = Transaction::new();
        for (batch, outcome) in self.references.iter().filter(|reference| **reference != own) {
            transaction.delete(Path::Reference(*batch, *outcome, job.id), None);
        }
        if !self.references.contains(&own) {
            transaction.create(Path::Reference(own.0, own.1, job.id), Vec::new());
        }
        let folder = own.1.folder();
        Ok((format!("Leaves job {} one reference, in {folder} of batch {batch}.", job.id), transaction))
    }
}

#[cfg(test)]
mod tests;
