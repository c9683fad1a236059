//! The table of actions: one row for each action on each kind of target.
//!
//! The API, the command line, the buttons and forms of the pages, bulk actions, and the roles that actions require are
//! derived from these rows. A new action is a row here, a kind in [`ActionKind`], a variant in its target's enum in
//! `action`, and its planning in `prepare`.

use super::actor::Role;
use super::actor::Role::{Admin, Operator};
use super::kind::ActionKind;
use super::target::{Target, TargetKind};
use queuekeeper_queue::RepairKind;
use queuekeeper_queue::state::{AccessState, BatchState, JobState, State};

/// An action on one kind of target.
#[derive(Debug)]
pub struct ActionSpec {
    /// The kind of the action.
    pub kind: ActionKind,
    /// The role that it requires.
    pub role: Role,
    /// What it does, in the imperative, for the help of the command line.
    pub summary: &'static str,
    /// What it does to its target, in a sentence or two, for the confirmation page.
    pub effect: &'static str,
    /// The parameters besides the target.
    pub takes: &'static [Parameter],
    /// The states of its target in which it is offered.
    pub applies: Applies,
}

/// A parameter of an action besides its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The state to resume a job in; without it, the state after the last successful one.
    To,
    /// The priority to set; required.
    Priority,
    /// Executes it where it is refused by default. The label of the checkbox on a page; empty if only the API has it.
    Force(&'static str),
    /// Releases the held jobs of a collection with it.
    WithJobs,
}

impl Parameter {
    /// The name in the API and in forms.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::To => "to",
            Self::Priority => "priority",
            Self::Force(_) => "force",
            Self::WithJobs => "with_jobs",
        }
    }
}

/// The states in which an action is offered.
#[derive(Clone, Copy, Debug)]
pub enum Applies {
    /// In any state, or its target has none.
    Always,
    /// In the states of a job for which this function returns true; otherwise it is refused with this reason, or, if
    /// that is empty, with that of the state machine.
    ToJob(fn(JobState) -> bool, &'static str),
    /// In the states of a batch for which this function returns true.
    ToBatch(fn(BatchState) -> bool),
    /// In the states of an access request for which this function returns true.
    ToRequest(fn(AccessState) -> bool),
}

/// Force for the purge of an item that cannot be loaded.
const PURGE_LOCKED: Parameter = Parameter::Force("");

const JOB: &[ActionSpec] = &[
    ActionSpec {
        kind: ActionKind::Resume,
        role: Operator,
        summary: "Resume a failed job after its last successful state, or in the state that --to names",
        effect: "It continues where it stopped, and its retry count rises by one.",
        takes: &[Parameter::To],
        applies: Applies::ToJob(|state| state == JobState::Failed, "only a failed job can be resumed"),
    },
    ActionSpec {
        kind: ActionKind::Hold,
        role: Operator,
        summary: "Hold a pending job",
        effect: "No daemon takes it until it is released.",
        takes: &[],
        applies: Applies::ToJob(|state| state == JobState::Pending, ""),
    },
    ActionSpec {
        kind: ActionKind::Release,
        role: Operator,
        summary: "Release a held job",
        effect: "It becomes pending again, and a daemon takes it when its turn comes.",
        takes: &[],
        applies: Applies::ToJob(|state| state == JobState::Held, "only a held job can be released"),
    },
    ActionSpec {
        kind: ActionKind::Fail,
        role: Operator,
        summary: "Fail a job that no daemon is working on",
        effect: "It is set Failed with the reason as its message, and counts as failed in its batch.",
        takes: &[],
        applies: Applies::ToJob(|state| state.may_become(JobState::Failed), ""),
    },
    ActionSpec {
        kind: ActionKind::SetPriority,
        role: Operator,
        summary: "Set the priority of a job: 0, the most urgent, to 99",
        effect: "0 is the most urgent, 99 the least. Its position in the queue changes at once.",
        takes: &[Parameter::Priority],
        applies: Applies::ToJob(|state| !state.is_final(), "it is no longer queued, so its priority has no effect"),
    },
    ActionSpec {
        kind: ActionKind::Delete,
        role: Admin,
        summary: "Mark a failed or held job Deleted",
        effect: "It is marked Deleted and will never be completed. This cannot be undone.",
        takes: &[],
        applies: Applies::ToJob(|state| state.may_become(JobState::Deleted), ""),
    },
    ActionSpec {
        kind: ActionKind::Purge,
        role: Admin,
        summary: "Remove the znodes of a finished job",
        effect: "Its znodes are removed with all their data. This cannot be undone.",
        takes: &[PURGE_LOCKED],
        applies: Applies::ToJob(State::is_final, ""),
    },
];

const BATCH: &[ActionSpec] = &[
    ActionSpec {
        kind: ActionKind::Release,
        role: Operator,
        summary: "Release a held batch",
        effect: "It becomes pending again, and a daemon creates its jobs.",
        takes: &[Parameter::Force("Release it although its collection is held")],
        applies: Applies::ToBatch(|state| state == BatchState::Held),
    },
    ActionSpec {
        kind: ActionKind::ReportAgain,
        role: Operator,
        summary: "Report a failed batch again",
        effect: "A daemon reports to its depositor again which of its jobs completed and which failed.",
        takes: &[],
        applies: Applies::ToBatch(|state| state == BatchState::Failed),
    },
    ActionSpec {
        kind: ActionKind::Delete,
        role: Admin,
        summary: "Delete a failed or held batch with all its jobs",
        effect: "All its jobs are deleted with it, and the znodes of all are removed. This cannot be undone.",
        takes: &[],
        applies: Applies::ToBatch(|state| state.may_become(BatchState::Deleted)),
    },
    ActionSpec {
        kind: ActionKind::Purge,
        role: Admin,
        summary: "Remove the znodes of a finished batch and of its jobs",
        effect: "Its znodes are removed with all their data. This cannot be undone.",
        takes: &[PURGE_LOCKED],
        applies: Applies::ToBatch(State::is_final),
    },
];

const REQUEST: &[ActionSpec] = &[
    ActionSpec {
        kind: ActionKind::Resume,
        role: Operator,
        summary: "Resume a failed access request",
        effect: "It returns to Pending, and a daemon takes it again.",
        takes: &[],
        applies: Applies::ToRequest(|state| state == AccessState::Failed),
    },
    ActionSpec {
        kind: ActionKind::Delete,
        role: Admin,
        summary: "Mark an access request Deleted",
        effect: "It is marked Deleted and will never be completed. This cannot be undone.",
        takes: &[],
        applies: Applies::ToRequest(|state| state.may_become(AccessState::Deleted)),
    },
    ActionSpec {
        kind: ActionKind::Purge,
        role: Admin,
        summary: "Remove the znodes of a finished access request",
        effect: "Its znodes are removed with all their data. This cannot be undone.",
        takes: &[PURGE_LOCKED],
        applies: Applies::ToRequest(State::is_final),
    },
];

const QUEUE: &[ActionSpec] = &[
    ActionSpec {
        kind: ActionKind::Pause,
        role: Operator,
        summary: "Pause the queue, so that the daemons take nothing from it",
        effect: "No daemon takes items from it until it is unpaused. They finish what they are working on.",
        takes: &[],
        applies: Applies::Always,
    },
    ActionSpec {
        kind: ActionKind::Unpause,
        role: Operator,
        summary: "Unpause the queue",
        effect: "The daemons take items from it again.",
        takes: &[],
        applies: Applies::Always,
    },
];

const COLLECTION: &[ActionSpec] = &[
    ActionSpec {
        kind: ActionKind::Hold,
        role: Operator,
        summary: "Hold the collection, so that its pending jobs become Held",
        effect: "Its pending jobs become Held when a daemon reaches them, and stay so until they are released.",
        takes: &[],
        applies: Applies::Always,
    },
    ActionSpec {
        kind: ActionKind::Release,
        role: Operator,
        summary: "Release the collection",
        effect: "Its pending jobs are taken again. Held ones stay Held, unless they are released with it.",
        takes: &[Parameter::WithJobs],
        applies: Applies::Always,
    },
];

const LOCK: &[ActionSpec] = &[ActionSpec {
    kind: ActionKind::BreakLock,
    role: Admin,
    summary: "Remove a lock that will not be released",
    effect: "The lock is removed, and any daemon may take the item that it protects.",
    takes: &[Parameter::Force("Break it although it is not a fault (only if no daemon is working under it)")],
    applies: Applies::Always,
}];

const FAULT: &[ActionSpec] = &[ActionSpec {
    kind: ActionKind::Repair,
    role: Operator,
    summary: "Repair the fault",
    effect: "The missing or wrong znodes are written as the rest of the tree implies.",
    takes: &[Parameter::Force("Repair it although it is locked (only if no daemon is working on the item)")],
    applies: Applies::Always,
}];

const BATCHES: &[ActionSpec] = &[ActionSpec {
    kind: ActionKind::CleanUp,
    role: Admin,
    summary: "Purge every batch that is Completed or Deleted, with its jobs",
    effect: "The znodes of every batch that is Completed or Deleted are removed, with those of its jobs. This cannot be \
             undone.",
    takes: &[],
    applies: Applies::Always,
}];

impl TargetKind {
    /// The actions that are supported for targets of this kind.
    #[must_use]
    pub fn actions(self) -> &'static [ActionSpec] {
        match self {
            Self::Job => JOB,
            Self::Batch => BATCH,
            Self::Request => REQUEST,
            Self::Queue => QUEUE,
            Self::Collection => COLLECTION,
            Self::Lock => LOCK,
            Self::Fault => FAULT,
            Self::Batches => BATCHES,
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
        let spec = self.spec(kind)?;
        match self {
            // Breaking a lock requires the same role, whether as a lock or as a fault.
            Self::Fault(fault, _) if fault.repair_kind() == RepairKind::BreaksLock => Some(Role::Admin),
            _ => Some(spec.role),
        }
    }
}

impl ActionSpec {
    /// Whether it has a parameter of that name.
    #[must_use]
    pub fn takes(&self, name: &str) -> bool {
        self.takes.iter().any(|parameter| parameter.name() == name)
    }

    /// The label of the checkbox to force it; empty if there is none.
    #[must_use]
    pub fn force(&self) -> &'static str {
        let force = self.takes.iter().find_map(|parameter| match parameter {
            Parameter::Force(text) => Some(*text),
            Parameter::To | Parameter::Priority | Parameter::WithJobs => None,
        });
        force.unwrap_or_default()
    }

    /// Whether it is offered for a job in this state.
    #[must_use]
    pub fn fits_job(&self, state: JobState) -> bool {
        matches!(self.applies, Applies::ToJob(fits, _) if fits(state))
    }

    /// Whether it is offered for a batch in this state.
    #[must_use]
    pub fn fits_batch(&self, state: BatchState) -> bool {
        matches!(self.applies, Applies::ToBatch(fits) if fits(state))
    }

    /// Whether it is offered for an access request in this state.
    #[must_use]
    pub fn fits_request(&self, state: AccessState) -> bool {
        matches!(self.applies, Applies::ToRequest(fits) if fits(state))
    }

    /// Why it is refused for a job in this state although the state machine has the step: the step to Pending is a
    /// release for a held job and a resumption for a failed one.
    #[must_use]
    pub fn refuses_job(&self, state: JobState) -> Option<&'static str> {
        match self.applies {
            Applies::ToJob(fits, why) if !why.is_empty() && !fits(state) => Some(why),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_action_is_supported_for_a_target_and_listed_once_for_each() {
        let rows =
            || TargetKind::ALL.into_iter().flat_map(|target| target.actions().iter().map(move |row| (target, row)));
        for kind in ActionKind::ALL {
            assert!(rows().any(|(_, row)| row.kind == kind), "{kind}");
        }
        for (target, row) in rows() {
            let same = rows().filter(|(other, found)| *other == target && found.kind == row.kind).count();
            assert_eq!(same, 1, "{target:?} {}", row.kind);
            assert!(row.effect.ends_with('.') && !row.summary.ends_with('.'), "{target:?} {}", row.kind);
            assert_eq!(row.kind.is_destructive(), row.role == Admin, "{target:?} {}", row.kind);
        }
    }
    #[test]
    fn the_readme_lists_the_actions_of_each_target() {
        let readme = include_str!("../../README.md");
        for target in TargetKind::ALL {
            let name = match target {
                TargetKind::Job => "a job",
                TargetKind::Batch => "a batch",
                TargetKind::Request => "an access request",
                TargetKind::Queue => "a queue",
                TargetKind::Collection => "a collection",
                TargetKind::Lock => "a lock, such as that of a job",
                TargetKind::Fault => "a fault",
                TargetKind::Batches => "all finished batches",
            };
            let row = readme.lines().find_map(|line| line.strip_prefix(&format!("| {name} | "))).unwrap_or_default();
            // What stands in brackets is said of the action before it.
            let row: String =
                row.trim_end_matches(" |").split('(').map(|text| text.rsplit(')').next().unwrap()).collect();
            let listed: Vec<_> = row.split(',').map(str::trim).collect();
            let titles: Vec<_> = target.actions().iter().map(|spec| spec.kind.title().to_lowercase()).collect();
            assert_eq!(listed, titles, "{name}");
        }
    }
}
