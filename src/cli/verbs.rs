//! The actions of the command line: their names and flags, from the table of actions.

use std::marker::PhantomData;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::{UsageError, headings};
use crate::actions::{
    AcceptedParameter, Action, ActionKind, ActionOn, ActionParameters, ActionSpec, Argument, Parameter, Target,
    TargetKind,
};

/// The actions on a kind of target, as values of an argument.
pub(super) fn values(target: TargetKind) -> impl Iterator<Item = PossibleValue> {
    target.actions().iter().map(|spec| PossibleValue::new(spec.kind.command()).help(spec.summary))
}

/// The word of an action in the command of its target, whose noun is not repeated: `lock PATH break`.
fn word(target: TargetKind, kind: ActionKind) -> &'static str {
    let (command, words) = (kind.command(), target.words());
    let noun = words.rsplit(' ').next().unwrap_or(words);
    command.strip_suffix(noun).and_then(|rest| rest.strip_suffix('-')).unwrap_or(command)
}

/// Parses the word of an action in the command of its target.
pub(super) fn parser(target: TargetKind) -> impl TypedValueParser<Value = ActionKind> {
    let value = move |spec: &ActionSpec| PossibleValue::new(word(target, spec.kind)).help(spec.summary);
    let known =
        move |name: &String| target.actions().iter().map(|spec| spec.kind).find(|kind| word(target, *kind) == name);
    PossibleValuesParser::new(target.actions().iter().map(value))
        .try_map(move |name| known(&name).ok_or("unknown action"))
}

/// What an action does to a kind of target, for the help of a command that does nothing else; empty if it is not
/// supported.
pub(super) fn summary(target: TargetKind, kind: ActionKind) -> &'static str {
    target.actions().iter().find(|spec| spec.kind == kind).map_or("", |spec| spec.summary)
}

/// The parameters of the actions on a kind of target, as arguments of a command.
#[derive(Clone, Debug)]
pub(super) struct ParameterArgs<T> {
    given: Vec<(Parameter, String)>,
    of: PhantomData<T>,
}

/// The parameters that the actions on a kind of target have on the command line, each as the first of them takes it.
fn offered(target: TargetKind) -> impl Iterator<Item = &'static AcceptedParameter> {
    let offers = move |parameter| {
        target.actions().iter().flat_map(ActionSpec::offers).find(|takes| takes.parameter == parameter)
    };
    Parameter::ALL.into_iter().filter_map(offers)
}

fn argument(takes: &'static AcceptedParameter) -> Arg {
    let parameter = takes.parameter;
    let argument = Arg::new(parameter.name());
    match parameter.spec().argument {
        Argument::Option { long, value, help } => {
            argument.long(long).value_name(value).help(help).help_heading(headings::ACTING).value_parser(
                move |text: &str| ActionParameters::default().set(parameter, text).map(|()| text.to_owned()),
            )
        }
        Argument::Number { value, help } => argument
            .value_name(value)
            .help(help)
            .help_heading(None::<&str>)
            .value_parser(|text: &str| text.parse::<i64>().map(|number| number.to_string())),
        Argument::Flag { long } => {
            argument.long(long).help(takes.help).help_heading(headings::ACTING).action(ArgAction::SetTrue)
        }
    }
}

impl<T: ActionOn> Args for ParameterArgs<T> {
    fn augment_args(command: Command) -> Command {
        command.args(offered(T::TARGET).map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: ActionOn> FromArgMatches for ParameterArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = offered(T::TARGET).filter_map(|takes| {
            let name = takes.parameter.name();
            let text = match takes.parameter.spec().argument {
                Argument::Flag { .. } => matches.get_flag(name).then(|| "true".to_owned()),
                Argument::Option { .. } | Argument::Number { .. } => matches.get_one::<String>(name).cloned(),
            };
            Some((takes.parameter, text?))
        });
        Ok(Self { given: given.collect(), of: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<T: ActionOn> ParameterArgs<T> {
    /// The parameters of an action.
    ///
    /// # Errors
    /// When a parameter is missing or not supported.
    pub(super) fn of(&self, kind: ActionKind) -> Result<ActionParameters, UsageError> {
        let mut parameters = ActionParameters::default();
        let spec = T::TARGET.actions().iter().find(|spec| spec.kind == kind);
        for parameter in spec.into_iter().flat_map(ActionSpec::offers).map(|takes| takes.parameter) {
            let given = self.given.iter().find(|(given, _)| *given == parameter);
            let set = given.map(|(_, text)| parameters.set(parameter, text));
            if let (None | Some(Err(_)), Some(range)) = (&set, parameter.spec().input.range()) {
                return Err(UsageError(format!("{} requires a number from {range}", kind.command())));
            }
            set.transpose().map_err(|error| UsageError(error.to_string()))?;
        }
        self.check(Some(kind))?;
        Ok(parameters)
    }

    /// Refuses parameters that the action does not support; `None` for no action.
    pub(super) fn check(&self, kind: Option<ActionKind>) -> Result<(), UsageError> {
        for (parameter, text) in &self.given {
            let taking = T::TARGET.actions().iter().filter(|spec| spec.has(*parameter)).map(|spec| spec.kind);
            let taking: Vec<_> = taking.collect();
            if kind.is_some_and(|kind| taking.contains(&kind)) {
                continue;
            }
            let argument = match parameter.spec().argument {
                Argument::Number { .. } => text.clone(),
                Argument::Option { long, .. } | Argument::Flag { long } => format!("--{long}"),
            };
            let names: Vec<_> = taking.iter().map(|kind| format!("`{}`", kind.command())).collect();
            return Err(UsageError::flag(&argument, format!("only {} supports it", names.join(" and "))));
        }
        Ok(())
    }
}

/// An action on one target.
///
/// # Errors
/// When a parameter is not supported or missing.
pub(super) fn action(kind: ActionKind, target: Target, parameters: ActionParameters) -> Result<Action, UsageError> {
    Action::new(kind, target, parameters).map_err(|refusal| UsageError(refusal.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_target_does_not_repeat_its_noun() {
        let command = Command::new("lock").arg(Arg::new("action").value_parser(parser(TargetKind::Lock)));
        let read = |word: &str| {
            let matches = command.clone().try_get_matches_from(["lock", word]);
            matches.map(|matches| matches.get_one::<ActionKind>("action").copied())
        };
        assert_eq!(read("break").unwrap(), Some(ActionKind::BreakLock));
        assert!(read("break-lock").is_err());
        // The command of a job has that of its lock by the whole name.
        let names: Vec<_> = values(TargetKind::Lock).map(|value| value.get_name().to_owned()).collect();
        assert_eq!(names, ["break-lock"]);
        for target in TargetKind::ALL.into_iter().filter(|target| *target != TargetKind::Lock) {
            for spec in target.actions() {
                assert_eq!(word(target, spec.kind), spec.kind.command(), "{target:?}");
            }
        }
    }
}
