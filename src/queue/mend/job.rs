//! The faults of a job: its entries, its references, its priority, and a job that nobody can load.

use super::facts::JobLook;
use super::{Mend, MendOrder, Survey, gone};
use crate::queue::error::Error;
use crate::queue::fault::{Fault, judge_job};
use crate::queue::handle::Queue;
use crate::queue::id::{JobId, Priority};
use crate::queue::job::{Job, state_of};
use crate::queue::path::{EntryName, JobNode, Path};
use crate::queue::purge::check_unlocked;
use crate::queue::record;
use crate::queue::state::JobState;
use crate::queue::transaction::Transaction;

impl Queue {
    pub(super) async fn mend_job(
        &self,
        fault: Fault,
        id: JobId,
        order: MendOrder<'_>,
        survey: Option<&Survey>,
    ) -> Result<Mend, Error> {
        let item = Path::Job(id);
        let look = self.look_at_job(id, survey).await?;
        order.confirm(fault, &item, |limits, sink| judge_job(&look.facts(), limits, sink))?;
        let job = match (fault, &look.job) {
            (Fault::StrayEntry, None) => {
                let summary = format!("Removes the queue entries of job {id}, which is gone.");
                return Ok(Mend::harmless(fault, item, summary, deletion(look.entry_paths())));
            }
            (Fault::MissingReference, None) => {
                let summary = format!("Removes the references to job {id}, which is gone.");
                return Ok(Mend::harmless(fault, item, summary, deletion(look.reference_paths())));
            }
            (_, None) => return Err(gone(fault, &item)),
            (_, Some(job)) => job,
        };
        let (summary, transaction) = match fault {
            Fault::OrphanEntry | Fault::DuplicateEntry | Fault::MissingEntry => {
                let (state, priority) = (state_of(job)?, job.priority()?);
                let mut transaction = Transaction::new();
                look.settle_entries(&mut transaction, state, priority);
                (format!("Leaves job {id} one queue entry, that of {state} and priority {priority}."), transaction)
            }
            Fault::PriorityOutOfRange => look.clamp_priority(job)?,
            Fault::DuplicateReference | Fault::MissingReference => look.settle_references(job)?,
            Fault::UnloadableJob | Fault::UnfinishedCreation => return self.remove_job(fault, &look, order).await,
            _ => return Err(gone(fault, &item)),
        };
        if !order.even_if_locked {
            check_unlocked(job)?;
        }
        Ok(Mend::harmless(fault, item, summary, under_lock(job, order, transaction)?))
    }
}

/// Puts changes around a job between the taking and the releasing of its lock, with its status checked. Under the lock
/// of another, where that is ordered, the check alone tells that the job is still in the same state.
fn under_lock(job: &Job, order: MendOrder<'_>, changes: Transaction) -> Result<Transaction, Error> {
    let lock = Path::JobNode(job.id, JobNode::Lock);
    let status = Path::JobNode(job.id, JobNode::Status);
    let version = job.version().ok_or(Error::Missing(status.clone()))?;
    let is_anothers = job.lock().is_some() && order.even_if_locked;
    let mut transaction = Transaction::new();
    if !is_anothers {
        transaction.create_ephemeral(lock.clone());
    }
    transaction.check(status, version).append(changes);
    if !is_anothers {
        transaction.delete(lock, None);
    }
    Ok(transaction)
}

fn deletion(paths: impl Iterator<Item = Path>) -> Transaction {
    let mut transaction = Transaction::new();
    for path in paths {
        transaction.delete(path, None);
    }
    transaction
}

impl JobLook {
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
    fn clamp_priority(&self, job: &Job) -> Result<(String, Transaction), Error> {
        let state = state_of(job)?;
        let path = Path::JobNode(job.id, JobNode::Priority);
        let data = job.data(JobNode::Priority).zip(job.stat(JobNode::Priority));
        let mut transaction = Transaction::new();
        let priority = match data.filter(|(data, _)| record::is_priority_out_of_range(data)) {
            Some((data, stat)) => {
                let is_negative = data.trim_ascii_start().starts_with(b"-");
                let nearest = Priority::new(0).filter(|_| is_negative).unwrap_or(Priority::MAX);
                transaction.set(path, nearest.to_string(), stat.version);
                nearest
            }
            None => job.priority()?,
        };
        self.settle_entries(&mut transaction, state, priority);
        Ok((format!("Gives job {} priority {priority}, and its one queue entry in {state}.", job.id), transaction))
    }

    /// Removes every reference but the one that the job's status asks for below its own batch, and makes that where it
    /// is missing.
    fn settle_references(&self, job: &Job) -> Result<(String, Transaction), Error> {
        let (batch, state) = (job.batch()?, state_of(job)?);
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
