//! Holding the jobs of a batch that are Pending, and giving them back.

use crate::error::{ConflictKind, Error};
use crate::id::JobId;
use crate::job::{Job, JobChange, JobPlan};
use crate::path::Path;
use crate::record::WithdrawalPhase;
use crate::state::JobState;
use crate::transaction::{Operation, Transaction};

use super::candidates::{Fitness, fitness_of};
use super::{ATTEMPTS, MOVING, Mark, Withdrawal, WithdrawalOutcome, WithdrawalProgress, is_about_jobs};

/// How holding the jobs ended.
pub(super) enum Held {
    /// All are Held.
    All,
    /// One cannot be withdrawn, for this reason.
    Hindered(String),
    /// It was interrupted.
    Interrupted,
}

/// What became of some of the jobs.
enum Step {
    Done,
    Hindered(String),
}

impl Withdrawal<'_> {
    /// Holds every job that is Pending, until all are Held.
    pub(super) async fn hold(&mut self, mark: &mut Mark) -> Result<Held, Error> {
        for _ in 0..ATTEMPTS {
            let report = self.queue.batch_report(self.id()).await?;
            let ids = self.queue.jobs_to_withdraw(&self.target, &report).await?;
            let found = self.queue.candidates(self.id(), &ids).await?;
            if let Some(why) = found.hindrance {
                return Ok(Held::Hindered(why));
            }
            let of_jobs = found.pending.len() + found.held.len();
            let mut pending = found.pending;
            // The expansion ends with the first transaction, and without it a job that has no queue entry is a fault.
            let last = mark.note.expansion.as_ref().and_then(|expansion| expansion.last);
            if let Some(at) = last.and_then(|last| pending.binary_search(&last).ok()) {
                pending[..=at].rotate_right(1);
            }
            if pending.is_empty() && mark.version.is_some() {
                return Ok(Held::All);
            }
            while !pending.is_empty() || mark.version.is_none() {
                match self.hold_some(mark, &mut pending).await? {
                    Step::Done => {}
                    Step::Hindered(why) => return Ok(Held::Hindered(why)),
                }
                let (phase, jobs) = (WithdrawalPhase::Holding, of_jobs - pending.len());
                if (self.report)(WithdrawalProgress { phase, jobs, of_jobs }).is_break() {
                    return Ok(Held::Interrupted);
                }
            }
        }
        Ok(Held::Hindered("another client releases its jobs while they are being held".to_owned()))
    }

    /// Holds the first of these jobs, as many as one transaction takes, and takes them off the list.
    async fn hold_some(&self, mark: &mut Mark, pending: &mut Vec<JobId>) -> Result<Step, Error> {
        let change = JobChange::to(JobState::Held).with_message(mark.note.held_message());
        for _ in 0..ATTEMPTS {
            let some = &pending[..pending.len().min(self.queue.jobs_per_transaction())];
            let mut jobs = Vec::with_capacity(some.len());
            for job in self.queue.jobs_of_batch(self.id(), some).await? {
                match fitness_of(&job) {
                    Fitness::Pending => jobs.push(job),
                    // Held by another meanwhile.
                    Fitness::Held | Fitness::Deleted => {}
                    Fitness::Hindered(why) => return Ok(Step::Hindered(why)),
                }
            }
            let Some(plans) = self.plan(&jobs, &change).await? else { continue };
            let (transaction, done) = self.first_of(mark, plans);
            match self.queue.commit(&transaction).await {
                Ok(_) => {}
                Err(error) if is_about_jobs(&error) => continue,
                Err(error) => return Err(error),
            }
            mark.version.get_or_insert(0);
            let (some, done) = (some.len(), done.unwrap_or(some.len()));
            // Those behind the first that did not fit stay on the list, and what of the others is not planned is done.
            let left: Vec<JobId> = jobs.iter().skip(done).map(|job| job.id).collect();
            pending.splice(..some, left);
            return Ok(Step::Done);
        }
        Ok(Step::Hindered(MOVING.to_owned()))
    }

    /// Plans a change of these jobs; `None` where one of them has changed since.
    async fn plan(&self, jobs: &[Job], change: &JobChange) -> Result<Option<Vec<JobPlan>>, Error> {
        match self.queue.plan_jobs(jobs, change, self.now).await {
            Ok(plans) => Ok(Some(plans)),
            Err(error) if is_about_jobs(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As many of the plans as one transaction takes, and how many these are; `None` for all.
    fn first_of(&self, mark: &Mark, plans: Vec<JobPlan>) -> (Transaction, Option<usize>) {
        let open = self.open(mark);
        let items = plans.into_iter().map(|plan| (Some((plan.job, Some(plan.from))), plan.transaction));
        let mut chunks = self.queue.chunks(items, &open, &Transaction::new()).into_iter();
        match (chunks.next(), chunks.next()) {
            (None, _) => (open, None),
            (Some(first), None) => (first.transaction, None),
            (Some(first), Some(_)) => (first.transaction, Some(first.jobs.len())),
        }
    }

    /// Takes the jobs that this withdrawal holds back to Pending, and the batch to where it was.
    pub(super) async fn give_back(&mut self, mark: &Mark) -> Result<WithdrawalOutcome, Error> {
        let (message, note) = (mark.note.held_message(), &mark.note);
        let last = note.expansion.as_ref().and_then(|expansion| expansion.last);
        let is_ours = |job: &Job| {
            let status = job.status().value;
            status.status.state == Some(JobState::Held) && *status.message == *message
        };
        let mut ids = self.queue.batch_report(self.id()).await?.processing;
        ids.retain(|id| Some(*id) != last);
        let (of_jobs, mut attempts) = (ids.len(), 0);
        while !ids.is_empty() {
            let some = ids.len().min(self.queue.jobs_per_transaction());
            let mut jobs = self.queue.jobs_of_batch(self.id(), &ids[..some]).await?;
            jobs.retain(is_ours);
            if jobs.is_empty() {
                ids.drain(..some);
                continue;
            }
            let Some((transaction, done)) = self.plan(&jobs, &back()).await?.map(|plans| self.first_of(mark, plans))
            else {
                self.count(&mut attempts)?;
                continue;
            };
            match self.queue.commit(&transaction).await {
                Ok(_) => {}
                Err(error) if is_about_jobs(&error) => {
                    self.count(&mut attempts)?;
                    continue;
                }
                Err(error) => return Err(error),
            }
            let left: Vec<JobId> = jobs.iter().skip(done.unwrap_or(jobs.len())).map(|job| job.id).collect();
            ids.splice(..some, left);
            let (phase, jobs) = (WithdrawalPhase::Returning, of_jobs - ids.len());
            if (self.report)(WithdrawalProgress { phase, jobs, of_jobs }).is_break() {
                return Ok(WithdrawalOutcome::Interrupted);
            }
        }
        while let Err(error) = self.end_of_return(mark, last, &is_ours).await {
            if !is_about_jobs(&error) {
                return Err(error);
            }
            self.count(&mut attempts)?;
        }
        let why = note.hindrance.clone().unwrap_or_else(|| "it was given up".to_owned());
        Ok(WithdrawalOutcome::TakenBack(why))
    }

    /// Has the creation of jobs go on where it was, and ends the withdrawal.
    async fn end_of_return(
        &self,
        mark: &Mark,
        last: Option<JobId>,
        is_ours: impl Fn(&Job) -> bool,
    ) -> Result<(), Error> {
        let mut transaction = Transaction::new();
        self.lock.hold(&mut transaction);
        if let Some(expansion) = &mark.note.expansion {
            let mut jobs = self.queue.jobs_of_batch(self.id(), last.as_slice()).await?;
            jobs.retain(is_ours);
            for plan in self.queue.plan_jobs(&jobs, &back(), self.now).await? {
                // It gets its queue entry when all others exist.
                let is_entry =
                    |operation: &&Operation| matches!(operation, Operation::Create { path: Path::Entry(..), .. });
                for operation in plan.transaction.operations().iter().filter(|operation| !is_entry(operation)) {
                    transaction.push(operation.clone());
                }
            }
            transaction.create(Path::expansion(self.id()), expansion.encode());
        }
        self.close(mark, &mut transaction);
        self.queue.commit(&transaction).await.map(drop)
    }

    /// Counts an attempt that failed because another changed a job meanwhile.
    fn count(&self, attempts: &mut usize) -> Result<(), Error> {
        *attempts += 1;
        let moved = || Error::conflict(Path::Batch(self.id()), ConflictKind::Moved);
        if *attempts > ATTEMPTS { Err(moved()) } else { Ok(()) }
    }
}

/// The change that takes a job back.
fn back() -> JobChange {
    JobChange::to(JobState::Pending).by_operator().with_message("Its deposit was not withdrawn")
}
