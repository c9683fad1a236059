//! The types of parameters: how each is read and written.

use queuekeeper_queue::id::Priority;
use queuekeeper_queue::state::{JobState, State};

/// The priorities that there are, in words.
pub(super) const PRIORITIES: &str = "0, the most urgent, to 99";

/// Why a text or a number is no value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongValue {
    /// There is no such value.
    #[error("unknown {noun}; expected one of {}", allowed.join(", "))]
    Unknown {
        /// What the values are.
        noun: &'static str,
        /// The rejected value.
        text: String,
        /// The values that there are.
        allowed: Vec<&'static str>,
    },
    /// It is no number.
    #[error("a {noun} is a number from {range}")]
    NoNumber {
        /// What the numbers are.
        noun: &'static str,
        /// The rejected value.
        text: String,
        /// The numbers that there are, in words.
        range: &'static str,
    },
    /// It is a number that is too small or too large.
    #[error("a {noun} is a number from {range}")]
    OutOfRange {
        /// What the numbers are.
        noun: &'static str,
        /// The rejected value.
        text: String,
        /// The numbers that there are, in words.
        range: &'static str,
    },
}

/// The value of a parameter. The default is that it is not set.
pub trait ParameterValue: Copy + Default + PartialEq {
    /// What the API and audit records have.
    type Written: Default + PartialEq;

    /// Reads what the API or an audit record has.
    ///
    /// # Errors
    /// When it is no value.
    fn read(written: Self::Written) -> Result<Self, WrongValue>;

    /// What the API and audit records have.
    fn written(self) -> Self::Written;

    /// Reads what a form has; an empty text is the default.
    ///
    /// # Errors
    /// When it is no value.
    fn parse(text: &str) -> Result<Self, WrongValue>;

    /// What a form has; empty for the default.
    fn text(self) -> String;
}

impl ParameterValue for bool {
    type Written = Self;

    fn read(written: Self) -> Result<Self, WrongValue> {
        Ok(written)
    }

    fn written(self) -> Self {
        self
    }

    fn parse(text: &str) -> Result<Self, WrongValue> {
        Ok(!text.is_empty())
    }

    fn text(self) -> String {
        if self { "true".to_owned() } else { String::new() }
    }
}

impl ParameterValue for Option<JobState> {
    type Written = Option<String>;

    fn read(written: Option<String>) -> Result<Self, WrongValue> {
        Self::parse(&written.unwrap_or_default())
    }

    fn written(self) -> Option<String> {
        self.map(|state| state.label().to_owned())
    }

    fn parse(text: &str) -> Result<Self, WrongValue> {
        if text.is_empty() {
            return Ok(None);
        }
        let state = JobState::ALL.iter().copied().find(|state| state.label() == text);
        state.map(Some).ok_or_else(|| WrongValue::Unknown {
            noun: "state",
            text: text.to_owned(),
            allowed: JobState::ALL.iter().map(|state| state.label()).collect(),
        })
    }

    fn text(self) -> String {
        self.written().unwrap_or_default()
    }
}

impl ParameterValue for Option<Priority> {
    type Written = Option<u8>;

    fn read(written: Option<u8>) -> Result<Self, WrongValue> {
        let wrong =
            |number: u8| WrongValue::OutOfRange { noun: "priority", text: number.to_string(), range: PRIORITIES };
        written.map(|number| Priority::new(number.into()).ok_or_else(|| wrong(number))).transpose()
    }

    fn written(self) -> Option<u8> {
        self.map(Priority::number)
    }

    fn parse(text: &str) -> Result<Self, WrongValue> {
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = |_| WrongValue::NoNumber { noun: "priority", text: text.to_owned(), range: PRIORITIES };
        Self::read(Some(text.parse().map_err(wrong)?))
    }

    fn text(self) -> String {
        self.map(|priority| priority.number().to_string()).unwrap_or_default()
    }
}

/// The states that a failed job may be resumed in: their labels and names.
pub(super) fn resumable() -> Vec<(&'static str, &'static str)> {
    let states = JobState::Failed.next().iter().filter(|state| **state != JobState::Deleted);
    states.map(|state| (state.label(), state.name())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_from_what_is_written_and_shown_of_it() {
        fn same<T: ParameterValue + std::fmt::Debug>(value: T) {
            assert_eq!(T::parse(&value.text()), Ok(value));
            assert_eq!(T::read(value.written()), Ok(value));
            assert_eq!(value == T::default(), value.text().is_empty());
        }
        [false, true].into_iter().for_each(same);
        [None, Priority::new(0), Priority::new(99)].into_iter().for_each(same);
        [None, Some(JobState::Pending), Some(JobState::Failed)].into_iter().for_each(same);
    }

    #[test]
    fn what_is_no_value_is_refused() {
        let state = <Option<JobState>>::parse("nowhere").unwrap_err().to_string();
        assert!(state.starts_with("unknown state; expected one of pending, "), "{state}");
        for text in ["-1", "100", "300", "5.0", " 5"] {
            let priority = <Option<Priority>>::parse(text).unwrap_err().to_string();
            assert_eq!(priority, "a priority is a number from 0, the most urgent, to 99", "{text}");
        }
    }
}
