//! Arithmetic on untrusted instants.

use std::time::Duration;

use jiff::Timestamp;

/// The instant after a period, or the last representable one.
pub(super) fn later(at: Timestamp, span: Duration) -> Timestamp {
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_saturates_for_any_instant_and_period() {
        let ends = [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH];
        for at in ends {
            for span in [Duration::ZERO, Duration::from_hours(1), Duration::MAX] {
                assert!(later(at, span) >= at);
            }
        }
    }
}
