//! The reason for an action.

use std::fmt;

/// How long a reason may be, in characters.
const MAX_REASON_CHARS: usize = 500;

/// The reason for an action: not empty, without control characters, 500 characters at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(Box<str>);

/// A text that is not a valid reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoReason {
    /// It is empty.
    #[error("an action requires a reason")]
    Empty,
    /// It is too long.
    #[error("a reason may have at most {MAX_REASON_CHARS} characters")]
    TooLong,
}

impl Reason {
    /// A reason from a text, with control characters and line ends replaced by spaces.
    ///
    /// # Errors
    /// When it is empty or too long.
    pub fn new(text: &str) -> Result<Self, NoReason> {
        let clean: String = text.chars().map(|found| if found.is_control() { ' ' } else { found }).collect();
        let clean = clean.trim();
        if clean.is_empty() {
            return Err(NoReason::Empty);
        }
        if clean.chars().count() > MAX_REASON_CHARS {
            return Err(NoReason::TooLong);
        }
        Ok(Self(clean.into()))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_not_empty_and_has_one_line() {
        assert_eq!(Reason::new(" disk\r\nreplaced\u{7}\t").unwrap().as_str(), "disk  replaced");
        assert_eq!(Reason::new(" \n\u{0}"), Err(NoReason::Empty));
        assert!(Reason::new(&"ä".repeat(MAX_REASON_CHARS)).is_ok());
        assert_eq!(Reason::new(&"x".repeat(MAX_REASON_CHARS + 1)), Err(NoReason::TooLong));
    }
}
