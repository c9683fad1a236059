//! The parameters of an action, checked against those that it takes.

use super::{AcceptedParameter, ActionParameters, Parameter};
use crate::actions::kind::ActionKind;
use crate::actions::refusal::Refusal;
use crate::actions::target::TargetKind;

impl ActionParameters {
    /// Checks that no parameter is set besides those that the action takes.
    pub(in crate::actions) fn check(
        self,
        kind: ActionKind,
        on: TargetKind,
        takes: &[AcceptedParameter],
    ) -> Result<(), Refusal> {
        let is_foreign = |set: &Parameter| !takes.iter().any(|takes| takes.parameter == *set);
        let foreign = Parameter::ALL.into_iter().filter(|parameter| self.has(*parameter)).find(is_foreign);
        foreign.map_or(Ok(()), |parameter| {
            let (name, on) = (parameter.name(), on.words());
            Err(Refusal::Invalid(format!("“{name}” is not supported for action {kind} on {on}")))
        })
    }
}

/// The value of a parameter for an action that takes it.
pub(in crate::actions) trait ValueFor<T> {
    /// Its value.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] if it is required and missing.
    fn value_for(self, kind: ActionKind, parameter: Parameter) -> Result<T, Refusal>;
}

impl<T> ValueFor<T> for T {
    fn value_for(self, _: ActionKind, _: Parameter) -> Result<T, Refusal> {
        Ok(self)
    }
}

impl<T> ValueFor<T> for Option<T> {
    fn value_for(self, kind: ActionKind, parameter: Parameter) -> Result<T, Refusal> {
        self.ok_or_else(|| {
            let range = parameter.spec().input.range().map(|range| format!(": {range}")).unwrap_or_default();
            Refusal::Invalid(format!("action {kind} needs a {}{range}", parameter.name()))
        })
    }
}
