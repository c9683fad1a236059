//! The parameters of actions as fields of a form.

use super::listing::{Choice, choices};
use crate::actions::{AcceptedParameter, Input};

/// The field for a parameter.
#[derive(Debug)]
pub(super) struct ParameterInput {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// What is shown in it while it is empty.
    pub(super) usual: &'static str,
    pub(super) control: Control,
    /// What is wrong with its value; empty for nothing.
    pub(super) wrong: String,
}

/// What a value is entered with.
#[derive(Debug)]
pub(super) enum Control {
    Choice(Vec<Choice>),
    Number { value: String, least: u8, most: u8 },
    Checkbox { is_checked: bool },
}

/// The form that has the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputOf {
    /// The page of one action.
    Page,
    /// The bar below a list.
    Bar,
}

impl ParameterInput {
    /// The field with a value, which is empty for none.
    pub(super) fn new(takes: &AcceptedParameter, form: InputOf, value: String) -> Self {
        let spec = takes.parameter.spec();
        let words = match &spec.input {
            Input::Choice { page, bar, .. } | Input::Number { page, bar, .. } => {
                Some(if form == InputOf::Page { page } else { bar })
            }
            Input::Checkbox => None,
        };
        let control = match &spec.input {
            Input::Choice { values, .. } => {
                let each = words.map_or("", |words| words.each);
                let named = values().into_iter().map(|(value, name)| (value, format!("{each}{name}")));
                Control::Choice(choices(Some(&value), named))
            }
            Input::Number { bounds: (least, most), .. } => Control::Number { value, least: *least, most: *most },
            Input::Checkbox => Control::Checkbox { is_checked: !value.is_empty() },
        };
        Self {
            name: spec.name,
            label: words.map_or(takes.label, |words| words.label),
            usual: words.map_or("", |words| words.usual),
            control,
            wrong: String::new(),
        }
    }
}
