//! Durations in Prometheus' notation.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The units, largest first, in milliseconds. A year is 365 days, as in Prometheus.
const UNITS: [(&str, u64); 7] = [
    ("y", 365 * 24 * 60 * 60 * 1000),
    ("w", 7 * 24 * 60 * 60 * 1000),
    ("d", 24 * 60 * 60 * 1000),
    ("h", 60 * 60 * 1000),
    ("m", 60 * 1000),
    ("s", 1000),
    ("ms", 1),
];

/// A duration in Prometheus' notation: `250ms`, `30s`, `1h30m`, `0`; whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrometheusDuration(Duration);

impl PrometheusDuration {
    /// The duration itself.
    #[must_use]
    pub fn get(self) -> Duration {
        self.0
    }
}

impl From<Duration> for PrometheusDuration {
    /// Truncates to milliseconds, the smallest unit of the notation.
    fn from(duration: Duration) -> Self {
        Self(Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; write a duration as 250ms, 30s, 5m or 1h30m (units y, w, d, h, m, s, ms, largest first), or 0")]
pub struct DurationError {
    why: &'static str,
}

impl FromStr for PrometheusDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let refuse = |why| DurationError { why };
        if text == "0" {
            return Ok(Self(Duration::ZERO));
        }
        if text.is_empty() {
            return Err(refuse("it is empty"));
        }
        let mut rest = text;
        let mut units = UNITS.iter();
        let mut millis: u64 = 0;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(refuse("a number lacks its unit"))?;
            if digits == 0 {
                return Err(refuse("a number is missing"));
            }
            let (number, after) = rest.split_at(digits);
            let letters = after.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(after.len());
            let (unit, after) = after.split_at(letters);
            // Each unit may occur once, and only after larger ones.
            let (_, factor) =
                units.find(|(name, _)| *name == unit).ok_or(refuse("a unit is unknown, repeated or out of order"))?;
            millis = number
                .parse::<u64>()
                .ok()
                .and_then(|number| number.checked_mul(*factor))
                .and_then(|part| millis.checked_add(part))
                .ok_or(refuse("it is too long"))?;
            rest = after;
        }
        Ok(Self(Duration::from_millis(millis)))
    }
}

impl fmt::Display for PrometheusDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if millis == 0 {
            return f.write_str("0");
        }
        for (unit, factor) in UNITS {
            // As Prometheus writes durations: 30d is easier to read than 4w2d.
            let is_written = !matches!(unit, "y" | "w") || millis.is_multiple_of(factor);
            if is_written && millis >= factor {
                write!(f, "{}{unit}", millis / factor)?;
                millis %= factor;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_form_of_prometheus_is_parsed() {
        for (text, millis) in [
            ("0", 0),
            ("0s", 0),
            ("250ms", 250),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1d1ms", 86_400_001),
            ("1y2w3d4h5m6s7ms", 33_019_506_007),
        ] {
            let read = text.parse::<PrometheusDuration>().unwrap();
            assert_eq!(read.get(), Duration::from_millis(millis), "{text}");
        }
    }

    #[test]
    fn a_text_that_prometheus_refuses_is_refused_with_the_valid_forms_in_the_error() {
        for (text, why) in [
            ("", "empty"),
            ("30", "lacks its unit"),
            ("s", "number is missing"),
            ("-5s", "number is missing"),
            ("1.5h", "unknown"),
            ("30 s", "unknown"),
            ("5x", "unknown"),
            ("5S", "unknown"),
            ("5s1m", "out of order"),
            ("1s1s", "repeated"),
            ("999999999999y", "too long"),
            ("99999999999999999999s", "too long"),
        ] {
            let error = text.parse::<PrometheusDuration>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("1h30m"), "{text}: {error}");
        }
    }

    #[test]
    fn years_and_weeks_are_displayed_only_without_a_remainder() {
        for (written, displayed) in [
            ("30d", "30d"),
            ("4w2d", "30d"),
            ("60d", "60d"),
            ("7d", "1w"),
            ("14d", "2w"),
            ("365d", "1y"),
            ("1y1d", "366d"),
            ("24h", "1d"),
            ("90s", "1m30s"),
            ("0s", "0"),
        ] {
            assert_eq!(written.parse::<PrometheusDuration>().unwrap().to_string(), displayed, "{written}");
        }
    }

    proptest! {
        #[test]
        fn a_displayed_duration_is_parsed_again(millis in 0u64..=u64::MAX / 2) {
            let duration = PrometheusDuration::from(Duration::from_millis(millis));
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }
}
