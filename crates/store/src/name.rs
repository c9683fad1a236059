//! Names of stores and of spaces.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// The longest name, in bytes: that of a bucket.
const MOST_BYTES: usize = 63;

/// What is wrong with a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid name {name:?}: 1 to {MOST_BYTES} letters, digits, '-', '_' and '.', beginning with a letter, digit or '_'"
)]
pub struct NameError {
    name: String,
}

/// Checks what both kinds of names share: they are parts of paths, host names, URLs and labels.
fn check(name: &str) -> Result<(), NameError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_first = name.bytes().next().is_some_and(is_plain);
    let are_valid = name.bytes().all(|byte| is_plain(byte) || matches!(byte, b'-' | b'.'));
    if is_first && are_valid && name.len() <= MOST_BYTES {
        return Ok(());
    }
    Err(NameError { name: name.chars().take(2 * MOST_BYTES).collect() })
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(name: &str) -> Result<Self, NameError> {
                check(name)?;
                Ok(Self(name.to_owned()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let name = String::deserialize(from)?;
                name.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

name! {
    /// The name of a store in the configuration: 1 to 63 letters, digits, `-`, `_` and `.`.
    StoreName
}

name! {
    /// The name of a space, a part of a store: 1 to 63 letters, digits, `-`, `_` and `.`. Which of them a store can
    /// hold is for the store: a bucket's name has no `_` and no capitals.
    SpaceName
}

impl SpaceName {
    /// What the names of spaces begin with that are no depositor's: policies, reports, content kept aside.
    pub const RESERVED: &str = "x-";

    /// Whether only a part of the program that owns it may change it.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(Self::RESERVED)
    }

    /// The same of a space as a store names it, where the name of an account with a prefix may come first:
    /// `P.x-reports`.
    #[must_use]
    pub fn is_reserved_in_store(&self) -> bool {
        self.is_reserved() || self.0.split_once('.').is_some_and(|(_prefix, space)| space.starts_with(Self::RESERVED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_parts_of_paths_and_hosts() {
        let longest = "a".repeat(MOST_BYTES);
        for valid in ["main", "x-duracloud-admin", "merritt_demo_content", "a.b", "7", "_meta", &longest] {
            assert_eq!(valid.parse::<SpaceName>().map(|name| name.to_string()), Ok(valid.to_owned()));
        }
        let too_long = "a".repeat(MOST_BYTES + 1);
        for invalid in ["", ".", "..", ".a", "-a", "a/b", "a b", "a\n", "ä", "a%2f", &too_long] {
            assert!(invalid.parse::<StoreName>().is_err(), "{invalid:?}");
        }
        assert!("x-aside".parse::<SpaceName>().is_ok_and(|name| name.is_reserved()));
        assert!("xy".parse::<SpaceName>().is_ok_and(|name| !name.is_reserved()));
    }

    #[test]
    fn in_a_store_the_reserved_spaces_of_accounts_with_a_prefix_are_reserved() {
        let is_reserved = |name: &str| name.parse::<SpaceName>().unwrap().is_reserved_in_store();
        for reserved in ["x-aside", "account1.x-duracloud-admin", "a.x-"] {
            assert!(is_reserved(reserved), "{reserved}");
        }
        for free in ["xy", "account1.theses", "account1.a.x-b", "account1.ax-b", "a-x-b"] {
            assert!(!is_reserved(free), "{free}");
        }
    }
}
