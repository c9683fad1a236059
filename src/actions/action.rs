//! An action: what is requested, its target, and the state in which its caller saw the target.

use super::actor::Role;
use super::kind::ActionKind;
use super::precondition::Precondition;
use super::refusal::Refusal;
use super::spec::ActionSpec;
use super::target::Target;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::id::{BatchId, JobId, Priority, RequestId};
use queuekeeper_queue::path::{self, AccessQueue, Path};
use queuekeeper_queue::state::JobState;

/// An action on a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobAction {
    /// Resumes it in this state; `None` for the state after its last successful one.
    Resume(Option<JobState>),
    /// Holds it.
    Hold,
    /// Releases it.
    Release,
    /// Fails it.
    Fail,
    /// Sets its priority.
    SetPriority(Priority),
    /// Marks it Deleted.
    Delete,
    /// Removes its znodes. With `force`, also those of a job that cannot be loaded and is locked.
    Purge {
        /// Whether a lock is ignored.
        force: bool,
    },
}

/// An action on a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchAction {
    /// Releases it.
    Release {
        /// Whether to release it although its collection is held.
        force: bool,
    },
    /// Reports it again.
    ReportAgain,
    /// Deletes it with its jobs.
    Delete,
    /// Removes its znodes and those of its jobs.
    Purge {
        /// Whether a lock is ignored.
        force: bool,
    },
}

/// An action on an access request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestAction {
    /// Moves it back to Pending.
    Resume,
    /// Marks it Deleted.
    Delete,
    /// Removes its znodes.
    Purge {
        /// Whether a lock is ignored.
        force: bool,
    },
}

/// An action on a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueAction {
    /// Pauses it.
    Pause,
    /// Unpauses it.
    Unpause,
}

/// An action on a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectionAction {
    /// Holds it.
    Hold,
    /// Releases it.
    Release {
        /// Whether its held jobs are released with it.
        with_jobs: bool,
    },
}

/// An action and its target. Unsupported combinations cannot be expressed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Requested {
    /// On a job.
    Job(JobId, JobAction),
    /// On a batch.
    Batch(BatchId, BatchAction),
    /// On an access request.
    Request(AccessQueue, RequestId, RequestAction),
    /// On a queue.
    Queue(path::Queue, QueueAction),
    /// On a collection, by its mnemonic.
    Collection(Box<str>, CollectionAction),
    /// Breaks a lock.
    BreakLock {
        /// Its path.
        lock: Path,
        /// Whether to break it although it is not a fault.
        force: bool,
    },
    /// Repairs a fault.
    Repair {
        /// Which fault.
        fault: Fault,
        /// The item that shows it.
        item: Path,
        /// Whether to repair it although the item is locked.
        force: bool,
    },
    /// Purges all finished batches.
    CleanUp,
}

/// A requested action and its precondition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What is requested.
    pub requested: Requested,
    /// The state in which the caller saw the target: the action is refused if it has changed. `None` for any state.
    pub precondition: Option<Precondition>,
}

/// The parameters of an action besides its target, as in the API, forms and audit records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ActionParameters {
    /// The state to resume a job in; `None` for the one after its last successful state.
    pub to: Option<JobState>,
    /// The priority to set.
    pub priority: Option<Priority>,
    /// Whether to execute it where it is refused by default.
    pub force: bool,
    /// Whether the held jobs of a collection are released with it.
    pub with_jobs: bool,
}

impl ActionParameters {
    /// The names of the parameters that are set.
    fn names(self) -> impl Iterator<Item = &'static str> {
        let set = [
            ("to", self.to.is_some()),
            ("priority", self.priority.is_some()),
            ("force", self.force),
            ("with_jobs", self.with_jobs),
        ];
        set.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name)
    }
}

impl Requested {
    /// An action of this kind on this target.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] if the action is not supported for the target, or if a parameter is unsupported or missing.
    pub fn new(kind: ActionKind, target: Target, parameters: ActionParameters) -> Result<Self, Refusal> {
        let unsupported = |target: &Target| {
            let known: Vec<_> = target.actions().map(|spec| spec.kind.label()).collect();
            Refusal::Invalid(format!("action {kind} is not supported for {target}; supported: {}", known.join(", ")))
        };
        let spec = target.spec(kind).ok_or_else(|| unsupported(&target))?;
        if let Some(name) = parameters.names().find(|name| !spec.takes(name)) {
            let on = target.kind().words();
            return Err(Refusal::Invalid(format!("“{name}” is not supported for action {kind} on {on}")));
        }
        let ActionParameters { to, priority, force, with_jobs } = parameters;
        Ok(match (target, kind) {
            (Target::Job(id), ActionKind::Resume) => Self::Job(id, JobAction::Resume(to)),
            (Target::Job(id), ActionKind::Hold) => Self::Job(id, JobAction::Hold),
            (Target::Job(id), ActionKind::Release) => Self::Job(id, JobAction::Release),
            (Target::Job(id), ActionKind::Fail) => Self::Job(id, JobAction::Fail),
            (Target::Job(id), ActionKind::SetPriority) => {
                let missing =
                    || Refusal::Invalid("action set_priority needs a priority: 0, the most urgent, to 99".to_owned());
                Self::Job(id, JobAction::SetPriority(priority.ok_or_else(missing)?))
            }
            (Target::Job(id), ActionKind::Delete) => Self::Job(id, JobAction::Delete),
            (Target::Job(id), ActionKind::Purge) => Self::Job(id, JobAction::Purge { force }),
            (Target::Batch(id), ActionKind::Release) => Self::Batch(id, BatchAction::Release { force }),
            (Target::Batch(id), ActionKind::ReportAgain) => Self::Batch(id, BatchAction::ReportAgain),
            (Target::Batch(id), ActionKind::Delete) => Self::Batch(id, BatchAction::Delete),
            (Target::Batch(id), ActionKind::Purge) => Self::Batch(id, BatchAction::Purge { force }),
            (Target::Request(queue, id), ActionKind::Resume) => Self::Request(queue, id, RequestAction::Resume),
            (Target::Request(queue, id), ActionKind::Delete) => Self::Request(queue, id, RequestAction::Delete),
            (Target::Request(queue, id), ActionKind::Purge) => Self::Request(queue, id, RequestAction::Purge { force }),
            (Target::Queue(queue), ActionKind::Pause) => Self::Queue(queue, QueueAction::Pause),
            (Target::Queue(queue), ActionKind::Unpause) => Self::Queue(queue, QueueAction::Unpause),
            (Target::Collection(name), ActionKind::Hold) => Self::Collection(name, CollectionAction::Hold),
            (Target::Collection(name), ActionKind::Release) => {
                Self::Collection(name, CollectionAction::Release { with_jobs })
            }
            (Target::Lock(lock), ActionKind::BreakLock) => Self::BreakLock { lock, force },
            (Target::Fault(fault, item), ActionKind::Repair) => Self::Repair { fault, item, force },
            (Target::Batches, ActionKind::CleanUp) => Self::CleanUp,
            // A row of the table without a variant here; the tests go through all rows.
            (target, _) => return Err(unsupported(&target)),
        })
    }

    /// The kind of the action.
    #[must_use]
    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Job(_, action) => match action {
                JobAction::Resume(_) => ActionKind::Resume,
                JobAction::Hold => ActionKind::Hold,
                JobAction::Release => ActionKind::Release,
                JobAction::Fail => ActionKind::Fail,
                JobAction::SetPriority(_) => ActionKind::SetPriority,
                JobAction::Delete => ActionKind::Delete,
                JobAction::Purge { .. } => ActionKind::Purge,
            },
            Self::Batch(_, action) => match action {
                BatchAction::Release { .. } => ActionKind::Release,
                BatchAction::ReportAgain => ActionKind::ReportAgain,
                BatchAction::Delete => ActionKind::Delete,
                BatchAction::Purge { .. } => ActionKind::Purge,
            },
            Self::Request(_, _, action) => match action {
                RequestAction::Resume => ActionKind::Resume,
                RequestAction::Delete => ActionKind::Delete,
                RequestAction::Purge { .. } => ActionKind::Purge,
            },
            Self::Queue(_, QueueAction::Pause) => ActionKind::Pause,
            Self::Queue(_, QueueAction::Unpause) => ActionKind::Unpause,
            Self::Collection(_, CollectionAction::Hold) => ActionKind::Hold,
            Self::Collection(_, CollectionAction::Release { .. }) => ActionKind::Release,
            Self::BreakLock { .. } => ActionKind::BreakLock,
            Self::Repair { .. } => ActionKind::Repair,
            Self::CleanUp => ActionKind::CleanUp,
        }
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> Target {
        match self {
            Self::Job(id, _) => Target::Job(*id),
            Self::Batch(id, _) => Target::Batch(*id),
            Self::Request(queue, id, _) => Target::Request(*queue, *id),
            Self::Queue(queue, _) => Target::Queue(*queue),
            Self::Collection(name, _) => Target::Collection(name.clone()),
            Self::BreakLock { lock, .. } => Target::Lock(lock.clone()),
            Self::Repair { fault, item, .. } => Target::Fault(*fault, item.clone()),
            Self::CleanUp => Target::Batches,
        }
    }

    /// The parameters besides the target.
    #[must_use]
    pub fn parameters(&self) -> ActionParameters {
        let none = ActionParameters::default();
        match *self {
            Self::Job(_, JobAction::Resume(to)) => ActionParameters { to, ..none },
            Self::Job(_, JobAction::SetPriority(priority)) => ActionParameters { priority: Some(priority), ..none },
            Self::Job(_, JobAction::Purge { force })
            | Self::Batch(_, BatchAction::Release { force } | BatchAction::Purge { force })
            | Self::Request(_, _, RequestAction::Purge { force })
            | Self::BreakLock { force, .. }
            | Self::Repair { force, .. } => ActionParameters { force, ..none },
            Self::Collection(_, CollectionAction::Release { with_jobs }) => ActionParameters { with_jobs, ..none },
            Self::Job(_, JobAction::Hold | JobAction::Release | JobAction::Fail | JobAction::Delete)
            | Self::Batch(_, BatchAction::ReportAgain | BatchAction::Delete)
            | Self::Request(_, _, RequestAction::Resume | RequestAction::Delete)
            | Self::Queue(..)
            | Self::Collection(_, CollectionAction::Hold)
            | Self::CleanUp => none,
        }
    }

    /// Its row in the table of actions.
    ///
    /// # Panics
    /// If the table has no row for it; a test checks that it has one for each variant.
    #[must_use]
    pub fn spec(&self) -> &'static ActionSpec {
        self.target().spec(self.kind()).expect("every variant has a row in the table")
    }

    /// The role that the action requires.
    #[must_use]
    pub fn role(&self) -> Role {
        self.target().role(self.kind()).unwrap_or(Role::Admin)
    }
}

impl From<Requested> for Action {
    /// Without a precondition.
    fn from(requested: Requested) -> Self {
        Self { requested, precondition: None }
    }
}

impl Action {
    /// An action without a precondition.
    ///
    /// # Errors
    /// As [`Requested::new`].
    pub fn new(kind: ActionKind, target: Target, parameters: ActionParameters) -> Result<Self, Refusal> {
        Requested::new(kind, target, parameters).map(Self::from)
    }

    /// Adds a precondition.
    #[must_use]
    pub fn only_if(self, precondition: Option<Precondition>) -> Self {
        Self { precondition, ..self }
    }

    /// Adds the precondition that the target's status has this version.
    #[must_use]
    pub fn at_version(self, version: Option<i32>) -> Self {
        let at = |version| Precondition { version: Some(version), ..Precondition::default() };
        Self { precondition: version.map(at), ..self }
    }

    /// The kind of the action.
    #[must_use]
    pub fn kind(&self) -> ActionKind {
        self.requested.kind()
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> Target {
        self.requested.target()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::spec::Parameter;

    #[test]
    fn every_row_of_the_table_is_an_action_and_no_other_combination_is_accepted() {
        let targets = [
            "jid0000000042",
            "bid0000000042",
            "small/qid0000000042",
            "queue:ingest",
            "collection:demo",
            "lock:/jobs/jid0000000042/lock",
            "fault:orphan_entry:/jobs/jid0000000042",
            "batches",
        ];
        for target in targets.map(|text| text.parse::<Target>().unwrap()) {
            for kind in ActionKind::ALL {
                let Some(spec) = target.spec(kind) else {
                    let refused =
                        Requested::new(kind, target.clone(), ActionParameters::default()).unwrap_err().to_string();
                    assert!(refused.starts_with(&format!("action {kind} is not supported for {target}")), "{refused}");
                    continue;
                };
                let mut full = ActionParameters::default();
                for parameter in spec.takes {
                    match parameter {
                        Parameter::To => full.to = Some(JobState::Storing),
                        Parameter::Priority => full.priority = Priority::new(7),
                        Parameter::Force(_) => full.force = true,
                        Parameter::WithJobs => full.with_jobs = true,
                    }
                }
                let requested = Requested::new(kind, target.clone(), full).unwrap();
                assert_eq!(
                    (requested.kind(), requested.target(), requested.parameters()),
                    (kind, target.clone(), full)
                );
                assert_eq!(requested.spec().kind, kind);
                let all = ActionParameters {
                    to: Some(JobState::Storing),
                    priority: Priority::new(7),
                    force: true,
                    with_jobs: true,
                };
                assert!(Requested::new(kind, target.clone(), all).is_err(), "{kind} {target}");
            }
        }
        let missing =
            Requested::new(ActionKind::SetPriority, "jid0000000042".parse().unwrap(), ActionParameters::default());
        assert!(missing.unwrap_err().to_string().contains("needs a priority"));
    }
}
