//! Deleting the jobs of a batch whose withdrawal nothing stands against, and the batch with the last of them.

use crate::batch::{Batch, BatchReport};
use crate::error::{ConflictKind, Error};
use crate::id::JobId;
use crate::job::JobChange;
use crate::path::{BatchNode, Path};
use crate::record::WithdrawalPhase;
use crate::state::{BatchState, JobOutcome, JobState};
use crate::transaction::{REQUEST_LIMIT_BYTES, Transaction};

use super::{ATTEMPTS, Mark, Withdrawal, WithdrawalOutcome, WithdrawalProgress, is_about_jobs};

impl Withdrawal<'_> {
    /// Deletes the batch and these jobs of it, all that are to be deleted, in one transaction. Gives whether it was
    /// done: it may be too large.
    pub(super) async fn delete_at_once(
        &self,
        batch: &Batch,
        report: &BatchReport,
        ids: &[JobId],
        mark: &Mark,
    ) -> Result<bool, Error> {
        let mut transaction = Transaction::new();
        self.lock.hold(&mut transaction);
        self.add_jobs(&mut transaction, report, ids, mark).await?;
        self.add_batch(&mut transaction, batch, mark);
        if let Some(version) = mark.expansion {
            transaction.delete(Path::expansion(self.id()), Some(version));
        }
        self.close(mark, &mut transaction);
        let overhead = transaction.operations().len() * self.queue.operation_overhead();
        if transaction.size_bytes() + overhead > REQUEST_LIMIT_BYTES {
            return Ok(false);
        }
        self.queue.commit(&transaction).await.map(|_| true)
    }

    /// Deletes all jobs, and the batch with the last one. A job that another tool has released meanwhile is left out,
    /// and the batch stays with it.
    pub(super) async fn delete(&mut self, mark: &Mark) -> Result<WithdrawalOutcome, Error> {
        let report = self.queue.batch_report(self.id()).await?;
        let all = self.queue.jobs_to_withdraw(&self.target, &report).await?;
        // With an empty `batch-processing` the batch would be due for its report.
        let last = report.processing.last().copied();
        let of_jobs = all.len();
        let mut rest: Vec<JobId> =
            all.into_iter().filter(|id| Some(*id) != last && !is_deleted(&report, *id)).collect();
        let mut escaped = Vec::new();
        while !rest.is_empty() {
            let some = rest.len().min(self.queue.jobs_per_transaction());
            escaped.extend(self.delete_some(&rest[..some], mark).await?);
            rest.drain(..some);
            let (phase, jobs) = (WithdrawalPhase::Deleting, of_jobs - rest.len());
            if (self.report)(WithdrawalProgress { phase, jobs, of_jobs }).is_break() {
                return Ok(WithdrawalOutcome::Interrupted);
            }
        }
        for _ in 0..ATTEMPTS {
            match self.end(last, &escaped, mark).await {
                Ok(None) => return Ok(WithdrawalOutcome::Withdrawn { jobs: of_jobs }),
                Ok(Some(why)) => return Ok(WithdrawalOutcome::InPart(why)),
                Err(error) if is_about_jobs(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::conflict(Path::Batch(self.id()), ConflictKind::Moved))
    }

    /// Deletes some jobs. Gives why those are left out that cannot be deleted.
    async fn delete_some(&self, ids: &[JobId], mark: &Mark) -> Result<Vec<String>, Error> {
        let (open, close) = (self.open(mark), Transaction::new());
        'again: for _ in 0..ATTEMPTS {
            let found = self.queue.candidates(self.id(), ids).await?;
            let fit: Vec<JobId> = ids.iter().copied().filter(|id| !found.hindered.contains(id)).collect();
            let report = self.queue.batch_report(self.id()).await?;
            let items = match self.queue.deletions(&self.target, &report, &fit, &change(mark), self.now).await {
                Ok(items) => items,
                Err(error) if is_about_jobs(&error) => continue,
                Err(error) => return Err(error),
            };
            for chunk in self.queue.chunks(items, &open, &close) {
                match self.queue.commit(&chunk.transaction).await {
                    Ok(_) => {}
                    Err(error) if is_about_jobs(&error) => continue 'again,
                    Err(error) => return Err(error),
                }
            }
            return Ok(found.hindrance.into_iter().collect());
        }
        Err(Error::conflict(Path::Batch(self.id()), ConflictKind::Moved))
    }

    /// Deletes the last job and the batch, and ends the withdrawal. Where a job was left out, the batch stays as it is,
    /// and the answer says why.
    async fn end(&self, last: Option<JobId>, escaped: &[String], mark: &Mark) -> Result<Option<String>, Error> {
        let batch = self.queue.load_batch(self.id()).await?;
        self.target.check(&batch)?;
        let found = self.queue.candidates(self.id(), last.as_slice()).await?;
        let escaped = escaped.first().or(found.hindrance.as_ref());
        let report = self.queue.batch_report(self.id()).await?;
        let mut transaction = Transaction::new();
        self.lock.hold(&mut transaction);
        if found.hindered.is_empty() {
            self.add_jobs(&mut transaction, &report, last.as_slice(), mark).await?;
        }
        if escaped.is_none() {
            self.add_batch(&mut transaction, &batch, mark);
        }
        self.close(mark, &mut transaction);
        self.queue.commit(&transaction).await?;
        Ok(escaped.map(|why| format!("{why}: another tool released it while its other jobs were being deleted")))
    }

    async fn add_jobs(
        &self,
        transaction: &mut Transaction,
        report: &BatchReport,
        ids: &[JobId],
        mark: &Mark,
    ) -> Result<(), Error> {
        let items = self.queue.deletions(&self.target, report, ids, &change(mark), self.now).await?;
        for (_, item) in items {
            transaction.append(item);
        }
        Ok(())
    }

    /// Adds the deletion of the batch itself, whose jobs are.
    fn add_batch(&self, transaction: &mut Transaction, batch: &Batch, mark: &Mark) {
        batch.set_status(transaction, BatchState::Deleted, &mark.note.withdrawn().to_string(), self.now);
        if !batch.is_acquired() {
            // Without it, the daemons would take it for a batch that is to be acquired.
            transaction.create(Path::BatchNode(batch.id, BatchNode::States), Vec::new());
        }
        if batch.references(JobOutcome::Processing).is_some() {
            // Left behind empty, it would stop all reporting: see `plan_delete`.
            transaction.delete(Path::BatchOutcome(batch.id, JobOutcome::Processing), None);
        }
    }
}

fn change(mark: &Mark) -> JobChange {
    JobChange::to(JobState::Deleted).with_message(mark.note.withdrawn().to_string()).withdrawn()
}

/// Whether a job is referenced as deleted, and as nothing else.
fn is_deleted(report: &BatchReport, id: JobId) -> bool {
    let is_in = |outcome: &JobOutcome| report.of(*outcome).binary_search(&id).is_ok();
    JobOutcome::ALL.iter().filter(|outcome| is_in(outcome)).eq([&JobOutcome::Deleted])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_deleted_where_nothing_refers_to_it_but_as_deleted() {
        let [one, two] = [1, 2].map(JobId::new);
        let report = |failed: &[JobId], deleted: &[JobId]| BatchReport {
            failed: failed.to_vec(),
            deleted: deleted.to_vec(),
            ..BatchReport::default()
        };
        for (failed, deleted, expected) in [
            (&[][..], &[][..], [false, false]),
            (&[], &[one], [true, false]),
            (&[], &[one, two], [true, true]),
            (&[one], &[one, two], [false, true]),
            (&[one, two], &[], [false, false]),
        ] {
            let report = report(failed, deleted);
            assert_eq!([one, two].map(|job| is_deleted(&report, job)), expected, "{report:?}");
        }
    }
}
