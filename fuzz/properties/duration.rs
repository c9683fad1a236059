//! Durations in Prometheus' notation, instants as the queue's values spell them, and the end of a token's time.

use queuekeeper::config::{PrometheusDuration, expiry};
use queuekeeper_queue::time;

use super::shown;

/// Reads the text as each of them.
///
/// # Panics
/// When what was read is not what is read of what is written for it.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<PrometheusDuration>() {
        Ok(duration) => shown::again(&duration),
        Err(error) => shown::error(error, 500),
    }
    if let Some(instant) = time::read(text) {
        let again = time::read(&time::write(instant)).expect("what is written is read");
        let apart = instant.as_nanosecond() - again.as_nanosecond();
        assert!((0..1_000_000_000).contains(&apart), "{text} is written as {}", time::write(instant));
    }
    if let Ok(instant) = expiry(text) {
        assert_eq!(expiry(&instant.to_string()), Ok(instant), "{text} is the same again");
    }
}
