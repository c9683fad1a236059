//! Typed names: job, batch and request ids, and priorities.

use std::fmt;
use std::str::FromStr;

/// A text that is not an id or priority of the requested kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found:?}")]
pub struct InvalidName {
    expected: &'static str,
    found: String,
}

impl InvalidName {
    pub(super) fn new(expected: &'static str, found: &str) -> Self {
        // Names come from outside and end up in logs and answers: 64 characters are enough to recognise one.
        Self { expected, found: found.chars().take(64).collect() }
    }
}

macro_rules! sequential_id {
    ($(#[$doc:meta])* $type:ident, $prefix:literal, $expected:literal) => {
        $(#[$doc])*
        ///
        /// The number is the one ZooKeeper's sequential creation gave, ten digits in the name.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(u32);

        impl $type {
            /// The part of the name before the number.
            pub const PREFIX: &'static str = $prefix;

            /// The id with that sequence number.
            #[must_use]
            pub const fn new(number: u32) -> Self {
                Self(number)
            }

            /// The sequence number.
            #[must_use]
            pub const fn number(self) -> u32 {
                self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{:010}"), self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $type {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                text.strip_prefix($prefix)
                    .filter(|digits| digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit()))
                    .and_then(|digits| digits.parse().ok())
                    .map(Self)
                    .ok_or_else(|| InvalidName::new($expected, text))
            }
        }
    };
}

sequential_id!(
    /// The name of a job below `/jobs`, such as `jid0000000042`.
    JobId,
    "jid",
    "a job id (jid and ten digits)"
);
sequential_id!(
    /// The name of a batch below `/batches`, such as `bid0000000042`.
    BatchId,
    "bid",
    "a batch id (bid and ten digits)"
);
sequential_id!(
    /// The name of an access request below `/access/small` or `/access/large`, such as `qid0000000042`.
    RequestId,
    "qid",
    "a request id (qid and ten digits)"
);

/// A job's priority, 0 (most urgent) to 99.
///
/// Two digits are all that a queue entry's name has room for: the daemons cut it at its third character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// The least urgent priority.
    pub const MAX: Self = Self(99);

    /// The priority of that number, if it is within 0..=99.
    #[must_use]
    pub fn new(number: i64) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| *number <= 99).map(Self)
    }

    /// The number.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(5)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Priority {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        text.parse()
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| InvalidName::new("a priority from 0 (most urgent) to 99", text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_its_prefix_and_ten_digits() {
        assert_eq!("jid0000000042".parse(), Ok(JobId::new(42)));
        assert_eq!(JobId::new(42).to_string(), "jid0000000042");
        for text in
            ["", "jid42", "bid0000000042", "jid00000000042", "jid+000000042", "jid9999999999", "jid000000004\u{664}"]
        {
            assert!(text.parse::<JobId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_priority_is_read_and_written_as_its_number() {
        let priority: Priority = "42".parse().unwrap();
        assert_eq!((priority.number(), priority.to_string().as_str()), (42, "42"));
        assert_eq!(Priority::default().number(), 5);
    }

    #[test]
    fn a_priority_stays_within_two_digits() {
        assert_eq!(Priority::new(99), Some(Priority::MAX));
        assert_eq!(Priority::new(100), None);
        assert_eq!(Priority::new(-1), None);
        assert_eq!(
            "100".parse::<Priority>().unwrap_err().to_string(),
            r#"expected a priority from 0 (most urgent) to 99, found "100""#
        );
    }
}
