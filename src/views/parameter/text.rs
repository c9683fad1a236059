//! Values that are written as texts.

use std::fmt::{self, Display};
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::actions::audit::ActionId;
use crate::mirror::failures::FailureKey;
use crate::mirror::find::{SEARCH_LIMIT, SearchText, SearchTooLong};
use crate::views::PrometheusDuration;
use queuekeeper_queue::id::BatchId;

/// A value that is written as a text.
pub(crate) trait Written: FromStr<Err: Display> + Display {
    /// What is allowed; empty if the error says what is wrong.
    const ALLOWED: &[&str] = &[];
}

impl Written for PrometheusDuration {}

impl Written for FailureKey {}

impl Written for ActionId {}

/// A parameter that takes such a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text<T>(pub(crate) T);

impl<T: Display> Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: FromStr> FromStr for Text<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.parse().map(Self)
    }
}

impl<T: Written> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: Written> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| match T::ALLOWED {
            [] => D::Error::custom(error),
            allowed => D::Error::unknown_variant(&text, allowed),
        })
    }
}

/// A batch, by its id or the number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchName(pub(crate) BatchId);

/// A text that is neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", BatchName::ALLOWED.join(", or "))]
pub(crate) struct NoBatchName;

impl Written for BatchName {
    const ALLOWED: &[&str] = &["bid and ten digits, such as bid0000000042", "its number, such as 42"];
}

impl FromStr for BatchName {
    type Err = NoBatchName;

    fn from_str(text: &str) -> Result<Self, NoBatchName> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = || text.parse().ok().filter(|_| is_number).map(BatchId::new);
        text.parse().ok().or_else(number).map(Self).ok_or(NoBatchName)
    }
}

impl Display for BatchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The session that holds a lock; 0 stands for persistent locks, which no session holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder(pub(crate) i64);

impl Holder {
    /// What stands for persistent locks.
    pub(crate) const PERSISTENT: &str = "none";
}

/// A text that names no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", Holder::ALLOWED.join(", or "))]
pub(crate) struct NoHolder;

impl Written for Holder {
    const ALLOWED: &[&str] = &["a session's id, such as 0x100005a3c2e0001", Self::PERSISTENT];
}

impl FromStr for Holder {
    type Err = NoHolder;

    fn from_str(text: &str) -> Result<Self, NoHolder> {
        if text == Self::PERSISTENT {
            return Ok(Self(0));
        }
        let digits = text.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let id = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).map(u64::cast_signed);
        id.filter(|id| *id != 0).map(Self).ok_or(NoHolder)
    }
}

impl Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { f.write_str(Self::PERSISTENT) } else { write!(f, "0x{:x}", self.0) }
    }
}

/// An instant: RFC 3339, or a date and a time of day in UTC, as browsers send them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instant(pub(crate) Timestamp);

/// A text that names no instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", Instant::ALLOWED.join(", or "))]
pub(crate) struct NoInstant;

impl Written for Instant {
    const ALLOWED: &[&str] = &["a date and a time, such as 2026-11-22T08:00Z", "the same without Z, in UTC"];
}

impl FromStr for Instant {
    type Err = NoInstant;

    fn from_str(text: &str) -> Result<Self, NoInstant> {
        let in_utc = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
        text.parse().ok().or_else(in_utc).map(Self).ok_or(NoInstant)
    }
}

impl Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%Y-%m-%dT%H:%M:%SZ"))
    }
}

/// A text to look for; `None` for one of nothing but spaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchFor(Option<SearchText>);

impl SearchFor {
    /// What to look for.
    pub(crate) fn text(&self) -> Option<&SearchText> {
        self.0.as_ref()
    }

    /// The same as a text.
    pub(crate) fn owned(&self) -> Option<String> {
        self.0.as_ref().map(|text| text.as_str().to_owned())
    }
}

impl Display for SearchFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_ref().map_or("", SearchText::as_str))
    }
}

impl FromStr for SearchFor {
    type Err = SearchTooLong;

    fn from_str(text: &str) -> Result<Self, SearchTooLong> {
        SearchText::new(text).map(Self)
    }
}

impl Serialize for SearchFor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().map(SearchText::as_str).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SearchFor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl PartialSchema for SearchFor {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).max_length(Some(SEARCH_LIMIT)).into()
    }
}

impl ToSchema for SearchFor {}
