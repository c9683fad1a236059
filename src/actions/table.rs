//! The table of actions: one row for each action on each kind of target.
//!
//! A row is a variant of its target's enum, with its parameters, and its [`ActionSpec`]. The API, the command line, the
//! buttons and forms of the pages, bulk actions, and the roles that actions require are derived from it. A new action
//! is a row here, a kind in [`ActionKind`], and its planning in `prepare`.

use super::actor::Role;
use super::actor::Role::{Admin, Operator};
use super::kind::ActionKind;
use super::parameters::check::ValueFor as _;
use super::parameters::{AcceptedParameter, ActionParameters, Parameter};
use super::refusal::Refusal;
use super::spec::{ActionSpec, Applies};
use super::target::{Target, TargetKind};
use queuekeeper_queue::RepairKind;
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::state::{AccessState, Authority, BatchState, JobState, State};

/// The actions on one kind of target.
pub trait ActionOn {
    /// The kind of target.
    const TARGET: TargetKind;
}

/// An action on one kind of target.
pub(super) trait TargetAction {
    /// Its row.
    fn spec(&self) -> &'static ActionSpec;

    /// Its parameters.
    fn parameters(&self) -> ActionParameters;
}

macro_rules! target_actions {
    ($(#[$doc:meta])* $type:ident for $target:ident {
        $( $(#[$kind_doc:meta])* $kind:ident $({ $($field:ident: $field_type:ty => $takes:expr),+ })? [ $($spec:tt)* ] )+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type {
            $( $(#[$kind_doc])* $kind $({ $(
                #[doc = concat!("As [`ActionParameters::", stringify!($field), "`].")]
                $field: $field_type,
            )+ })?, )+
        }

        impl $type {
            /// The rows, in the order in which they are listed.
            const ROWS: &'static [ActionSpec] =
                &[$(ActionSpec { kind: ActionKind::$kind, takes: &[$($($takes),+)?], $($spec)* }),+];

            /// The action of this kind with these parameters; `None` if the targets do not support it.
            ///
            /// # Errors
            /// [`Refusal::Invalid`] if a parameter is missing, or is none of the action.
            pub(super) fn read(kind: ActionKind, parameters: ActionParameters) -> Result<Option<Self>, Refusal> {
                $(if kind == ActionKind::$kind {
                    parameters.check(kind, TargetKind::$target, &[$($($takes),+)?])?;
                    return Ok(Some(Self::$kind $({
                        $($field: parameters.$field.value_for(kind, const { $takes.parameter })?,)+
                    })?));
                })+
                Ok(None)
            }
        }

        impl ActionOn for $type {
            const TARGET: TargetKind = TargetKind::$target;
        }

        impl TargetAction for $type {
            fn spec(&self) -> &'static ActionSpec {
                match self {
                    $(Self::$kind { .. } => {
                        const { &ActionSpec { kind: ActionKind::$kind, takes: &[$($($takes),+)?], $($spec)* } }
                    })+
                }
            }

            fn parameters(&self) -> ActionParameters {
                match *self {
                    $(Self::$kind $({ $($field),+ })? => ActionParameters {
                        $($($field: $field.into(),)+)?
                        ..ActionParameters::default()
                    },)+
                }
            }
        }
    };
}

const DELETED: &str = "It is marked Deleted and will never be completed.";

const PURGED: &str = "Its znodes are removed with all their data.";

/// Force for the purge of an item that cannot be loaded.
const PURGE_LOCKED: AcceptedParameter = AcceptedParameter::by_api(Parameter::Force);

target_actions! {
    /// An action on a job.
    JobAction for Job {
        /// Resumes it in this state; `None` for the state after its last successful one.
        Resume { to: Option<JobState> => AcceptedParameter::value(Parameter::To) } [
            role: Operator,
            summary: "Resume a failed job after its last successful state, or in the state that --to names",
            effect: "It continues after its last successful state, or in the state that you choose; its retry count rises by one.",
            applies: Applies::ToJob(|state| state == JobState::Failed, "only a failed job can be resumed"),
        ]
        /// Holds it.
        Hold [
            role: Operator,
            summary: "Hold a pending job",
            effect: "No daemon takes it until it is released.",
            applies: Applies::ToJob(|state| state == JobState::Pending, ""),
        ]
        /// Releases it.
        Release [
            role: Operator,
            summary: "Release a held job",
            effect: "It becomes pending again, and a daemon takes it when its turn comes.",
            applies: Applies::ToJob(|state| state == JobState::Held, "only a held job can be released"),
        ]
        /// Fails it.
        Fail [
            role: Operator,
            summary: "Fail a job that no daemon is working on",
            effect: "It is moved to Failed with the reason as its message, and counts as failed in its batch.",
            applies: Applies::ToJob(|state| state.may_become(JobState::Failed), ""),
        ]
        /// Sets its priority.
        SetPriority { priority: Priority => AcceptedParameter::value(Parameter::Priority) } [
            role: Operator,
            summary: "Set the priority of a job: 0, the most urgent, to 99",
            effect: "0 is the most urgent, 99 the least. Its position in the queue changes immediately.",
            applies: Applies::ToJob(|state| !state.is_final(), "it is no longer queued, so its priority has no effect"),
        ]
        /// Marks it Deleted.
        Delete [
            role: Admin,
            summary: "Mark a failed or held job Deleted",
            effect: DELETED,
            applies: Applies::ToJob(|state| state.allows(JobState::Deleted, Authority::Operator), ""),
        ]
        /// Removes its znodes. With `force`, also those of a job that cannot be loaded and is locked.
        Purge { force: bool => PURGE_LOCKED } [
            role: Admin,
            summary: "Remove the znodes of a finished job",
            effect: PURGED,
            applies: Applies::ToJob(State::is_final, ""),
        ]
    }
}

target_actions! {
    /// An action on a batch.
    BatchAction for Batch {
        /// Releases it.
        Release {
            force: bool => AcceptedParameter::flag(
                Parameter::Force,
                "Release it although its collection is held",
                "Release it although its collection is held",
            )
        } [
            role: Operator,
            summary: "Release a held batch",
            effect: "It becomes pending again, and a daemon creates its jobs.",
            applies: Applies::ToBatch(|state| state == BatchState::Held),
        ]
        /// Reports it again.
        ReportAgain [
            role: Operator,
            summary: "Report a failed batch again",
            effect: "A daemon reports to its depositor again which of its jobs completed and which failed.",
            applies: Applies::ToBatch(|state| state == BatchState::Failed),
        ]
        /// Withdraws it with its jobs.
        Withdraw [
            role: Operator,
            summary: "Withdraw a batch and all its jobs, while none has left Pending",
            effect: "It is deleted with all its jobs, or nothing is changed. This is possible until the first of them leaves Pending. No report is sent. Uploaded files are removed by cleanup.",
            applies: Applies::ToBatch(|state| state.allows(BatchState::Deleted, Authority::Withdrawal)),
        ]
        /// Deletes it with its jobs.
        Delete [
            role: Admin,
            summary: "Delete a failed or held batch with all its jobs",
            effect: "All its jobs are deleted with it, and the znodes of all are removed.",
            applies: Applies::ToBatch(|state| state.allows(BatchState::Deleted, Authority::Operator)),
        ]
        /// Removes its znodes and those of its jobs.
        Purge { force: bool => PURGE_LOCKED } [
            role: Admin,
            summary: "Remove the znodes of a finished batch and of its jobs",
            effect: PURGED,
            applies: Applies::ToBatch(State::is_final),
        ]
    }
}

target_actions! {
    /// An action on an access request.
    RequestAction for Request {
        /// Moves it back to Pending.
        Resume [
            role: Operator,
            summary: "Resume a failed access request",
            effect: "It returns to Pending, and a daemon takes it again.",
            applies: Applies::ToRequest(|state| state == AccessState::Failed),
        ]
        /// Marks it Deleted.
        Delete [
            role: Admin,
            summary: "Mark an access request Deleted",
            effect: DELETED,
            applies: Applies::ToRequest(|state| state.may_become(AccessState::Deleted)),
        ]
        /// Removes its znodes.
        Purge { force: bool => PURGE_LOCKED } [
            role: Admin,
            summary: "Remove the znodes of a finished access request",
            effect: PURGED,
            applies: Applies::ToRequest(State::is_final),
        ]
    }
}

target_actions! {
    /// An action on a queue.
    QueueAction for Queue {
        /// Pauses it.
        Pause [
            role: Operator,
            summary: "Pause the queue: daemons take no further items from it (ingest: except the inventory daemon)",
            effect: "No daemon takes items from it until it is unpaused, except that the inventory daemon still takes jobs of \
                the ingest queue. They finish what they are working on.",
            applies: Applies::Always,
        ]
        /// Unpauses it.
        Unpause [
            role: Operator,
            summary: "Unpause the queue",
            effect: "The daemons take items from it again.",
            applies: Applies::Always,
        ]
    }
}

target_actions! {
    /// An action on a collection.
    CollectionAction for Collection {
        /// Holds it.
        Hold [
            role: Operator,
            summary: "Hold the collection: its pending batches and jobs become Held",
            effect: "Its pending batches and jobs become Held when a daemon reaches them, and stay Held until they are \
                released.",
            applies: Applies::Always,
        ]
        /// Releases it.
        Release {
            with_jobs: bool => AcceptedParameter::flag(
                Parameter::WithJobs,
                "Also release its held batches and jobs",
                "Also release its held batches and jobs",
            )
        } [
            role: Operator,
            summary: "Release the collection",
            effect: "Its pending batches and jobs are taken again. Held ones stay Held, unless they are released with it.",
            applies: Applies::Always,
        ]
    }
}

target_actions! {
    /// An action on a store.
    StoreAction for Store {
        /// Holds it.
        Hold [
            role: Operator,
            summary: "Hold a store: daemons of queuekeeper store no further objects or archives in it",
            effect: "Daemons of queuekeeper store no further objects or archives in it until it is released, but finish those that they are storing. Jobs whose objects go there wait in Storing. Java daemons ignore the hold.",
            applies: Applies::Always,
        ]
        /// Releases it.
        Release [
            role: Operator,
            summary: "Release a store that is held",
            effect: "The daemons store in it again.",
            applies: Applies::Always,
        ]
    }
}

target_actions! {
    /// An action on a lock.
    LockAction for Lock {
        /// Breaks it.
        BreakLock {
            force: bool => AcceptedParameter::flag(
                Parameter::Force,
                "Break it although it is not a fault (only if no daemon is working under it)",
                "Break it although it is not a fault; its daemon may still be working",
            )
        } [
            role: Admin,
            summary: "Remove a lock that would not be released otherwise",
            effect: "The lock is removed, and any daemon may take the item that it protects.",
            applies: Applies::Always,
        ]
    }
}

target_actions! {
    /// An action on a fault.
    FaultAction for Fault {
        /// Repairs it.
        Repair {
            force: bool => AcceptedParameter::flag(
                Parameter::Force,
                "Repair it although it is locked (only if no daemon is working on the item)",
                "Repair it although the item is locked",
            )
        } [
            role: Operator,
            summary: "Repair the fault",
            effect: "Znodes are created, corrected or deleted as the rest of the tree implies; the plan lists them.",
            applies: Applies::Always,
        ]
    }
}

target_actions! {
    /// An action on all batches.
    BatchesAction for Batches {
        /// Purges those that are Completed or Deleted.
        CleanUp [
            role: Admin,
            summary: "Purge every batch that is Completed or Deleted, with its jobs",
            effect: "The znodes of every batch that is Completed or Deleted are removed, with those of its jobs.",
            applies: Applies::Always,
        ]
    }
}

impl TargetKind {
    /// The actions that are supported for targets of this kind.
    #[must_use]
    pub fn actions(self) -> &'static [ActionSpec] {
        match self {
            Self::Job => JobAction::ROWS,
            Self::Batch => BatchAction::ROWS,
            Self::Request => RequestAction::ROWS,
            Self::Queue => QueueAction::ROWS,
            Self::Collection => CollectionAction::ROWS,
            Self::Store => StoreAction::ROWS,
            Self::Lock => LockAction::ROWS,
            Self::Fault => FaultAction::ROWS,
            Self::Batches => BatchesAction::ROWS,
        }
    }
}

impl Target {
    /// The actions that are supported for it, in any state.
    pub fn actions(&self) -> impl Iterator<Item = &'static ActionSpec> {
        self.kind().actions().iter()
    }

    /// The table row of an action on it; `None` if the action is not supported for it.
    #[must_use]
    pub fn spec(&self, kind: ActionKind) -> Option<&'static ActionSpec> {
        self.actions().find(|spec| spec.kind == kind)
    }

    /// The role that an action on it requires; `None` if the action is not supported for it.
    #[must_use]
    pub fn role(&self, kind: ActionKind) -> Option<Role> {
        self.spec(kind).map(|spec| self.role_for(spec))
    }

    /// The role that the action of a row requires on it.
    pub(super) fn role_for(&self, spec: &ActionSpec) -> Role {
        match self {
            // Breaking a lock requires the same role, whether as a lock or as a fault.
            Self::Fault(fault, _) if fault.repair_kind() == RepairKind::BreaksLock => {
                LockAction::BreakLock { force: false }.spec().role
            }
            _ => spec.role,
        }
    }
}

#[cfg(test)]
mod tests;
