//! Instants that are reckoned with though anybody may have written them.

use std::time::Duration;

use jiff::Timestamp;

/// An instant so much later; the last one there is, where it would be beyond that.
pub(super) fn later(at: Timestamp, span: Duration) -> Timestamp {
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_instant_and_no_span_is_too_much() {
        let ends = [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH];
        for at in ends {
            for span in [Duration::ZERO, Duration::from_hours(1), Duration::MAX] {
                assert!(later(at, span) >= at);
            }
        }
    }
}
