//! What is stated of each action: its role, its texts, its parameters, and when it applies.

use super::actor::Role;
use super::kind::ActionKind;
use super::parameters::{AcceptedParameter, Parameter};
use super::target::TargetKind;
use queuekeeper_queue::state::{AccessState, BatchState, JobState};

/// A row of the table: an action on one kind of target.
#[derive(Debug)]
pub struct ActionSpec {
    /// The kind of the action.
    pub kind: ActionKind,
    /// The role that it requires.
    pub role: Role,
    /// What it does, in the imperative, for the help of the command line.
    pub summary: &'static str,
    /// What it does to its target, in a sentence or two; [`Self::effect`] adds whether that can be undone.
    pub(super) effect: &'static str,
    /// The parameters besides the target.
    pub takes: &'static [AcceptedParameter],
    /// The states of its target in which it is offered.
    pub applies: Applies,
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

impl TargetKind {
    /// What an action does to a target of this kind, and whether that can be undone; empty if it is not supported.
    #[must_use]
    pub fn effect(self, kind: ActionKind) -> String {
        self.actions().iter().find(|spec| spec.kind == kind).map(ActionSpec::effect).unwrap_or_default()
    }
}

impl ActionSpec {
    /// What it does to its target, and whether that can be undone, for the confirmation page.
    #[must_use]
    pub fn effect(&self) -> String {
        let undone = if self.kind.is_destructive() { " This cannot be undone." } else { "" };
        format!("{}{undone}", self.effect)
    }

    /// The parameters that are offered on pages and on the command line.
    pub fn offers(&self) -> impl Iterator<Item = &'static AcceptedParameter> {
        self.takes.iter().filter(|takes| takes.is_offered)
    }

    /// Whether it has this parameter on pages and on the command line.
    #[must_use]
    pub fn has(&self, parameter: Parameter) -> bool {
        self.offers().any(|takes| takes.parameter == parameter)
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
