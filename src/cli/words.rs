//! Formatting of figures in tables.

use std::time::Duration;

use jiff::Timestamp;

use crate::mirror::words;

/// A command that only reads does not write, and so cannot measure the servers' clock.
pub(super) const ASSUMED: &str =
    "Ages assume that the clocks of this host and of ZooKeeper agree, unless znodes show otherwise.";

/// How long ago an instant was; empty if unknown.
pub(super) fn ago(instant: Option<Timestamp>, now: Timestamp) -> String {
    let ago = |instant| words::length(Duration::try_from(now.duration_since(instant)).unwrap_or(Duration::ZERO));
    instant.map(ago).unwrap_or_default()
}

/// An instant, and how long ago it was.
pub(super) fn moment(instant: Option<Timestamp>, now: Timestamp) -> String {
    let said =
        |instant: Timestamp| format!("{}, {} ago", instant.strftime("%Y-%m-%d %H:%M:%S UTC"), ago(Some(instant), now));
    instant.map(said).unwrap_or_default()
}

/// A count; empty for 0.
pub(super) fn some(count: u64) -> String {
    if count == 0 { String::new() } else { words::count(count) }
}

/// A count.
pub(super) fn count(count: u64) -> String {
    words::count(count)
}

/// A size in binary units; empty for 0, which stands for an unknown one.
pub(super) fn size(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { words::size(bytes) }
}

/// A number; empty for none.
pub(super) fn number(number: Option<impl ToString>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// A boolean in a narrow column: "yes", or empty for no.
pub(super) fn yes(is: bool) -> String {
    if is { "yes" } else { "" }.to_owned()
}
