//! Numbers within bounds.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A whole number within bounds, and the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Within<const LEAST: u32, const MOST: u32, const USUAL: u32>(u32);

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> Within<LEAST, MOST, USUAL> {
    /// The number.
    pub(crate) fn get(self) -> usize {
        self.0 as usize
    }

    /// Whether it is the one that holds where none is set.
    pub(crate) fn is_usual(self) -> bool {
        self == Self::default()
    }

    /// The largest.
    pub(crate) fn most() -> Self {
        Self(MOST)
    }

    /// The next number that is allowed.
    pub(crate) fn nearest(number: usize) -> Self {
        Self(u32::try_from(number).unwrap_or(MOST).clamp(LEAST, MOST))
    }
}

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> Default for Within<LEAST, MOST, USUAL> {
    fn default() -> Self {
        Self(USUAL)
    }
}

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> Display for Within<LEAST, MOST, USUAL> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0, f)
    }
}

/// A text that is no whole number within bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a whole number, {0}")]
pub(crate) struct OutOfBounds(String);

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> FromStr for Within<LEAST, MOST, USUAL> {
    type Err = OutOfBounds;

    fn from_str(text: &str) -> Result<Self, OutOfBounds> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| is_plain && (LEAST..=MOST).contains(number));
        number.map(Self).ok_or_else(|| OutOfBounds(format!("{LEAST} to {MOST}")))
    }
}

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> Serialize for Within<LEAST, MOST, USUAL> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

impl<'de, const LEAST: u32, const MOST: u32, const USUAL: u32> Deserialize<'de> for Within<LEAST, MOST, USUAL> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let allowed = |OutOfBounds(allowed)| D::Error::invalid_value(Unexpected::Str(&text), &&*allowed);
        if text.is_empty() { Ok(Self::default()) } else { text.parse().map_err(allowed) }
    }
}

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> PartialSchema for Within<LEAST, MOST, USUAL> {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(LEAST)).maximum(Some(MOST));
        number.default(Some(USUAL.into())).into()
    }
}

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> ToSchema for Within<LEAST, MOST, USUAL> {}
