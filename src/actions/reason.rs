//! Why an action is requested.

use std::fmt;

/// How long a reason may be, in characters.
const LONGEST_REASON: usize = 500;

/// Why an action is requested: never empty, without control characters, 500 characters at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(Box<str>);

/// A text that is no reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoReason {
    /// There is none.
    #[error("an action needs a reason in a few words")]
    Empty,
    /// It is too long.
    #[error("a reason has {LONGEST_REASON} characters at most")]
    TooLong,
}

impl Reason {
    /// A reason, its control characters and line ends as spaces.
    ///
    /// # Errors
    /// When it is empty or too long.
    pub fn new(text: &str) -> Result<Self, NoReason> {
        let clean: String = text.chars().map(|found| if found.is_control() { ' ' } else { found }).collect();
        let clean = clean.trim();
        if clean.is_empty() {
            return Err(NoReason::Empty);
        }
        if clean.chars().count() > LONGEST_REASON {
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
    fn a_reason_says_something_on_one_line() {
        assert_eq!(Reason::new(" disk\r\nreplaced\u{7}\t").unwrap().as_str(), "disk  replaced");
        assert_eq!(Reason::new(" \n\u{0}"), Err(NoReason::Empty));
        assert!(Reason::new(&"ä".repeat(LONGEST_REASON)).is_ok());
        assert_eq!(Reason::new(&"x".repeat(LONGEST_REASON + 1)), Err(NoReason::TooLong));
    }
}
