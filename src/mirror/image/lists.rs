//! The lists of the image that are requested in pages.

use std::ops::RangeInclusive;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::figures::age_marks;
use crate::mirror::clock::Offset;
use jiff::Timestamp;
use queuekeeper_queue::path::Path;

mod batches;
mod faults;
mod locks;
mod requests;
#[cfg(test)]
mod tests;

/// A path as a cursor has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PathKey(Path);

impl Serialize for PathKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for PathKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Path::own(&text).unwrap_or_else(|| Path::parse(&text))))
    }
}

/// From when to when something in an age band began, in milliseconds by the servers' clock; all times without a band.
fn began(age: Option<usize>, now: Timestamp, offset: Offset) -> RangeInclusive<i64> {
    let Some(age) = age else { return i64::MIN..=i64::MAX };
    let marks = age_marks(offset.to_server(now));
    // What began at a mark is of the older band, as the figures have it.
    let from = marks.get(age).map_or(i64::MIN, |mark| mark + 1);
    let to = if age == 0 { i64::MAX } else { marks.get(age - 1).copied().unwrap_or(i64::MIN) };
    from..=to
}

/// An id's text, on the stack: a search compares it for every item.
fn has_digits(prefix: &str, number: u32, folded: &str) -> bool {
    let mut text = [b'0'; 13];
    text[..3].copy_from_slice(prefix.as_bytes());
    let mut rest = number;
    for digit in text[3..].iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    std::str::from_utf8(&text).is_ok_and(|text| text.contains(folded))
}
