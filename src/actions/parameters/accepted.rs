//! The parameters that an action takes.

use super::Parameter;

/// A parameter that an action takes.
#[derive(Clone, Copy, Debug)]
pub struct AcceptedParameter {
    /// The parameter.
    pub parameter: Parameter,
    /// Whether it is offered on pages and on the command line, and not by the API alone.
    pub is_offered: bool,
    /// The label of its checkbox on a page; empty for another field.
    pub label: &'static str,
    /// The help of its flag on the command line; empty for another argument.
    pub help: &'static str,
}

impl AcceptedParameter {
    /// A parameter, whose row has its texts.
    pub(in crate::actions) const fn value(parameter: Parameter) -> Self {
        Self { parameter, is_offered: true, label: "", help: "" }
    }

    /// A flag, with its label on a page and its help on the command line.
    pub(in crate::actions) const fn flag(parameter: Parameter, label: &'static str, help: &'static str) -> Self {
        Self { parameter, is_offered: true, label, help }
    }

    /// A parameter that only the API has.
    pub(in crate::actions) const fn by_api(parameter: Parameter) -> Self {
        Self { parameter, is_offered: false, label: "", help: "" }
    }
}
