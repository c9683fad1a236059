//! How the value of a parameter is entered: on a page, and on the command line.

/// The field of a form for a parameter.
#[derive(Debug)]
pub enum Input {
    /// One of a few values, or none.
    Choice {
        /// The values, each with its name.
        values: fn() -> Vec<(&'static str, &'static str)>,
        /// On the page of one action.
        page: InputWords,
        /// In the bar below a list.
        bar: InputWords,
    },
    /// A number, which is required.
    Number {
        /// The least and the most.
        bounds: (u8, u8),
        /// The same in words.
        range: &'static str,
        /// On the page of one action.
        page: InputWords,
        /// In the bar below a list.
        bar: InputWords,
    },
    /// Yes or no; its label is in the table of actions.
    Checkbox,
}

/// The texts of a field.
#[derive(Clone, Copy, Debug)]
pub struct InputWords {
    /// Its label.
    pub label: &'static str,
    /// What is shown in it while it is empty.
    pub usual: &'static str,
    /// What stands before the name of each value.
    pub each: &'static str,
}

/// The argument of the command line for a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    /// An option with a value.
    Option {
        /// Its name.
        long: &'static str,
        /// The name of the value.
        value: &'static str,
        /// What the help says.
        help: &'static str,
    },
    /// A whole number without the name of an option.
    Number {
        /// The name of the value.
        value: &'static str,
        /// What the help says.
        help: &'static str,
    },
    /// An option without a value; its help is in the table of actions.
    Flag {
        /// Its name.
        long: &'static str,
    },
}

impl Input {
    /// The numbers that it takes, in words; `None` for other values.
    #[must_use]
    pub fn range(&self) -> Option<&'static str> {
        match self {
            Self::Number { range, .. } => Some(range),
            Self::Choice { .. } | Self::Checkbox => None,
        }
    }

    /// Whether a form without a value of it cannot be sent.
    #[must_use]
    pub fn is_required(&self) -> bool {
        matches!(self, Self::Number { .. })
    }
}
