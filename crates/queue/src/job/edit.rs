//! The changes of a job that can be requested, and what is known of one that was made.

use jiff::Timestamp;

use super::{Job, JobValue};
use crate::error::Error;
use crate::id::{JobId, Priority};
use crate::path::{JobNode, Path};
use crate::record::{self, StatusChange};
use crate::state::{Authority, JobState, State};
use crate::transaction::Transaction;

/// A change of a job's state, and with it of its priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobChange {
    pub(super) step: Step,
    pub(super) message: String,
    pub(super) priority: Option<Priority>,
    pub(super) by: Authority,
    pub(super) values: Vec<JobValue>,
    pub(super) also: Transaction,
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
    /// When it entered its state, by the server's clock; `None` where the state was not changed, and where the change
    /// was found to be done after another had changed the state again.
    pub entered: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Success,
    Resume,
    To(JobState),
}

impl JobChange {
    fn new(step: Step) -> Self {
        let (values, also) = (Vec::new(), Transaction::new());
        Self { step, message: String::new(), priority: None, by: Authority::Daemon, values, also }
    }

    /// To the next state on the success path.
    #[must_use]
    pub fn success() -> Self {
        Self::new(Step::Success).with_message("Success")
    }

    /// To Failed, with what went wrong.
    #[must_use]
    pub fn failure(message: impl Into<String>) -> Self {
        Self::to(JobState::Failed).with_message(message)
    }

    /// To a named state.
    #[must_use]
    pub fn to(state: JobState) -> Self {
        Self::new(Step::To(state))
    }

    /// From Failed to the state after the last successful one, at an operator's request. It counts as a retry, as does
    /// every change by which an operator takes a job from Failed back to work.
    #[must_use]
    pub fn resume() -> Self {
        Self::new(Step::Resume).by_operator()
    }

    /// Says so in the status.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Also sets another priority.
    #[must_use]
    pub fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Also sets a value of the job, in the same `multi`.
    #[must_use]
    pub fn with_value(mut self, value: JobValue) -> Self {
        self.values.push(value);
        self
    }

    /// Also does what is no change of the job, in the same `multi`: what a daemon keeps below `/queuekeeper`.
    #[must_use]
    pub fn with_also(mut self, also: Transaction) -> Self {
        self.also.append(also);
        self
    }

    /// Allows what only an operator may request.
    #[must_use]
    pub fn by_operator(mut self) -> Self {
        self.by = Authority::Operator;
        self
    }

    /// Allows what the withdrawal of the deposit makes.
    #[must_use]
    pub fn withdrawn(mut self) -> Self {
        self.by = Authority::Withdrawal;
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
            Some(to) if from.allows(to, self.by) => Ok(to),
            to => {
                let requested = match self.step {
                    Step::Success => "the next state",
                    Step::Resume => "where it failed",
                    Step::To(_) => "another state",
                };
                let to = to.map_or_else(|| requested.to_owned(), |to| to.to_string());
                Err(Error::Transition { item: Path::Job(job.id), from: from.to_string(), to, operator_may })
            }
        }
    }
}

impl JobChange {
    /// The data of the status after the change.
    pub(crate) fn status(&self, job: &Job, from: JobState, to: JobState, now: Timestamp) -> Vec<u8> {
        let before = job.status().value;
        let retries = before.retry_count.unwrap_or(0);
        let is_retry = self.by == Authority::Operator && from == JobState::Failed && to != JobState::Deleted;
        let change = StatusChange {
            from: Some(from),
            to,
            by: self.by,
            last_successful: before.last_successful,
            retry_count: retries.saturating_add(u32::from(is_retry)),
            message: &self.message,
            now,
        };
        record::job_status(job.data(JobNode::Status).unwrap_or_default(), &change)
    }
}

/// What is to be done to a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobEdit<'a> {
    pub(super) change: Option<(&'a JobChange, Timestamp)>,
    pub(super) priority: Option<Priority>,
}

impl JobEdit<'_> {
    /// Whether it may take a job to Pending, where a hold on its collection matters.
    pub(super) fn may_lead_to_pending(&self) -> bool {
        self.change.is_some_and(|(change, _)| match change.step {
            Step::Resume | Step::To(JobState::Pending) => true,
            Step::Success | Step::To(_) => false,
        })
    }
}
