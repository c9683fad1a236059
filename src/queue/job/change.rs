//! Changes of a job's state and priority, each one `multi`.

use jiff::Timestamp;

use super::{Job, JobPlan, JobTarget, LockedJob};
use crate::queue::error::Error;
use crate::queue::handle::{Queue, instant};
use crate::queue::id::{JobId, Priority};
use crate::queue::lock::Unlocked;
use crate::queue::path::{EntryName, JobNode, Path};
use crate::queue::state::{JobState, State};

/// A change of a job's state, and with it of its priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobChange {
    pub(super) step: Step,
    pub(super) message: String,
    pub(super) priority: Option<Priority>,
    pub(super) operator: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Success,
    Resume,
    To(JobState),
}

impl JobChange {
    /// To the next state on the success path.
    #[must_use]
    pub fn success() -> Self {
        Self { step: Step::Success, message: "Success".to_owned(), priority: None, operator: false }
    }

    /// To Failed, with what went wrong.
    #[must_use]
    pub fn failure(message: impl Into<String>) -> Self {
        Self::to(JobState::Failed).with_message(message)
    }

    /// To a named state.
    #[must_use]
    pub fn to(state: JobState) -> Self {
        Self { step: Step::To(state), message: String::new(), priority: None, operator: false }
    }

    /// From Failed to the state after the last successful one, by an operator's order. It counts as a retry, as does
    /// every change by which an operator takes a job from Failed back to work.
    #[must_use]
    pub fn resume() -> Self {
        Self { step: Step::Resume, message: String::new(), priority: None, operator: true }
    }

    /// Says so in the status.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Gives the job another priority with it.
    #[must_use]
    pub fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Allows what only an operator may order.
    #[must_use]
    pub fn by_operator(mut self) -> Self {
        self.operator = true;
        self
    }

    /// The state that it leads to, if it may.
    pub(super) fn target(&self, job: &Job, from: JobState) -> Result<JobState, Error> {
        let to = match self.step {
            Step::Success => from.success(),
            Step::Resume if from == JobState::Failed => {
                Some(JobState::resume_after(job.status().value.last_successful))
            }
            Step::Resume => None,
            Step::To(to) => Some(to),
        };
        let operator_may = to.is_some_and(|to| from.is_admin(to));
        match to {
            Some(to) if from.may_become(to) && (self.operator || !operator_may) => Ok(to),
            to => {
                let asked = match self.step {
                    Step::Success => "the next state",
                    Step::Resume => "where it failed",
                    Step::To(_) => "another state",
                };
                let to = to.map_or_else(|| asked.to_owned(), |to| to.to_string());
                Err(Error::Transition { item: Path::Job(job.id), from: from.to_string(), to, operator_may })
            }
        }
    }
}

/// A change of a job that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobChanged {
    /// The job.
    pub id: JobId,
    /// The state that it left; that which it is in where only its priority was changed.
    pub from: JobState,
    /// The state that it entered.
    pub to: JobState,
    /// The version of its status.
    pub version: i32,
    /// When it entered its state, by the server's clock; `None` where the state was not changed.
    pub entered: Option<Timestamp>,
}

impl Queue {
    /// Changes a job's state, and with it its queue entry and its batch's reference, in one `multi`.
    ///
    /// Two round trips where the target says where the job is, as one made from a [`Job`] or [`LockedJob`] does; three
    /// for a bare id. A lock that we hold is kept.
    ///
    /// # Errors
    /// [`Error::Transition`] where the states forbid it, [`Error::Conflict`] where another holds the job or changed it
    /// since it was seen, or where our own lock is gone, [`Error::Missing`] and [`Error::Decode`] for a job whose
    /// znodes do not tell where it is; else as [`Queue::commit`].
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
    /// # Errors
    /// As [`Queue::change_job`].
    pub async fn step_job(
        &self,
        locked: &mut LockedJob,
        change: &JobChange,
        now: Timestamp,
    ) -> Result<JobChanged, Error> {
        let plan = self.plan_job_change(&*locked, change, now).await?;
        let changed = self.commit_job_plan(&plan).await?;
        let job = self.load_job(locked.id()).await?;
        if job.version() == Some(changed.version) {
            locked.entry = EntryName::of(plan.priority, job.id);
            (locked.job, locked.state) = (job, changed.to);
        }
        Ok(changed)
    }

    /// Changes the state of a job that we hold and releases the lock, in the same `multi`.
    ///
    /// After an error the lock is still held, unless the error says otherwise.
    ///
    /// # Errors
    /// As [`Queue::change_job`].
    pub async fn finish_job(
        &self,
        locked: &LockedJob,
        change: &JobChange,
        now: Timestamp,
    ) -> Result<JobChanged, Error> {
        let mut plan = self.plan_job_change(locked, change, now).await?;
        plan.transaction.delete(locked.lock.path.clone(), None);
        self.commit_job_plan(&plan).await
    }

    /// Releases a job that we hold, unchanged. Its status is checked too, so a lock that another made in place of
    /// ours is not deleted once that other has done anything.
    ///
    /// # Errors
    /// As [`Queue::commit`].
    pub async fn unlock_job(&self, locked: &LockedJob) -> Result<Unlocked, Error> {
        let status = Path::JobNode(locked.id(), JobNode::Status);
        self.unlock_checked(&locked.lock, locked.status_version().map(|version| (status, version))).await
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
        let stat = plan.status_at.and_then(|at| committed.stats[at]);
        Ok(JobChanged {
            id: plan.job,
            from: plan.from,
            to: plan.to,
            // A set raises the version by one.
            version: plan.version.wrapping_add(i32::from(plan.status_at.is_some())),
            entered: stat.map(|stat| instant(stat.mtime)),
        })
    }
}
