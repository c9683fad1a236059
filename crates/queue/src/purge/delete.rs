//! Setting a batch and its jobs Deleted.

use jiff::Timestamp;

use super::census::Census;
use super::item::check_unlocked;
use super::{BulkPlan, Chunk, PlannedJob};
use crate::batch::{BatchReport, BatchTarget};
use crate::error::Error;
use crate::handle::Queue;
use crate::id::JobId;
use crate::item::ItemChange;
use crate::job::{Job, JobChange};
use crate::lock::ChangeTarget as _;
use crate::path::{BatchNode, Path};
use crate::state::{BatchState, JobOutcome, JobState, State};
use crate::transaction::Transaction;

/// How many jobs are read at once, so that not all of a batch's values are in memory.
const READ_AT_ONCE: usize = 1_000;

impl Queue {
    /// Plans to set a Held or Failed batch Deleted, and with it those of its jobs that are not final.
    ///
    /// The last transaction sets the batch Deleted and removes `states/batch-processing`: left behind empty, it would
    /// make the report daemon take the batch, throw and leak its lock. What is left then is to be purged.
    ///
    /// # Errors
    /// [`Error::Transition`] for a batch in another state, or one with a job that is at work; [`Error::Conflict`] where
    /// it, or one of its jobs, is held or was changed since it was seen; [`Error::Missing`] and [`Error::Decode`] where
    /// a status cannot be read; [`Error::Read`].
    pub async fn plan_delete(
        &self,
        target: impl Into<BatchTarget>,
        message: &str,
        now: Timestamp,
    ) -> Result<BulkPlan, Error> {
        let target = target.into();
        let batch = self.load_batch(target.id).await?;
        target.check(&batch)?;
        let change = ItemChange::to(BatchState::Deleted).by_operator();
        let from = batch.state_to_change()?;
        change.target(&Path::Batch(batch.id), from)?;
        let report = self.batch_report(batch.id).await?;
        let mut ids: Vec<JobId> = self.jobs_of(&target, &mut Census::default()).await?;
        ids.extend(JobOutcome::ALL.iter().flat_map(|outcome| report.of(*outcome)));
        ids.sort_unstable();
        ids.dedup();
        let jobs = JobChange::to(JobState::Deleted).with_message(message).by_operator();
        let items = self.deletions(&target, &report, &ids, &jobs, now).await?;

        let (mut open, mut close, mut last) = (Transaction::new(), Transaction::new(), Transaction::new());
        target.open(&mut open);
        target.close(&mut close);
        last.append(open.clone());
        batch.set_status(&mut last, BatchState::Deleted, message, now);
        if batch.references(JobOutcome::Processing).is_some() {
            last.delete(Path::BatchOutcome(batch.id, JobOutcome::Processing), None);
        }
        last.append(close.clone());
        open.check(Path::BatchNode(batch.id, BatchNode::Status), batch.version().unwrap_or_default());
        let mut chunks = self.chunks(items, &open, &close);
        chunks.push(Chunk { jobs: Vec::new(), transaction: last });
        Ok(BulkPlan { batch: batch.id, from, version: batch.version().unwrap_or_default(), chunks })
    }

    /// What is to be done for each job, with that change of those that are not final.
    pub(crate) async fn deletions(
        &self,
        target: &BatchTarget,
        report: &BatchReport,
        ids: &[JobId],
        change: &JobChange,
        now: Timestamp,
    ) -> Result<Vec<(Option<PlannedJob>, Transaction)>, Error> {
        let mut items = Vec::new();
        for ids in ids.chunks(READ_AT_ONCE) {
            let reads: Vec<_> = ids.iter().flat_map(|id| Job::reads(*id)).collect();
            let mut found = self.read(&reads).await?.into_iter();
            let mut jobs = Vec::new();
            for id in ids {
                let job = Job::from_found(*id, found.by_ref().take(Job::READS).collect::<Vec<_>>());
                let job = job.filter(|job| job.batch().is_ok_and(|batch| batch == target.id));
                // A worker that holds a job is detected before anything is written, also where the job is done.
                job.as_ref().map_or(Ok(()), check_unlocked)?;
                match job {
                    Some(job) if !job.state().is_some_and(JobState::is_final) => jobs.push(job),
                    // A job that is done stays as it is; its reference, where it contradicts that, does not.
                    Some(job) => items.push((None, correct(report, target, &job))),
                    // The job is gone, or another batch's.
                    None => items.push((None, removal(report, target, *id))),
                }
            }
            let plans = self.plan_jobs(&jobs, change, now).await?;
            items.extend(plans.into_iter().map(|plan| (Some((plan.job, Some(plan.from))), plan.transaction)));
        }
        items.retain(|(_, transaction)| !transaction.is_empty());
        Ok(items)
    }
}

/// Moves the references of a final job to the folder of its state.
fn correct(report: &BatchReport, target: &BatchTarget, job: &Job) -> Transaction {
    let right = job.state().map(JobState::outcome);
    let mut transaction = Transaction::new();
    for outcome in JobOutcome::ALL {
        let is_there = report.of(outcome).binary_search(&job.id).is_ok();
        let path = Path::Reference(target.id, outcome, job.id);
        if is_there && right != Some(outcome) {
            transaction.delete(path, None);
        } else if !is_there && right == Some(outcome) {
            transaction.create(path, Vec::new());
        }
    }
    transaction
}

/// Removes the references to a job.
fn removal(report: &BatchReport, target: &BatchTarget, id: JobId) -> Transaction {
    let mut transaction = Transaction::new();
    for outcome in JobOutcome::ALL.iter().filter(|outcome| report.of(**outcome).binary_search(&id).is_ok()) {
        transaction.delete(Path::Reference(target.id, *outcome, id), None);
    }
    transaction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::BatchId;
    use crate::path::JobNode;
    use crate::testing::job;

    #[test]
    fn the_references_to_a_job_are_corrected_or_removed() {
        let one = JobId::new(1);
        let report = BatchReport { processing: vec![one], failed: vec![JobId::new(2)], ..BatchReport::default() };
        let target = BatchTarget::from(BatchId::new(7));
        let in_state =
            |state: &str| correct(&report, &target, &job(&[(JobNode::Status, format!(r#"{{"status":"{state}"}}"#))]));
        let path = |outcome: &str, job: JobId| format!("/batches/bid0000000007/states/batch-{outcome}/{job}");
        let delete = format!("delete {}\n", path("processing", one));
        let moved = format!("{delete}create {}\n", path("deleted", one));
        assert_eq!(in_state("Deleted").to_string(), moved);
        assert_eq!(in_state("odd").to_string(), delete);
        assert!(in_state("Storing").is_empty());
        assert_eq!(removal(&report, &target, one).to_string(), delete);
        assert_eq!(
            removal(&report, &target, JobId::new(2)).to_string(),
            format!("delete {}\n", path("failed", JobId::new(2)))
        );
        assert!(removal(&report, &target, JobId::new(3)).is_empty());
    }
}
