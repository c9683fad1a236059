//! Changes of a job's state and priority, each one `multi`.

use jiff::Timestamp;

use super::edit::{JobChange, JobChanged, JobEdit};
use super::{Job, JobPlan, JobTarget, LockedJob};
use crate::error::Error;
use crate::handle::{Queue, instant};
use crate::id::Priority;
use crate::lock::{ChangeAttempt, Unlocked};
use crate::path::{EntryName, JobNode, Path};
use crate::record::Retry;
use crate::transaction::{Committed, Transaction};

impl Queue {
    /// Changes a job's state, and with it its queue entry and its batch's reference, in one `multi`.
    ///
    /// Two round trips where the target says where the job is, as one made from a [`Job`] or [`LockedJob`] does; three
    /// for a bare id. A lock that we hold is kept.
    ///
    /// # Errors
    /// [`Error::Transition`] where the states forbid it, [`Error::Conflict`] where another holds the job or changed it
    /// since it was seen, or where our own lock is gone, [`Error::Missing`] and [`Error::Decode`] for a job whose
    /// znodes do not show where it is; else as [`Queue::commit`].
    pub async fn change_job(
        &self,
        target: impl Into<JobTarget>,
        change: &JobChange,
        now: Timestamp,
    ) -> Result<JobChanged, Error> {
        let plan = self.plan_job_change(target, change, now).await?;
        self.commit_job_plan(&plan).await
    }

    /// Changes the state of a job that we hold, and keeps the lock.
    ///
    /// After [`Error::Unknown`], or where the call was cancelled before it returned, the same call returns the outcome
    /// of the first, or makes the change.
    ///
    /// # Errors
    /// As [`Queue::change_job`].
    pub async fn step_job(
        &self,
        locked: &mut LockedJob,
        change: &JobChange,
        now: Timestamp,
    ) -> Result<JobChanged, Error> {
        if let Some((changed, stat)) = self.outcome_of(&locked.pending, change, false).await? {
            let job = self.load_job(locked.id()).await?;
            locked.pending.clear();
            if job.version() == Some(changed.version) {
                let priority = change.priority.or(job.priority().ok());
                locked.entry = priority.map_or(locked.entry, |priority| EntryName::of(priority, job.id));
                (locked.job, locked.state, locked.retry, locked.is_regular) = (job, changed.to, None, false);
            }
            return Ok(JobChanged { entered: stat.map(|stat| instant(stat.mtime)), ..changed });
        }
        let (plan, job, committed) = self.change_under(locked, change, now, false).await?;
        let changed = plan.changed(Some(&committed));
        // All that is known of the job is in the answer: a read could fail after the change was done.
        (locked.job, locked.state) = (job.after(&plan.transaction, &committed), changed.to);
        locked.entry = EntryName::of(plan.priority, plan.job);
        locked.retry = None;
        // What was recovered after a lost connection is without its stats.
        locked.is_regular = plan.is_regular && !committed.recovered;
        Ok(changed)
    }

    /// Changes the state of a job that we hold and releases the lock, in the same `multi`.
    ///
    /// After an error the lock is still held, unless the error says otherwise: [`ConflictKind::LockLost`] that it is
    /// not ours any more, [`Error::Unknown`] that it may be released. After the latter, or where the call was cancelled
    /// before it returned, the same call returns the outcome of the first, or makes the change: what was done is
    /// reported as done also where the next daemon has taken the job on since. After any other error
    /// [`Queue::unlock_job`] gives the job up; from then on that proof is gone.
    ///
    /// [`ConflictKind::LockLost`]: crate::ConflictKind::LockLost
    ///
    /// # Errors
    /// As [`Queue::change_job`].
    pub async fn finish_job(
        &self,
        locked: &LockedJob,
        change: &JobChange,
        now: Timestamp,
    ) -> Result<JobChanged, Error> {
        if let Some((changed, stat)) = self.outcome_of(&locked.pending, change, true).await? {
            return Ok(JobChanged { entered: stat.map(|stat| instant(stat.mtime)), ..changed });
        }
        let (plan, _, committed) = self.change_under(locked, change, now, true).await?;
        Ok(plan.changed(Some(&committed)))
    }

    /// Changes a job that we hold: in one round trip where no other client has changed it since our last step, else in
    /// two. The job is as it was before.
    async fn change_under(
        &self,
        locked: &LockedJob,
        change: &JobChange,
        now: Timestamp,
        releases: bool,
    ) -> Result<(JobPlan, Job, Committed), Error> {
        let edit = JobEdit { change: Some((change, now)), priority: change.priority };
        if let Some(plan) = Self::plan_unseen(locked, edit) {
            let is_others = |path: &Path| change.also.operations().iter().any(|operation| operation.path() == path);
            match self.commit_under(locked, &plan, change, releases).await {
                Err(Error::Conflict(conflict)) if !is_others(&conflict.path) => {}
                Err(Error::Missing(path)) if !is_others(&path) => {}
                committed => return Ok((plan, locked.job.clone(), committed?)),
            }
        }
        let (plan, job) = self.plan(locked.into(), edit).await?;
        let committed = self.commit_under(locked, &plan, change, releases).await?;
        Ok((plan, job, committed))
    }

    async fn commit_under(
        &self,
        locked: &LockedJob,
        plan: &JobPlan,
        change: &JobChange,
        releases: bool,
    ) -> Result<Committed, Error> {
        let attempt = ChangeAttempt { change: change.clone(), releases, done: plan.changed(None) };
        let status = Path::JobNode(plan.job, JobNode::Status);
        let under = (&locked.pending, &locked.lock);
        self.commit_attempt(under, attempt, &status, &plan.transaction).await
    }

    /// Releases a job that we hold, unchanged, whatever became of its status meanwhile. Where our lock was broken, this
    /// gives the job up: our other workers may take it again.
    ///
    /// # Errors
    /// As [`Queue::commit`].
    pub async fn unlock_job(&self, locked: &LockedJob) -> Result<Unlocked, Error> {
        self.give_up(&locked.pending, &locked.lock).await
    }

    /// Gives a job that we hold back unchanged, and keeps our daemons from taking it before a time, in one `multi`. The
    /// version in `retry` is set here.
    ///
    /// # Errors
    /// As [`Queue::commit`]. After one the lock may still be held: [`Queue::unlock_job`] releases it.
    pub async fn delay_job(&self, locked: &LockedJob, retry: &Retry) -> Result<(), Error> {
        let (path, version) = (Path::retry(locked.id()), locked.job.version().unwrap_or_default());
        let data = Retry { version, ..retry.clone() }.encode();
        let found = self.read_data(path.clone()).await?;
        let mut transaction = Transaction::new();
        transaction.check(Path::JobNode(locked.id(), JobNode::Status), version);
        match found.stat() {
            Some(stat) => transaction.set(path, data, stat.version),
            None => transaction.create(path, data),
        };
        locked.lock.release(&mut transaction);
        self.commit(&transaction).await.map(drop)
    }

    /// Changes a job's priority: `priority` and its queue entry, in one `multi`. Its `status` is not written.
    ///
    /// # Errors
    /// As [`Queue::change_job`].
    pub async fn set_priority(&self, target: impl Into<JobTarget>, priority: Priority) -> Result<JobChanged, Error> {
        let plan = self.plan_priority(target, priority).await?;
        self.commit_job_plan(&plan).await
    }

    /// Commits a planned change of a job.
    ///
    /// # Errors
    /// As [`Queue::commit`].
    pub async fn commit_job_plan(&self, plan: &JobPlan) -> Result<JobChanged, Error> {
        let committed = self.commit(&plan.transaction).await?;
        Ok(plan.changed(Some(&committed)))
    }
}

impl JobPlan {
    /// The change that it makes, with when it was made where that is known.
    fn changed(&self, committed: Option<&Committed>) -> JobChanged {
        let stat = self.status_at.zip(committed).and_then(|(at, committed)| committed.stats[at]);
        JobChanged {
            id: self.job,
            from: self.from,
            to: self.to,
            // A set raises the version by one.
            version: self.version.wrapping_add(i32::from(self.status_at.is_some())),
            entered: stat.map(|stat| instant(stat.mtime)),
        }
    }
}
