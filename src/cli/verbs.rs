//! The actions of the command line: their names and flags, from the table of actions.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::UsageError;
use crate::actions::{Action, ActionKind, ActionParameters, BulkAction, Target, TargetKind};
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::state::{JobState, State as _};

/// The actions on a kind of target, as values of an argument.
pub(super) fn values(target: TargetKind) -> impl Iterator<Item = PossibleValue> {
    target.actions().iter().map(|spec| PossibleValue::new(spec.kind.command()).help(spec.summary))
}

/// Parses the command-line name of an action on a kind of target.
pub(super) fn parser(target: TargetKind) -> impl TypedValueParser<Value = ActionKind> {
    let known = move |name: &String| target.actions().iter().map(|spec| spec.kind).find(|kind| kind.command() == name);
    PossibleValuesParser::new(values(target)).try_map(move |name| known(&name).ok_or("unknown action"))
}

/// The parameters of an action on jobs.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Acting")]
pub(super) struct JobParameters {
    /// The priority, for `priority`
    #[arg(value_name = "NUMBER", help_heading = None::<&str>)]
    number: Option<i64>,

    /// The state in which to resume
    #[arg(long, value_name = "STATE", value_parser = state)]
    to: Option<JobState>,
}

impl JobParameters {
    /// The action on each of many jobs, or on one.
    ///
    /// # Errors
    /// When a parameter is missing or not supported.
    pub(super) fn of(&self, kind: ActionKind) -> Result<BulkAction, UsageError> {
        let priority = match (kind, self.number) {
            (ActionKind::SetPriority, number) => {
                Some(number.and_then(Priority::new).ok_or_else(|| UsageError(WHICH_PRIORITY.to_owned()))?)
            }
            (_, _) => None,
        };
        self.check(Some(kind))?;
        Ok(BulkAction { kind, parameters: ActionParameters { to: self.to, priority, ..ActionParameters::default() } })
    }

    /// Refuses parameters that the action does not support; `None` for no action.
    pub(super) fn check(&self, kind: Option<ActionKind>) -> Result<(), UsageError> {
        if let Some(number) = self.number {
            only(&number.to_string(), "priority", TargetKind::Job, kind)?;
        }
        if self.to.is_some() {
            only("--to", "to", TargetKind::Job, kind)?;
        }
        Ok(())
    }
}

const WHICH_PRIORITY: &str = "priority requires a number from 0, the most urgent, to 99";

/// Refuses a flag that the action does not support.
pub(super) fn only(
    flag: &str,
    parameter: &str,
    target: TargetKind,
    kind: Option<ActionKind>,
) -> Result<(), UsageError> {
    let offers = |name: &str| {
        let takes = target.actions().iter().filter(move |spec| spec.takes(parameter));
        let offered = takes.filter(move |spec| parameter != "force" || !spec.force().is_empty());
        let name = name.to_owned();
        offered.map(|spec| spec.kind).any(|kind| kind.command() == name)
    };
    if kind.is_some_and(|kind| offers(kind.command())) {
        return Ok(());
    }
    let names: Vec<_> = target
        .actions()
        .iter()
        .map(|spec| spec.kind.command())
        .filter(|name| offers(name))
        .map(|name| format!("`{name}`"))
        .collect();
    Err(UsageError::flag(flag, format!("only {} supports it", names.join(" and "))))
}

/// An action on one target.
///
/// # Errors
/// When a parameter is not supported or missing.
pub(super) fn action(kind: ActionKind, target: Target, parameters: ActionParameters) -> Result<Action, UsageError> {
    Action::new(kind, target, parameters).map_err(|refusal| UsageError(refusal.to_string()))
}

fn state(label: &str) -> Result<JobState, String> {
    let labels = || JobState::ALL.iter().map(|state| state.label()).collect::<Vec<_>>().join(", ");
    JobState::ALL
        .iter()
        .copied()
        .find(|state| state.label() == label)
        .ok_or_else(|| format!("unknown state; expected one of {}", labels()))
}
