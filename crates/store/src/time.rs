//! Instants in sentences.

use std::time::Duration;

use jiff::Timestamp;

/// An instant to the second, as `queuekeeper_queue::time::moment` writes it, which this crate does not know.
#[must_use]
pub fn moment(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// The instant after so long a time, in the same form.
pub(crate) fn moment_in(left: Duration) -> String {
    moment(Timestamp::now().checked_add(left).unwrap_or(Timestamp::MAX))
}
